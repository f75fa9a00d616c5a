"""TOML that comes from outside: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import tomllib
from typing import Any


def parse_toml(raw: bytes) -> dict[str, Any]:
    """The table of a TOML document.

    Raises:
        ValueError: it is not UTF-8, not TOML, or nests deeper than the parser can follow; the message says which.
    """
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except RecursionError:
        raise ValueError("it nests too deep") from None
