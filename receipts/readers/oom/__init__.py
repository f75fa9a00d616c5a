"""Failed allocations: torch, CUDA's libraries, XLA, the host."""
