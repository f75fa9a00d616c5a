"""What is recorded of receipts afterwards: verdicts, pins, claims, decisions, retractions."""
