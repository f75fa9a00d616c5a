"""What a laboratory runs, told without a document: nightly grids around a few bases, and searches beside them.

The code moves on some times a week, and every state of it runs the same grid, which has bases of three lanes (eight of
them, and other ones with other wheels every other month); micro batch, sequence length and two flags around each; about
five launches of every point. Beside them are a search over buckets, launches that state neither a context nor all of
their axes, shapes that never fit and are tried once, and receipts that replace another.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

LANES: Final = ("cpu-torch", "nvidia-megatron", "tpu-torch-xla")
BASES: Final = 8  # of one set of wheels
STATES: Final = 40  # of the code, about two months, until wheels and bases change
MICRO: Final = (2, 4, 8, 16)
LENGTHS: Final = (1024, 2048, 4096)
SLOTS: Final = 7  # launches of one point with a speed of their own
SEARCHED, BARE = 16, 20  # points of a search, and launches without a context, of one state of the code
BEGIN: Final = datetime(2025, 1, 6, tzinfo=UTC)
APART: Final = timedelta(seconds=30)
LASTS: Final = timedelta(minutes=14, seconds=10)


class Point(NamedTuple):
    """A place in a base's grid. ``first`` and ``second`` are the two flags."""

    micro: int
    length: int
    first: int
    second: int


GRID: Final = tuple(Point(*values) for values in product(MICRO, LENGTHS, (0, 1), (0, 1)))
CENTRE: Final = Point(4, 2048, 0, 0)


class Kind(NamedTuple):
    """All of a launch but name, time, bucket and the state of the code; ``bare``: no context, not all said."""

    period: int
    base: int
    point: Point
    slot: int
    failed: bool = False
    bare: bool = False
    replaces: bool = False


class Launch(NamedTuple):
    """One launch. ``of`` is the number of the launch that it is; a receipt that replaces another has its."""

    number: int
    of: int
    kind: Kind
    state: int
    bucket: int

    @property
    def name(self) -> str:
        """The launch's own name, as a recorder draws one."""
        text = hashlib.md5(f"launch {self.of}".encode(), usedforsecurity=False).hexdigest()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    @property
    def label(self) -> str:
        """What people call it."""
        point = self.kind.point
        return f"b{self.kind.base}-mb{point.micro}-s{point.length}-{self.number:07d}"

    @property
    def host(self) -> str:
        """Where it ran."""
        return f"host-{self.of * 7 % 48:02d}"

    @property
    def started(self) -> datetime:
        """When it started: one every half a minute, over some fifty hosts, and up to an hour out of turn."""
        return BEGIN + self.number * APART + timedelta(seconds=self.of * 2_654_435_761 % 3600)


def lane(kind: Kind) -> str:
    """The lane of a base."""
    return LANES[kind.base % len(LANES)]


def launches() -> Iterator[Launch]:
    """Every launch in its order, without an end."""
    number = 0
    state = 0
    while True:
        for kind, bucket, replaced in _of_state(state):
            yield Launch(number, number - 1 if replaced else number, kind, state, bucket)
            number += 1
        state += 1


def _of_state(state: int) -> Iterator[tuple[Kind, int, bool]]:
    """Kinds, with their buckets and whether each replaces the one before it, of one state of the code."""
    draw = random.Random(state)
    period = state // STATES
    for base, point in product(range(BASES), GRID):
        if base < len(LANES) and (point.micro, point.length) == (MICRO[-1], LENGTHS[-1]):
            # It is known not to fit, and nobody tries again with the flags.
            if not (point.first or point.second):
                yield Kind(period, base, point, 0, failed=True), 1234, False
            continue
        for slot in range(draw.choice((3, 4, 5, 5, 5, 6, SLOTS))):
            kind = Kind(period, base, point, slot)
            yield kind, 1234, False
            if draw.random() < 0.01:
                yield kind._replace(replaces=True), 1234, True
    for at in range(SEARCHED):
        for slot in range(5):
            yield Kind(period, at % BASES, CENTRE, slot), 100_000 + state * SEARCHED + at, False
    for at in range(BARE):
        yield Kind(period, at % BASES, CENTRE, at % SLOTS, bare=True), 1234, False


@lru_cache(maxsize=8)
def commit(state: int) -> str:
    """The commit of a state of the code."""
    return hashlib.sha1(f"state {state}".encode(), usedforsecurity=False).hexdigest()[:7]


@lru_cache(maxsize=8)
def imported(state: int) -> str:
    """The digest over the files that were imported."""
    return hashlib.sha256(f"state {state}".encode()).hexdigest()
