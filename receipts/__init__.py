"""Receipts: where a training-performance number earns the right to be believed.

The engine is importable in parts (`receipts.receipt`, `receipts.store`, `receipts.judge` …); this module stays
empty but for the version, so that `receipts --version` imports nothing else.
"""

__version__ = "0.1.0"
