"""The command that a plan is launched with: its words, some of which hold leaves of the plan.

``{batch.micro_batch}`` is the leaf's value in the attempt's plan, ``{plan}`` for the plan's file and ``{dir}``
for the attempt's folder. Any other brace is the command's own: JSON and shell words pass as they are. One that begins
with a section of the receipt and names no leaf of it is a slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import InputError, Problem, near
from receipts.receipt import Parsed
from receipts.receipt.leaves import find_leaf, leaves

_PLACE: Final = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_.\-]+)?)\}")
PLAN, FOLDER = "plan", "dir"


class CommandWords:
    """The words of a command as they were typed."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        named = dict.fromkeys(name for word in self.words for name in _PLACE.findall(word))
        self.leaves = tuple(name for name in named if name not in (PLAN, FOLDER) and find_leaf(name) is not None)
        sections = {leaf.path.partition(".")[0] for leaf in leaves()}
        self.slips = tuple(
            name for name in named if "." in name and name.partition(".")[0] in sections and find_leaf(name) is None
        )
        self.reads_plan = PLAN in named

    def __repr__(self) -> str:
        return f"CommandWords({list(self.words)!r})"

    def filled(self, plan: Parsed, places: Mapping[str, Path]) -> list[str]:
        """The words for one attempt. Raises InputError with every leaf that the plan does not state or that is none."""
        if self.slips:
            known = [leaf.path for leaf in leaves()]
            raise InputError(
                "the command",
                [Problem(f"{{{name}}}", f"there is no such leaf{near(name, known)}") for name in self.slips],
            )
        missing = [name for name in self.leaves if plan.stated.get(name) is None]
        if missing:
            raise InputError(
                plan.source, [Problem(name, "the command takes it, and the plan does not state it") for name in missing]
            )
        values = {**{name: _text(plan.stated[name]) for name in self.leaves}, PLAN: str(places[PLAN])}
        values[FOLDER] = str(places[FOLDER])
        return [_PLACE.sub(lambda match: values.get(match[1], match[0]), word) for word in self.words]

    def untaken(self, changes: Iterable[str]) -> list[str]:
        """Changed leaves that no word carries to the command; none where it reads the plan itself."""
        if self.reads_plan:
            return []
        return [path for path in changes if path not in self.leaves]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
