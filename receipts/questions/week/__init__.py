"""A week of a store: its receipts judged, the frontier, comparisons, events and offenses, as values."""
