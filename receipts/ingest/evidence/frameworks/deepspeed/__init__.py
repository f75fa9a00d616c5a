"""DeepSpeed, in its logs and in those of programs that run on it."""
