"""Replicates: launches of one configuration, which differ in no axis, known or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from receipts.axes.difference import difference_under
from receipts.axes.lane import Lane
from receipts.axes.replicates import distinct_steps, replicates
from receipts.judging.witness import as_requested
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


def with_replicates(
    store: Store, group: Sequence[Parsed], lane: Lane, other: Sequence[Parsed], until: datetime | None = None
) -> list[Parsed]:
    """The group, and every stored launch that was not withdrawn and differs from it in no axis, known or unknown.

    The other side's launches are never taken, and where both sides are of one configuration the group stays as it is:
    what repeats one side repeats the other. Launches of another kind replicate nothing; nor does one that was asked for
    another path and fell back to the group's, nor a copy, which has the steps of another launch. Which of them are
    samples is for `JudgedSide.samples` to say; launches that failed are among them where the group's did not, so that
    they are counted. ``until``: none that ran later.
    """
    from receipts.axes.configuration import configuration  # two files are compared without a store

    head = group[0]
    if other and replicates(head, other[0], lane):
        return list(group)
    taken = {item.receipt.run.launch for item in (*group, *other)}
    launches = list(group)
    steps = {own for item in group for own in distinct_steps(item)}
    for receipt_id in store.query.replicate_candidates(head, configuration(head, lane), until):
        if len(launches) >= MOST:
            break
        candidate = store.parsed(receipt_id)
        run = candidate.receipt.run
        if run.launch in taken or run.kind != head.receipt.run.kind:
            continue
        # A launch that failed may not have come to say how it was measured.
        as_measured = AS_MEASURED if run.outcome == head.receipt.run.outcome else ()
        if any(head.stated.get(path) != candidate.stated.get(path) for path in as_measured):
            continue
        own_steps = distinct_steps(candidate)
        if steps.isdisjoint(own_steps) and replicates(head, candidate, lane) and _asked_alike(head, candidate, lane):
            steps.update(own_steps)
            taken.add(run.launch)
            launches.append(candidate)
    return launches


def _asked_alike(head: Parsed, candidate: Parsed, lane: Lane) -> bool:
    """Whether a launch was asked for what the group was: one that fell back to the group's path was not."""
    return not difference_under(lane, as_requested(head), as_requested(candidate)).changed


def groups(launches: Iterable[Parsed], lane: Lane) -> list[list[Parsed]]:
    """The launches that replicate one another, two and more together, in the order given; copies are left out."""
    from receipts.axes.settings import SettingsCache

    session, by_configuration = SettingsCache(), dict[tuple[str | None, bytes], list[Parsed]]()
    for parsed in launches:
        # Of two contexts nobody knows that they leave the same unsaid, even where each axis is stated.
        key = (parsed.receipt.run.context, session.settings(parsed).configuration(parsed, lane).whole)
        by_configuration.setdefault(key, []).append(parsed)
    replicated = []
    for alike in by_configuration.values():
        # One configuration: any two of them differ as the first two do.
        if len(alike) < 2 or not replicates(alike[0], alike[1], lane):
            continue
        own = _without_copies(alike)
        if len(own) > 1:
            replicated.append(own)
    return replicated


def _without_copies(launches: Sequence[Parsed]) -> list[Parsed]:
    kept, seen = list[Parsed](), set[tuple[float, ...]]()
    for parsed in launches:
        steps = distinct_steps(parsed)
        if seen.isdisjoint(steps):
            kept.append(parsed)
        seen.update(steps)
    return kept
