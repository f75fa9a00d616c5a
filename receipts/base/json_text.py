"""JSON that comes from outside: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not UTF-8, not JSON, or nests deeper than the parser can follow; the message says which.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
