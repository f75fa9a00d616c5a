"""Scripts that come with torch_xla, and torchprime."""
