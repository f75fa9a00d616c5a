"""Importers: records that others keep, turned into receipts without adding anything to them."""

from __future__ import annotations

from receipts.importers.mapping import Mapping, read_mapping
from receipts.importers.notebook import Imported, Made, Refusal, Unread, import_file, import_rows
from receipts.importers.table import Row, read_table

__all__ = [
    "Imported",
    "Made",
    "Mapping",
    "Refusal",
    "Row",
    "Unread",
    "import_file",
    "import_rows",
    "read_mapping",
    "read_table",
]
