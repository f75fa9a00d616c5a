"""What is read out of a store: lists by any condition, and what rules, comparisons and reports ask."""
