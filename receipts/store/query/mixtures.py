"""What the axis index holds between two configurations: those that have each axis as one or as the other has it.

A mixture's digest is a sum, so that all of them are asked for at once: 2^k look-ups for k axes, none of which reads a
row that is not wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Final, NamedTuple

from sqlalchemy import Connection

from receipts.axes.configuration import Configuration, axis_part
from receipts.store.entries import Entry, entries_of
from receipts.store.query.neighbours import launches, sharing
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axis_values, configurations
from receipts.store.write.index import NUMBERS, unpacked

MOST_AT_ONCE: Final = 12  # axes up to which every mixture is asked for
MOST_MIXTURES: Final = 20_000  # mixtures that are asked for beyond that, layer by layer from both ends
MOST_VALUES: Final = 8  # configurations that have an axis as neither side has it, the newest


class Between(NamedTuple):
    """A stored configuration between two others.

    ``newest`` is the launch of it that speaks for it, ``launches`` how many of its newest ended well, and ``failed``
    the newest of those that did not; None where there is none. None is withdrawn, and each is of the requested kind.
    """

    configuration: Configuration
    newest: Entry | None
    launches: int
    failed: Entry | None


_OF_DIGEST: Final = Lookup(
    [configurations.c.digest], [configurations.c.seq, configurations.c.digest, configurations.c.whole]
)
_VALUES: Final = Lookup([axis_values.c.seq], [axis_values.c[name] for name in ("seq", "axis", "value")])


def mixtures(
    connection: Connection,
    a: Configuration,
    b: Configuration,
    differing: Sequence[str],
    kind: str,
    *,
    beyond: bool = False,
) -> list[Between]:
    """Stored configurations that have some of the differing axes as ``b`` and the others as ``a``, but for these two.

    Every one of them for `MOST_AT_ONCE` axes and fewer; beyond, those that a row of stored ones joins to either side.
    ``beyond``: those instead that have one of the axes as neither side has it.
    """
    ordered = sorted(differing)
    if beyond:
        between = _detours(connection, a, b, ordered)
    elif len(ordered) <= MOST_AT_ONCE:
        between = _held(connection, a, b, (one for one in _subsets(ordered) if 0 < len(one) < len(ordered)))
    else:
        between = _layered(connection, a, b, ordered)
    return _launched(connection, between, kind)


def _detours(
    connection: Connection, a: Configuration, b: Configuration, ordered: Sequence[str]
) -> dict[int, Configuration]:
    """At most `MOST_VALUES` for each mixture and axis, the newest. Asks 2^k · k/2 times for k axes."""
    mixed = {(axis, one): a.mixed(b, one) for axis in ordered for one in _subsets(ordered) if axis not in one}
    like = dict(sharing(connection, [(item, axis) for (axis, _), item in mixed.items()], MOST_VALUES))
    known = {item.whole for item in mixed.values()} | {a.whole, b.whole}
    return {number: item for number, item in _read(connection, like).items() if item.whole not in known}


def _subsets(ordered: Sequence[str]) -> Iterator[frozenset[str]]:
    for size in range(len(ordered) + 1):
        yield from map(frozenset, combinations(ordered, size))


def _held(
    connection: Connection, a: Configuration, b: Configuration, wanted: Iterable[frozenset[str]]
) -> dict[int, Configuration]:
    """Those of some mixtures that are stored, by their numbers: a digest finds them, and the whole is compared."""
    by_digest: dict[int, list[frozenset[str]]] = {}
    for one in wanted:
        by_digest.setdefault(a.mixture(b, one), []).append(one)
    configurations = {}
    for seq, digest, whole in _OF_DIGEST.read(connection, ((digest,) for digest in by_digest)):
        for one in by_digest[digest]:
            item = a.mixed(b, one)
            if item.whole == bytes(whole):
                configurations[seq] = item
    return configurations


def _layered(
    connection: Connection, a: Configuration, b: Configuration, ordered: Sequence[str]
) -> dict[int, Configuration]:
    """From both ends at once, one axis further each time, over what is stored."""
    every, configurations = frozenset(ordered), dict[int, Configuration]()
    seen: set[frozenset[str]] = {frozenset(), every}
    layers = {True: {frozenset[str]()}, False: {every}}
    while any(layers.values()) and len(seen) < MOST_MIXTURES:
        for forward, layer in layers.items():
            further = {item for one in layer for item in _further(a, one, every, forward=forward)} - seen
            seen |= further
            held = _held(connection, a, b, further)
            configurations |= held
            wholes = {item.whole for item in held.values()}
            layers[forward] = {one for one in further if a.mixed(b, one).whole in wholes} if held else set()
    return configurations


def _further(
    a: Configuration, one: frozenset[str], every: frozenset[str], *, forward: bool
) -> Iterator[frozenset[str]]:
    """What is one axis further, with what follows it and without."""
    for axis in every - one if forward else one:
        for group in ({axis}, {axis, *(a.followers(axis) & every)}):
            yield one | group if forward else one - group


def _read(connection: Connection, like: Mapping[int, Configuration]) -> dict[int, Configuration]:
    """Configurations by their numbers, each under the lane and anchor of one that it is like; others are left out."""
    rows = [
        (number, bytes(whole), list(unpacked(bytes(body))))
        for number, whole, body in NUMBERS.read(connection, ((number,) for number in like))
    ]
    wanted = {value for _, _, values in rows for value in values}
    parts = {
        seq: axis_part(axis, value) for seq, axis, value in _VALUES.read(connection, ((value,) for value in wanted))
    }
    configurations = {}
    for number, whole, values in rows:
        item = replace(like[number], parts={parts[value].axis: parts[value] for value in values if value in parts})
        if item.whole == whole:
            configurations[number] = item
    return configurations


def _launched(connection: Connection, configurations: Mapping[int, Configuration], kind: str) -> list[Between]:
    """The configurations with their launches, in the order of their numbers; one without any is left out."""
    newest = launches(connection, configurations, kind)
    good = {number: seqs for (number, outcome), seqs in newest.items() if outcome == "ok"}
    bad = dict(sorted((number, seqs[0]) for (number, outcome), seqs in newest.items() if outcome != "ok"))
    rows = entries_of(connection, [*chain(*good.values()), *bad.values()])
    between = []
    for number, item in sorted(configurations.items()):
        ok = [rows[seq] for seq in good.get(number, ()) if seq in rows]
        failed = rows.get(bad.get(number, 0))
        if ok or failed is not None:
            between.append(Between(item, max(ok, key=_speaks, default=None), len(ok), failed))
    return between


def _speaks(item: Entry) -> tuple[bool, bool, float, int]:
    """What a launch must have to stand for the others: its steps, and no offence; then it is the newest."""
    return item.rate_source == "steps", item.rate_status == "valid", item.started.timestamp(), item.seq
