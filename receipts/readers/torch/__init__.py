"""PyTorch: torch.compile, torch.profiler, the caching allocator, and fallbacks of libraries on it."""
