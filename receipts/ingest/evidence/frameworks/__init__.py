"""Readers of training frameworks: steps, what they print for each, and configuration."""

from __future__ import annotations
