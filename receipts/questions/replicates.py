"""Replicates: launches of one configuration, which differ in no axis, known or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from receipts.axes import difference, effective
from receipts.axes.difference import CODE
from receipts.axes.effective import OPEN_MAPS, is_complete
from receipts.axes.lane import Lane
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from datetime import datetime

    from receipts.store import Store

MOST = 50
# What one launch of a side says for all of them beside its axes; `compare` leaves open what differs in it.
AS_MEASURED = (
    "run.witness_for",
    "measurement.region",
    "measurement.timer",
    "measurement.synchronisation",
    "measurement.tokens_per_step",
    "data.kind",
    "data.dataset_digest",
)
# One launch recorded twice has the same steps, cut, or told with other digits.
COPIED_STEPS = 60
Configuration = tuple[object, ...]


def with_replicates(
    store: Store, group: Sequence[Parsed], lane: Lane, other: Sequence[Parsed], until: datetime | None = None
) -> list[Parsed]:
    """The group, and every stored launch that stands and differs from it in no axis, known or unknown.

    The other side's launches are never taken, and where both sides are of one configuration the group stays as it
    is: what repeats one side repeats the other. Launches of another kind replicate nothing; nor does a copy, which has
    the steps of another launch. Which of them are samples is for `receipts.judging.compare.choose` to say; launches
    that failed are among them where the group's did not, so that they are counted. ``until``: none that ran later.
    """
    from receipts.axes.configuration import configuration as what_ran  # two files are compared without a store

    head = group[0]
    if other and _one_configuration(head, other[0], lane):
        return list(group)
    taken = {item.receipt.run.launch for item in (*group, *other)}
    found = list(group)
    values = effective(head)
    for receipt_id in store.replicate_candidates(head, what_ran(head, lane), until):
        if len(found) >= MOST:
            break
        candidate = store.parsed(receipt_id)
        run = candidate.receipt.run
        if run.launch in taken or run.kind != head.receipt.run.kind or surely_apart(values, effective(candidate)):
            continue
        # A launch that failed may not have come to say how it was measured.
        as_measured = AS_MEASURED if run.outcome == head.receipt.run.outcome else ()
        if any(head.stated.get(path) != candidate.stated.get(path) for path in as_measured):
            continue
        if replicates(head, candidate, lane) and copied((*found, candidate)) is None:
            taken.add(run.launch)
            found.append(candidate)
    return found


def surely_apart(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Whether effective values alone show a changed axis. False says nothing, and `difference` has to be asked.

    Most receipts that are looked at differ in a stated value, and one look is cheaper than a comparison. What
    `difference` excuses beside the change that it follows from is no way round: that change is there to see.
    """
    return any(right.get(path, value) != value for path, value in left.items() if path not in CODE)


def _one_configuration(one: Parsed, other: Parsed, lane: Lane) -> bool:
    return not surely_apart(effective(one), effective(other)) and replicates(one, other, lane)


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference(one, other, tuple(lane.not_applicable))
    return not apart.changed and not apart.unknown


def groups(launches: Iterable[Parsed], lane: Lane) -> list[list[Parsed]]:
    """The launches that replicate one another, two and more together, in the order given; copies are left out."""
    made: dict[Configuration, list[Parsed]] = {}
    for parsed in launches:
        made.setdefault(configuration(parsed), []).append(parsed)
    found = []
    for alike in made.values():
        # Equal in all that `difference` reads, any two of them differ as the first two do.
        if len(alike) < 2 or not replicates(alike[0], alike[1], lane):
            continue
        own = _without_copies(alike)
        if len(own) > 1:
            found.append(own)
    return found


def configuration(parsed: Parsed) -> Configuration:
    """All that decides whether two receipts differ in an axis: comparing keys costs less than comparing receipts."""
    values = tuple(sorted((path, repr(value)) for path, value in effective(parsed).items()))
    return (parsed.receipt.run.context, tuple(is_complete(parsed, name) for name in OPEN_MAPS), values)


def copied(launches: Sequence[Parsed]) -> tuple[Parsed, Parsed] | None:
    """Two launches with the same step times to the last digit: one launch that was recorded twice."""
    seen: dict[tuple[float, ...], Parsed] = {}
    for parsed in launches:
        steps = _steps(parsed)
        if steps is not None:
            if steps in seen:
                return seen[steps], parsed
            seen[steps] = parsed
    return None


def _without_copies(launches: Sequence[Parsed]) -> list[Parsed]:
    kept: dict[object, Parsed] = {}
    for parsed in launches:
        kept.setdefault(_steps(parsed) or parsed.id, parsed)
    return list(kept.values())


def _steps(parsed: Parsed) -> tuple[float, ...] | None:
    """Step times that no second launch can have; a clock too coarse to tell steps apart tells no launches apart."""
    if "steps" not in parsed.kept:
        parsed.kept["steps"] = _told_apart_by(parsed)
    found: tuple[float, ...] | None = parsed.kept["steps"]
    return found


def _told_apart_by(parsed: Parsed) -> tuple[float, ...] | None:
    measurement = parsed.receipt.measurement
    steps = measurement.step_durations_seconds if measurement else None
    if not steps or min(steps) == max(steps):
        return None
    return tuple(float(f"{step:.6g}") for step in steps[:COPIED_STEPS])
