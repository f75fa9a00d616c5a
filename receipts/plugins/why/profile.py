"""The time profile of a trace: what `receipts why` needs of it, in a few kilobytes that the store keeps.

A profile is of one device of one file: whole nanoseconds by step and class, the largest kernels or operators with
their time and how often they ran, and what decides whether it may be explained with. It is made when the file is
read, and is the same whatever the order of the events.

Waiting is told apart from transfer where every rank of the job was traced. A collective ends on all ranks together, and
the rank that comes last only transfers: the shortest participant is its transfer, and what another one took longer is
waiting; of that, what no other work covered is a line of its own. Collectives are paired by their place in the step.
Where a rank is missing, or a collective is of some ranks only, or the ranks' collectives do not pair up, nothing is
taken apart.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

import orjson

from receipts.ingest.spans import Activities, SpanTrace, in_order
from receipts.plugins.why import classes as kinds
from receipts.plugins.why.classes import classes, host_kind, place_of
from receipts.plugins.why.sweep import Window, marks_of, partition, union, windows

EXTRACT: Final = "time-profile-2"
MAX_BYTES: Final = 16 << 10  # packed, of one file
MAX_ROWS: Final = 200
MAX_STEPS: Final = 256
MAX_DEVICES: Final = 8
MAX_COLLECTIVES: Final = 1500  # of one device; of more, none is kept
_MAX_NAME: Final = 120

__all__ = ["EXTRACT", "Profile", "classed_work", "extract", "host_kind", "read_profiles"]


@dataclass(frozen=True, slots=True)
class Step:
    """One window: its length and its time by class in nanoseconds, why it is set aside, what was launched in it."""

    number: int
    length: int
    aside: str
    launches: int
    times: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel or operator over the kept steps; without a name all the others of its class."""

    of: str
    name: str
    time: int
    count: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One device of one file. ``told`` is the time that an operator, a name, or nothing classed, over kept steps.

    ``communicated`` is the time in which communication ran, alone or beside other work; ``marks`` how many steps were
    marked; without one, the only step is the whole span. ``collectives`` are those of each step in their order: name,
    length, and the time that they own.
    """

    producer: str
    device: str
    host: bool
    facts: dict[str, Any] = field(default_factory=dict)
    broken: str = ""
    lost: int = 0
    marks: int = 0
    classes: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    rows: tuple[KernelRow, ...] = ()
    told: tuple[int, int, int] = (0, 0, 0)
    communicated: int = 0
    collectives: tuple[tuple[tuple[str, int, int], ...], ...] = ()

    @property
    def kept(self) -> tuple[Step, ...]:
        """The steps that are explained."""
        return tuple(step for step in self.steps if not step.aside)


def extract(trace: SpanTrace) -> bytes | None:
    """The profiles of a file's devices as JSON; None where it has none."""
    devices = sorted(trace.devices.items(), key=lambda item: (len(item[0]), item[0]))[:MAX_DEVICES]
    profiles = [_profile(trace, device, work) for device, work in devices]
    rows = MAX_ROWS
    while profiles:
        raw = orjson.dumps([_packed(item, rows) for item in profiles])
        if rows == 0 or len(zlib.compress(raw, 6)) <= MAX_BYTES:
            return raw
        rows = rows * 3 // 4 if rows > 4 else 0
    return None


def _profile(trace: SpanTrace, device: str, work: Activities) -> Profile:
    host = all(kind == ord("o") for kind in work.kind)
    names, own = trace.names.texts, classed_work(trace, work, host=host)
    rank = classes().rank
    marks = len(marks_of(trace, device))
    tiles = windows(trace, work, host=host, device=device)[:MAX_STEPS]
    if not marks and len(work):
        tiles = [Window(0, min(work.begin), max(work.end), "")]  # no step: the whole span, which --span asks for
    times: list[Counter[str]] = [Counter() for _ in tiles]
    rows: Counter[tuple[str, str]] = Counter()
    classed: Counter[str] = Counter()
    talking = sum(of == "communication" for of, _ in own) <= MAX_COLLECTIVES
    exposed: Counter[tuple[int, int]] = Counter()
    for at, length, row, cause in partition(trace, work, [rank[of] for of, _ in own], tiles, host=host):
        of, by = own[row] if row >= 0 else (cause, "")
        times[at][of] += length
        if talking and of == "communication":
            exposed[at, row] += length
        if not tiles[at].aside and row >= 0:
            rows[of, names[work.name[row]]] += length
            classed[by] += length
    launches: Counter[int] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    begins = [tile.begin for tile in tiles]
    collectives: list[list[tuple[int, int, int]]] = [[] for _ in tiles]
    for row, begin in enumerate(work.begin):
        at = bisect_right(begins, begin) - 1
        if at >= 0 and begin < tiles[at].end:
            launches[at] += 1
            counts[own[row][0], names[work.name[row]]] += not tiles[at].aside
            if talking and own[row][0] == "communication":
                collectives[at].append((begin, work.lane[row], row))
    listed = [
        tuple(
            (names[work.name[row]][:_MAX_NAME], work.end[row] - begin, exposed[at, row])
            for begin, _, row in sorted(own)
        )
        for at, own in enumerate(collectives)
    ]
    ran = (row for row in in_order(work.begin, work.end.__getitem__) if own[row][0] == "communication")
    spans = union((work.begin[row], work.end[row]) for row in ran)
    shown = sorted({name for step in times for name in step}, key=place_of)
    return Profile(
        trace.producer,
        device,
        host,
        trace.facts,
        trace.broken,
        trace.lost,
        marks,
        tuple(shown),
        tuple(
            Step(tile.number, tile.end - tile.begin, tile.aside, launches[at], tuple(times[at][name] for name in shown))
            for at, tile in enumerate(tiles)
        ),
        tuple(
            KernelRow(of, name, time, counts[of, name])
            for (of, name), time in sorted(rows.items(), key=lambda item: (-item[1], item[0]))
        ),
        (classed["op"], classed["name"], classed["other"]),
        _overlap(spans, [(tile.begin, tile.end) for tile in tiles if not tile.aside]),
        tuple(listed) if any(listed) else (),
    )


def classed_work(trace: SpanTrace, work: Activities, *, host: bool) -> list[tuple[str, str]]:
    """The class of each activity, and what told it."""
    names = trace.names.texts
    chains: list[tuple[str, ...]] = [()]
    for around, name in trace.chains[1:]:
        chains.append((*chains[around], names[name]))

    @cache
    def of(kind: int, name: int, chain: int) -> tuple[str, str]:
        if host:
            return kinds.of_host_work(chains[chain])
        return kinds.of_work(chr(kind), names[name], chains[chain])

    return [of(*item) for item in zip(work.kind, work.name, work.chain, strict=True)]


def _overlap(spans: list[tuple[int, int]], others: list[tuple[int, int]]) -> int:
    """The time that two lists of spans, each in order and without overlap, have in common."""
    total = at = 0
    for begin, end in spans:
        while at < len(others) and others[at][1] <= begin:
            at += 1
        place = at
        while place < len(others) and others[place][0] < end:
            total += min(end, others[place][1]) - max(begin, others[place][0])
            place += 1
    return total


def _packed(profile: Profile, rows: int) -> dict[str, Any]:
    """A profile as JSON with the largest rows; the others as one of each class, so that they still add up."""
    known = {name: at for at, name in enumerate(profile.classes)}
    shown = [[known[row.of], row.name[:_MAX_NAME], row.time, row.count] for row in profile.rows[:rows]]
    rest: dict[str, list[int]] = {}
    for row in profile.rows[rows:]:
        sums = rest.setdefault(row.of, [0, 0])
        sums[0] += row.time
        sums[1] += row.count
    shown += [[known[of], "", *sums] for of, sums in sorted(rest.items())]
    tree = {item.name: getattr(profile, item.name) for item in fields(profile)}
    steps = [[step.number, step.length, step.aside, step.launches, *step.times] for step in profile.steps]
    texts = sorted({name for own in profile.collectives for name, _, _ in own})
    numbers = {name: at for at, name in enumerate(texts)}
    collectives = [[(numbers[name], length, time) for name, length, time in own] for own in profile.collectives]
    packed = {"collectives": [texts, collectives]} if texts else {}
    del tree["collectives"]
    return {**tree, "rows": shown, "steps": steps, **packed}


def read_profiles(raw: bytes) -> list[Profile]:
    """What `extract` wrote."""
    profiles = []
    for tree in orjson.loads(raw):
        names = tuple(tree["classes"])
        texts, collectives = tree.get("collectives") or ((), ())
        read = {
            "classes": names,
            "told": tuple(tree["told"]),
            "collectives": tuple(
                tuple((texts[name], length, time) for name, length, time in own) for own in collectives
            ),
            "rows": tuple(KernelRow(names[of], name, time, count) for of, name, time, count in tree["rows"]),
            "steps": tuple(
                Step(number, length, aside, launches, tuple(times))
                for number, length, aside, launches, *times in tree["steps"]
            ),
        }
        profiles.append(Profile(**{**tree, **read}))
    return profiles


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
