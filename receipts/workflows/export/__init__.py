"""Exports: a store as Parquet, JSON lines or CSV, and the way back of the two that lose nothing.

See docs/export.md for what is written, and docs/scale.md for what engines make of it.
"""
