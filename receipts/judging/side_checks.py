"""A side of a comparison: launches of one configuration, run and measured in one manner, each there once.

Launches that cannot be one side are an error. What they leave open is unknown, like what the two sides leave open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from receipts.axes import Change, Difference, Member, Unknown, difference_under
from receipts.axes.effective import decided
from receipts.axes.lane import Lane
from receipts.base.errors import UsageError
from receipts.judging.rule import Case
from receipts.judging.witness import as_requested
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed

STEPS_ARE_NO_LAUNCHES = (
    "the steps of one launch are no independent repeats, however many they are: name different launches"
)
# What the rules on a pair read of the first launch of a side, for all of them, beside its axes.
_OF_THE_FIRST = ("run.witness_for", "measurement.tokens_per_step", "data.kind", "data.dataset_digest")


def gaps_in_configuration(group: Sequence[Case], side: Literal["a", "b"], lane: Lane) -> Iterator[Unknown]:
    """Axes that the launches of a side leave open, so that some may be of another configuration.

    What only a witness of one of them tells apart is open too: it says nothing of the launches that have none. Raises
    UsageError where two launches differ in an axis.
    """
    head = group[0]
    # Launches that decided the same differ from the first in the same: of five alike, one is compared.
    compared: list[tuple[object, Difference, list[Unknown]]] = []
    for other in group[1:]:
        key = (other.receipt.run.context, decided(other.launch.parsed))
        apart, gaps = next(((known, left) for seen, known, left in compared if seen == key), (None, None))
        if apart is None or gaps is None:
            apart = head.launch.difference(other.launch, lane)
            gaps = _gaps(apart, side)
            compared.append((key, apart, gaps))
        if apart.changed:
            raise _mixed(side, head.parsed, other.parsed, apart)
        if head.borrowed.by or other.borrowed.by:
            gaps = _gaps(difference_under(lane, head.parsed, other.parsed), side)
        yield from gaps


def _gaps(apart: Difference, side: Literal["a", "b"]) -> list[Unknown]:
    items: tuple[Unknown | Change, ...] = (*apart.unknown, *apart.changed)
    return [Unknown(gap.axis, tuple(Member(item.path, None, None) for item in gap.members), side) for gap in items]


def check_one_request(group: Sequence[Parsed], side: Literal["a", "b"], lane: Lane) -> None:
    """Raises UsageError where launches were asked for different configurations, whatever path they took."""
    head, requested = group[0], as_requested(group[0])
    for other in group[1:]:
        apart = difference_under(lane, requested, as_requested(other))
        if apart.changed:
            raise _mixed(side, head, other, apart)


def _mixed(side: str, head: Parsed, other: Parsed, apart: Difference) -> UsageError:
    return UsageError(
        f"side {side.upper()} mixes configurations: {head.name} and {other.name} differ in "
        f"{', '.join(apart.axes)}; a side holds launches of one configuration"
    )


def differences_in_manner(group: Sequence[Parsed], side: Literal["a", "b"], metric: Metric) -> Iterator[Unknown]:
    """What the launches of a side do not share with its first, which represents them all where rules read it.

    Raises UsageError where they are of different kinds.
    """
    head = group[0]
    for other in group[1:]:
        if other.receipt.run.kind != head.receipt.run.kind:
            raise UsageError(
                f"side {side.upper()} mixes kinds: {head.name} is {head.receipt.run.kind}, {other.name} is "
                f"{other.receipt.run.kind}; a side holds launches of one kind"
            )
        basis = tuple(f"measurement.stated.{name}" for name in metric.basis)
        for path in (*_OF_THE_FIRST, *metric.regimes, *basis):
            if head.stated.get(path) != other.stated.get(path):
                yield Unknown(path, (Member(path, None, None),), side)


def with_gaps(diff: Difference, gaps: Sequence[Unknown]) -> Difference:
    """The difference, with what the launches of a side leave open among what is unknown."""
    known = {*diff.axes, *(gap.axis for gap in diff.unknown)}
    more = {gap.axis: gap for gap in gaps if gap.axis not in known}
    return replace(diff, unknown=(*diff.unknown, *more.values())) if more else diff


def copied_pair(launches: Sequence[Launch]) -> tuple[Parsed, Parsed] | None:
    """Two launches with the same step times, in order or shuffled: one launch that was recorded twice."""
    seen: dict[tuple[float, ...], Parsed] = {}
    for launch in launches:
        for steps in launch.distinct_steps:
            if steps in seen:
                return seen[steps], launch.parsed
            seen[steps] = launch.parsed
    return None


def check_distinct(a: Sequence[Launch], b: Sequence[Launch]) -> None:
    """Raises UsageError for a launch that is named twice, or that is the copy of another one of its side."""
    launches = [item.parsed.receipt.run.launch for item in (*a, *b)]
    twice = {name for name in launches if launches.count(name) > 1}
    if twice:
        raise UsageError(f"launch {sorted(twice)[0]} is named more than once; {STEPS_ARE_NO_LAUNCHES}")
    for side in (a, b):
        same = copied_pair(side)
        if same is not None:
            raise UsageError(
                f"{same[0].name} and {same[1].name} have the same step times to the last digit, whatever their "
                f"order, so they are one launch recorded twice; {STEPS_ARE_NO_LAUNCHES}"
            )
