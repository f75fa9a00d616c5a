"""The receipt: the document, its leaves with their roles, and how bytes become one.

This package knows nothing of stores, lanes or rules.
"""

from __future__ import annotations

from receipts.receipt.document import VERSION, Receipt
from receipts.receipt.leaf import Role
from receipts.receipt.load import Document, read
from receipts.receipt.parse import Parsed, parse, parse_again

__all__ = ["VERSION", "Document", "Parsed", "Receipt", "Role", "parse", "parse_again", "read"]
