"""NeMo 1 and 2."""
