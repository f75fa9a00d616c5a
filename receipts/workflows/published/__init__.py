"""Published results: what others measured and printed, as receipts that say where each came from."""
