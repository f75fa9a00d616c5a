"""TOML from outside costs one kind of error, however deep it nests."""

from __future__ import annotations

import pytest

from receipts.base.untrusted_text import parse_toml


@pytest.mark.parametrize(
    ("raw", "what"), [(b"a = " + b"[" * 100_000, "nests too deep"), (b"a = ", "Invalid value"), (b"\xff", "decode")]
)
def test_what_is_no_toml_is_a_value_error(raw: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_toml(raw)


def test_a_table_is_read() -> None:
    assert parse_toml(b"[a]\nb = 1") == {"a": {"b": 1}}
