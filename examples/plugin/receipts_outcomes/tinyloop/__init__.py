"""tinyloop, a training loop that nobody runs: its lines, and the names in them."""
