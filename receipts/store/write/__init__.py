"""What a submit writes: the receipt, its bytes, its verdict and its rows of every index."""
