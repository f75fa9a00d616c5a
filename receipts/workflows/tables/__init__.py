"""Importers: records that others keep, turned into receipts without adding anything to them."""

from __future__ import annotations

from receipts.workflows.tables.mapping import Mapping, read_mapping
from receipts.workflows.tables.notebook import ImportedTable, Made, Refusal, Unread, import_file, import_rows
from receipts.workflows.tables.table import TableRow, read_table

__all__ = [
    "ImportedTable",
    "Made",
    "Mapping",
    "Refusal",
    "TableRow",
    "Unread",
    "import_file",
    "import_rows",
    "read_mapping",
    "read_table",
]
