"""Readers of memory figures and of failed allocations."""

from __future__ import annotations
