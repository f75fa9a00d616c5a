"""``python -m benchmarks.hacks``: every hack and its twin, by what they attack: what was claimed, what is said of it.

A word selects groups (``clock``, ``work``, ``data``, ``selection``, ``evidence``, ``arithmetic``, ``identity``,
``memory``). Exit code 1 where a hack passes at the grade of a program's record, or an honest twin does not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from benchmarks.hacks import chosen, times, words, works
from benchmarks.hacks.launches import Answer
from benchmarks.hacks.suite import GROUPS, Asked, Hack
from receipts.base.errors import ReceiptsError

ALL = tuple(chain(times.HACKS, works.HACKS, chosen.HACKS, words.HACKS))


def table(wanted: Sequence[str] = ()) -> tuple[list[str], int]:
    """The rows of the table, and how many hacks pass or twins do not."""
    lines, wrong = [], 0
    for group in wanted or GROUPS:
        for item in (one for one in ALL if one.group == group):
            lines += row(item)
            wrong += any(line.startswith("!") for line in lines[-3:])
    return lines, wrong


def row(item: Hack) -> list[str]:
    """What was claimed, and what the product says of the hack and of its twin; with a mark where that is wrong."""
    hack, twin = _answer(item.hack), _answer(item.twin)
    graded = [" ".join(filter(None, (answer.word, answer.grade and f"({answer.grade})"))) for answer in (hack, twin)]
    return [
        f"  {item.group}: {item.name} -> {item.claimed}",
        f"{'!' if hack.passes else ' '}   hack  {graded[0]}: {hack.why[:150]}",
        f"{' ' if twin.passes else '!'}   twin  {graded[1]}{'' if twin.passes else f': {twin.why[:150]}'}",
    ]


def _answer(ask: Asked) -> Answer:
    try:
        return ask()
    except ReceiptsError as error:
        return Answer("refused", str(error).splitlines()[0])


if __name__ == "__main__":
    rows, failed = table(sys.argv[1:])
    print("\n".join(rows))
    print(f"{len(ALL) if len(sys.argv) == 1 else len(rows) // 3} hacks, {failed} judged wrongly")
    raise SystemExit(1 if failed else 0)
