"""llm.c and its PyTorch twin."""
