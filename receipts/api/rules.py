"""The rulebook that a program's questions are answered under: the built-in one, with what a ``receipts.toml`` adds."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from receipts.base.environment import read_config
from receipts.judging.rulebook import Rulebook, configured

VARIABLE = "RECEIPTS_CONFIG"


def rulebook() -> Rulebook:
    """The rulebook in force; with the lanes and rules of the file that ``RECEIPTS_CONFIG`` names. Raises UsageError."""
    return _read(os.environ.get(VARIABLE) or None)


@lru_cache(maxsize=1)
def _read(config: str | None) -> Rulebook:
    return configured(read_config(Path(config) if config else None))
