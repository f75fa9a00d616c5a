"""How much a test of drawn examples tries: some in `make test`, many in `make thorough`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

ENGINES = ("sqlite", "postgresql")


def unless_thorough(usual: T, thorough: T) -> T:
    """``usual``, or ``thorough`` where the environment sets `RECEIPTS_TEST_THOROUGH`."""
    return thorough if os.environ.get("RECEIPTS_TEST_THOROUGH") else usual


def on_engines(cases: Iterable[T]) -> list[tuple[str, T]]:
    """Pairs of an engine and a case: every case on SQLite, and every fourth on PostgreSQL too, or every one.

    For what one code does on both: ``parametrize(("copied", …), on_engines(…), indirect=["copied"])``.
    """
    every = list(cases)
    return [
        (engine, case) for engine in ENGINES for case in every[:: 1 if engine == "sqlite" else unless_thorough(4, 1)]
    ]
