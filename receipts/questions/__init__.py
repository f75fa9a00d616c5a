"""What people ask of receipts, answered from a store: comparisons."""
