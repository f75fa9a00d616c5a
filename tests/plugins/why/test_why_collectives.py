"""What communication waited for a slower rank, apart from its transfer."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.plugins.why.difference import TracedLaunch, difference
from receipts.plugins.why.profile import WAIT, Profile, apart, extract, read_profiles
from span_traces import span_trace

GEMM, NCCL = "nvjet_tst_128x256", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def rank(late: int, *, steps: int = 5, world: int = 2, calls: int = 2, **facts: Any) -> Profile:
    """A rank that comes ``late`` to collectives of 100 ns, each beside the last 30 ns of a product."""
    spans: list[tuple[Any, ...]] = []
    for step in range(steps):
        for call in range(calls):
            begin = 1000 * step + 400 * call
            spans.append((begin, begin + late + 30, GEMM, begin))
            spans.append((begin + late, begin + 300, NCCL, begin, 8))
    trace = span_trace(*spans, marks=[(step, 1000 * step, 1000 * step + 900) for step in range(steps)])
    trace.facts = {"world": world, **facts}
    (profile,) = read_profiles(extract(trace) or b"")
    return profile


def of(profile: Profile) -> dict[str, int]:
    return dict(zip(profile.classes, profile.kept[0].times, strict=True))


def test_the_last_rank_transfers_and_the_others_wait() -> None:
    early, last = rank(50), rank(200)
    split = apart({"rank 0": [early], "rank 1": [last]})
    assert (of(split["rank 0"][0])["communication"], of(split["rank 0"][0])[WAIT]) == (140, 300)
    assert (of(split["rank 1"][0])["communication"], of(split["rank 1"][0])[WAIT]) == (140, 0)


def test_rows_and_steps_still_add_up() -> None:
    split = apart({"rank 0": [rank(50)], "rank 1": [rank(200)]})
    for (profile,) in split.values():
        for step in profile.steps:
            assert sum(step.times) == step.length
        for at, name in enumerate(profile.classes):
            rows = [row.time for row in profile.rows if row.of == name]
            assert not rows or sum(rows) == sum(step.times[at] for step in profile.kept)
    launch = TracedLaunch("x", "x", split)
    table = difference([launch], [launch], None, [])
    assert (table.change, table.slowest) == (0, ("rank 1", "rank 1"))


@pytest.mark.parametrize(
    "others",
    [
        {"rank 1": [rank(200, world=3)]},
        {"rank 1": [rank(200, calls=1)]},
        {"rank 1": [rank(200, steps=6)]},
        {"rank 1": [rank(200, groups=[2, 1])]},
        {"rank 1": [rank(200), rank(200)]},
        {},
    ],
)
def test_nothing_is_taken_apart_where_ranks_do_not_pair_up(others: dict[str, list[Profile]]) -> None:
    ranks = {"rank 0": [rank(50)], **others}
    assert apart(ranks) == ranks


def test_ranks_without_collectives_are_left_as_they_are() -> None:
    ranks = {"rank 0": [rank(50, calls=0)], "rank 1": [rank(200, calls=0)]}
    assert apart(ranks) == ranks
