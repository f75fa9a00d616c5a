"""Plain PyTorch loops of the nanoGPT family."""
