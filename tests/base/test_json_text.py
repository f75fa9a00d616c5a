"""JSON that comes from outside raises one kind of error, whatever is wrong with it."""

from __future__ import annotations

import pytest

from receipts.base.untrusted_text import parse_json

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [DEEP, "{", b"\xff", "1" * 10_000, ""])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_json(text)
