"""JSON as commands print it and the server sends it: one text for one document."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any


def json_text(document: Any) -> str:
    """A document as JSON, indented, keys in their order, signs that a terminal obeys escaped; without a line's end."""
    text = json.dumps(document, default=_plain_value, ensure_ascii=False, indent=2)
    # Inside a string every sign may be written escaped.
    signs = {sign for sign in set(text) if not sign.isprintable() and sign != "\n"}
    if signs:
        escaped = {sign: json.dumps(sign)[1:-1] for sign in signs}
        text = text.translate(
            {ord(sign): spelled if spelled != sign else f"\\u{ord(sign):04x}" for sign, spelled in escaped.items()}
        )
    return text


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
