"""Values in, verdicts out: rules, what they may know, and the comparison of two sides."""
