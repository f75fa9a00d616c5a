"""A week of a store as values: `collect` gathers it from the frontier, pairs, failures, survival and events.

Launches of a comparison come from `receipts.questions.sides` alone, so that a report and `compare` cannot differ.
"""
