"""A released version of the receipt keeps its leaves: none goes, and none changes what it is or how it counts.

`tests/receipt/leaves/VERSION.txt` has a line a leaf: path, role, axis and unit, of the first release with that version.
A leaf that is added says ``since`` a later version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.receipt.document import VERSION
from receipts.receipt.leaves import leaves

RELEASED = {file.stem: file for file in sorted((Path(__file__).parent / "leaves").glob("*.txt"))}


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("version", RELEASED)
def test_the_leaves_of_a_released_version_are_what_they_were(version: str) -> None:
    every = [leaf for leaf in leaves() if _number(leaf.since) <= _number(version)]
    lines = [f"{leaf.path} {leaf.role.value} {leaf.axis or '-'} {leaf.unit or '-'}" for leaf in every]
    assert "\n".join(sorted(lines)) == RELEASED[version].read_text(encoding="utf-8").strip()


def test_the_present_version_is_released_or_the_next() -> None:
    newest = max(map(_number, RELEASED))
    assert _number(VERSION) in (newest, (newest[0], newest[1] + 1), (newest[0] + 1, 0))
