"""Edits and jobs that make a number better than it is, each with an honest twin: what the product says of both."""
