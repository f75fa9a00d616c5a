"""Weights & Biases: run files, settings, exports."""
