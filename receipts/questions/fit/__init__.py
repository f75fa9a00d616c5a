"""What a launch would hold on its fullest chip, whether that fits, what shrinks it, and how far it lies from measured.

`receipts.estimate` does the arithmetic on plain values; here it meets receipts, lanes, accelerators and the store.
"""
