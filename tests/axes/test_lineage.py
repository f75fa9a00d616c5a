"""A launch ran on a documented lineage, a validated one, or neither; and what differs from the nearest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from receipts.axes.lane import Lane, Lineage
from receipts.axes.lineage import Versions, lineage_of

LANE = Lane(
    name="own",
    version=1,
    title="two lineages",
    documented=(Lineage("the page", {"torch": "2.9", "platform.libtpu": "0.0.36"}),),
    validated=(Lineage("what runs", {"torch": "2.10", "platform.libtpu": "0.0.36"}),),
)


def match(torch: str | None, libtpu: str | None = "0.0.36", lane: Lane = LANE) -> str:
    wheels = {"complete": True, **({"torch": torch} if torch else {})}
    return str(lineage_of(lane, Versions(wheels, {"platform.libtpu": libtpu}.get)))


@pytest.mark.parametrize(("torch", "state"), [("2.9.1", "documented: the page"), ("2.10.0", "validated: what runs")])
def test_it_names_the_lineage_that_it_ran_on(torch: str, state: str) -> None:
    assert match(torch) == state


def test_what_ran_nowhere_is_neither_with_what_differs_from_the_nearest() -> None:
    assert match("2.8.0") == "neither documented nor validated; nearest the page: torch 2.8.0 (there 2.9)"
    assert match("2.10", None).endswith("nearest what runs: platform.libtpu not stated (there 0.0.36)")
    assert "torch not installed (there 2.9)" in match(None)


def test_one_set_may_be_both() -> None:
    both = replace(LANE, validated=LANE.documented)
    assert match("2.9", lane=both) == "documented and validated: the page"


def test_a_lane_without_lineages_says_nothing() -> None:
    assert lineage_of(replace(LANE, documented=(), validated=()), Versions(None, {"none": None}.get)) is None
