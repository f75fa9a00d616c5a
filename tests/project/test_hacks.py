"""The suite of hacks: no hack of a number passes at the grade of a program's record, and every honest twin does."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hacks.__main__ import ALL, table
from benchmarks.hacks.suite import GROUPS


def test_every_way_to_attack_a_number_has_its_hacks() -> None:
    counts = Counter(item.group for item in ALL)
    assert set(counts) == set(GROUPS)
    assert min(counts.values()) >= 5
    assert len({item.name for item in ALL}) == len(ALL) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_no_hack_passes_and_every_honest_twin_does(group: str) -> None:
    rows, wrong = table([group])
    assert not wrong, "\n".join(rows)
