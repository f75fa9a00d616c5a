"""Readers of path evidence: backends that say what they chose, kernels, compiled programs, counters."""

from __future__ import annotations
