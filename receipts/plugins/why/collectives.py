"""Waiting apart from transfer: how long a rank's communication waited for a slower rank.

A collective ends on all ranks together, and the rank that comes last only transfers. So where every rank of the job was
traced, the shortest participant of a collective is its transfer, and what another one took longer is waiting; of that,
what no other work covered is a line of its own. Collectives are paired by their place in the step. Where a rank is
missing, or a collective is of some ranks only, or the ranks' collectives do not pair up, nothing is taken apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from receipts.plugins.why.profile import KernelRow, Profile, Step

COMMUNICATION, WAIT = "communication", "wait for a slower rank"


def apart(ranks: Mapping[str, Sequence[Profile]]) -> dict[str, Sequence[Profile]]:
    """The profiles of a launch's ranks, with waiting as a class where it can be told."""
    profiles = {rank: own[0] for rank, own in ranks.items() if len(own) == 1}
    worlds = {size for item in profiles.values() for size in (item.facts.get("world"), *item.facts.get("groups", ()))}
    paired = {_order(item) for item in profiles.values()}
    if len(profiles) < 2 or len(profiles) < len(ranks) or worlds != {len(profiles)} or len(paired) > 1:
        return dict(ranks)
    lengths = [[length for step in item.collectives for _, length, _ in step] for item in profiles.values()]
    if not lengths[0]:
        return dict(ranks)
    shortest = [min(each) for each in zip(*lengths, strict=True)]
    return {rank: (_apart(item, shortest),) for rank, item in profiles.items()}


def _order(profile: Profile) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The names of the collectives of each step."""
    steps = zip(profile.steps, profile.collectives, strict=False)
    return tuple((step.number, tuple(name for name, _, _ in own)) for step, own in steps)


def _apart(profile: Profile, shortest: Sequence[int]) -> Profile:
    place, transfers = profile.classes.index(COMMUNICATION), iter(shortest)
    steps: list[Step] = []
    waited, times = Counter[str](), Counter[str]()
    for step, own in zip(profile.steps, profile.collectives, strict=True):
        waits = [(name, min(exposed, length - next(transfers))) for name, length, exposed in own]
        whole = sum(wait for _, wait in waits)
        before = (*step.times[:place], step.times[place] - whole, *step.times[place + 1 :], whole)
        steps.append(replace(step, times=before))
        if not step.aside:
            for name, wait in waits:
                waited[name] += wait
                times[name] += 1
    # What the profile has no row of stands in the row without a name.
    named = {row.name for row in profile.rows if row.of == COMMUNICATION}
    less = Counter[str]()
    for name, wait in waited.items():
        less[name if name in named else ""] += wait
    rows = [replace(row, time=row.time - less[row.name]) if row.of == COMMUNICATION else row for row in profile.rows]
    rows += [KernelRow(WAIT, name, wait, times[name]) for name, wait in sorted(waited.items()) if wait]
    return replace(profile, classes=(*profile.classes, WAIT), steps=tuple(steps), rows=tuple(rows))
