"""Metrics: what people compare, and how it is read from one launch."""

from __future__ import annotations

from receipts.metrics.launch import Launch
from receipts.metrics.registry import DEFAULT, METRICS, SHOWN, Indifference, Metric, effect_word, get, shown

__all__ = ["DEFAULT", "METRICS", "SHOWN", "Indifference", "Launch", "Metric", "effect_word", "get", "shown"]
