"""The cheapest launches that decide: which, how many, in which order, and when to look."""
