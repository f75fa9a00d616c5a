"""Exports: a store as Parquet, JSON lines or CSV, and the way back of the two that lose nothing.

See docs/export.md for what is written, and docs/scale.md for what engines make of it.
"""

from __future__ import annotations

from receipts.workflows.export.export import Exported, ExportOptions, export

__all__ = ["ExportOptions", "Exported", "export"]
