"""A cursor that comes from outside is refused, whatever is wrong with it."""

from __future__ import annotations

import pytest

from receipts.api.lists import read_cursor
from receipts.base.errors import UsageError


def test_a_cursor_that_nests_too_deep_is_refused() -> None:
    with pytest.raises(UsageError, match="no cursor"):
        read_cursor("W1tb" * 25_000)
