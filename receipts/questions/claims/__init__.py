"""Claims: sentences about performance, and whether their receipts carry them."""
