"""DLLogger, in which NVIDIA's examples and recipes write."""
