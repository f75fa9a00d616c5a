"""Training loops that need no program: one table describes each."""
