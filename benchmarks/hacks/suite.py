"""The hacks by what they attack: each an edit or a job, what was claimed by it, and its honest twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.hacks.launches import Answer

GROUPS: Final = ("clock", "work", "data", "selection", "evidence", "arithmetic", "identity", "memory")
Asked = Callable[[], Answer]


class Hack(NamedTuple):
    """One way to a better number: ``hack`` and ``twin`` ask the product about it and about its honest twin.

    ``beyond`` names the second witness that would catch it, where no document can.
    """

    group: str
    name: str
    claimed: str
    hack: Asked
    twin: Asked
    beyond: str = ""
