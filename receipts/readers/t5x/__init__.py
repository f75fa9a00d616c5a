"""T5X and other programs that log through CLU."""
