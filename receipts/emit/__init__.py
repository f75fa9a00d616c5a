"""The recorder: receipts emitted by the training run itself, with the standard library alone."""

from __future__ import annotations
