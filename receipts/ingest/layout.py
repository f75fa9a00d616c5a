"""A tree as the text of a receipt: objects indented, lists of plain values on one line."""

from __future__ import annotations

import json
from typing import Any

from receipts.receipt.parse import sealed


def pretty(tree: dict[str, Any]) -> bytes:
    """The document's bytes, UTF-8 with a line end; the same tree gives the same bytes.

    Where the tree says in ``run.recorded`` that a program writes it, they hold their digest.
    """
    return sealed((_text(tree, "") + "\n").encode())


def _text(value: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{inner}{_plain(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        rows = [f"{inner}{_plain(item)}" if _flat(item) else inner + _text(item, inner) for item in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    if isinstance(value, list | tuple) and value and isinstance(value[0], str) and len(_plain(value)) > 100:
        return "[\n" + ",\n".join(inner + _plain(item) for item in value) + f"\n{indent}]"
    return _plain(value)


def _flat(row: dict[str, Any]) -> bool:
    return not any(isinstance(item, dict | list) for item in row.values()) and len(row) <= 8


def _plain(value: Any) -> str:
    # A lone half of a surrogate pair is no text: such a sign stays escaped, and the document UTF-8.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() or _encodes(text) else json.dumps(value, allow_nan=False)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
