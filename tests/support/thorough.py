"""How much a test of drawn examples tries: some in `make test`, many in `make thorough`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")


def unless_thorough(usual: T, thorough: T) -> T:
    """``usual``, or ``thorough`` where the environment sets `RECEIPTS_TEST_THOROUGH`."""
    return thorough if os.environ.get("RECEIPTS_TEST_THOROUGH") else usual
