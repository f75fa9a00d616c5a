"""Plain training loops that print a JSON object a line."""
