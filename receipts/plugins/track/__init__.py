"""Lines over time: their history, watching them, and incidents, with their commands and pages."""
