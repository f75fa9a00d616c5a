"""Bodies and rows that may be damaged, read without raising."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipts.base.errors import StoreError
from receipts.base.json_text import parse_json
from receipts.store.packing import unpack


def words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def unpacked(codec: str, body: bytes) -> tuple[bytes | None, str]:
    """What a packed body holds, or why it cannot be read."""
    try:
        return unpack(codec, body, "it"), ""
    except (StoreError, TypeError) as error:
        return None, str(error).partition(";")[0]


def as_json(codec: str, body: bytes) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON object that a packed body holds, or why it cannot be read."""

    raw, problem = unpacked(codec, body)
    if raw is None:
        return None, problem
    try:
        tree = parse_json(raw)
    except ValueError as error:
        return None, f"it is no JSON: {error}"
    return (tree, "") if isinstance(tree, dict) else (None, "it is no JSON object")
