"""What the axis index answers: receipts one axis away, launches of a configuration, and what lies between two.

Between two configurations lie those that have each axis as one or as the other has it. A mixture's digest is a sum,
so that all of them are asked for at once: 2^k look-ups for k axes, none of which reads a row that is not wanted.
`holds_lane` and `holds_all` tell whether the index holds every receipt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, combinations
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, ScalarSelect, bindparam, exists, literal, or_, select

from receipts.axes.catalogue import edition, edition_of
from receipts.axes.configuration import AxisPart, Configuration, axis_part
from receipts.axes.effective import OPEN_MAPS
from receipts.receipt import Parsed
from receipts.receipt.document import UNFAILED
from receipts.store.entries import cut, entries_of, safe, standing
from receipts.store.entry import Entry
from receipts.store.index import NUMBERS, OF_VALUE, key_of, unpacked, values_of
from receipts.store.sql import Lookup
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import axes, axis_values, configurations, placements, receipts

# Configurations of one axis, and launches of one configuration, that are looked at, the newest.
MAX_VALUES: Final = 20
MAX_LAUNCHES: Final = 20


class Neighbour(NamedTuple):
    """A configuration that may be one axis away: the axis, and a launch of it of each outcome that stands.

    The newest within a session's reach of the receipt, else the newest.

    `launches` is how many of that outcome are among its newest `MAX_LAUNCHES`; `configuration` is its number.
    """

    axis: str
    entry: Entry
    launches: int
    configuration: int


_SHARED: Final = Lookup(
    [axes.c.leave_one_out], [axes.c.configuration, axes.c.leave_one_out], newest=[axes.c.configuration]
)
_BY_DIGEST: Final = Lookup(
    [configurations.c.digest], [configurations.c.seq, configurations.c.digest], newest=[configurations.c.seq]
)
AXIS: Final = Lookup([axis_values.c.seq], [axis_values.c.seq, axis_values.c.axis])
_LAUNCHES: Final = Lookup(
    [placements.c.configuration],
    [
        *(placements.c.configuration, placements.c.at),
        *(receipts.c.seq, receipts.c.kind, receipts.c.outcome, receipts.c.launch),
    ],
    joined=(receipts, receipts.c.seq == placements.c.receipt),
    where=standing(),
    newest=[placements.c.at, placements.c.receipt],
)


def neighbours(
    connection: Connection, parsed: Parsed, of: Configuration, axis: str | None = None, limit: int = MAX_VALUES
) -> list[Neighbour]:
    """Launches of a receipt's kind that may differ from it in one axis, or in this one, newest first by axis.

    ``of`` is its configuration; the receipt need not be stored.

    At most ``limit`` configurations an axis. What the index finds is compared value by value; two receipts of which
    it says that they are one axis apart can still differ in what only `difference` reads.
    """
    run = parsed.receipt.run
    by_configuration = one_axis_away(connection, of, axis, limit)
    newest = launches(connection, by_configuration, run.kind, run.launch, run.started)
    rows = entries_of(connection, (seqs[0] for seqs in newest.values()))
    near = [
        Neighbour(by_configuration[number], rows[seqs[0]], len(seqs), number)
        for (number, _), seqs in newest.items()
        if seqs[0] in rows
    ]
    return sorted(near, key=lambda item: (item.axis, -item.entry.started.timestamp(), -item.entry.seq))


def launches(
    connection: Connection, of: Iterable[int], kind: str, but: str | None = None, near: datetime | None = None
) -> dict[tuple[int, str], list[int]]:
    """Numbers of the newest launches that stand of configurations, by configuration and outcome, the newest first.

    Those of a kind; ``but`` is a launch that is left out. Those that started within 12 hours of ``near`` come first.
    """
    from receipts.stats.sessions import APART

    newest: dict[tuple[int, str], list[tuple[bool, int]]] = {}
    keys = ((number,) for number in of)
    moment = near.timestamp() if near is not None else 0.0
    for number, at, seq, has_kind, outcome, launch in _LAUNCHES.read(connection, keys, MAX_LAUNCHES):
        if has_kind == kind and launch != but:
            far = near is not None and abs(at / 1e6 - moment) > APART
            newest.setdefault((number, outcome), []).append((far, seq))
    return {place: [seq for _, seq in sorted(rows, key=lambda row: row[0])] for place, rows in newest.items()}


def one_axis_away(connection: Connection, of: Configuration, axis: str | None, limit: int) -> dict[int, str]:
    """Numbers of configurations that may differ in one axis, with the axis; the newest ``limit`` of each axis."""
    # What shares a digest without an axis, this one's own among them.
    axes_left_out = [axis] if axis is not None else [*of.parts, *(name for name in of.follow if name not in of.parts)]
    candidates = {number for number, _ in sharing(connection, [(of, name) for name in axes_left_out], limit)}
    if axis is None:
        # Another may have a key that this one does not: then leaving it out leaves this one.
        candidates |= {row[0] for row in _SHARED.read(connection, [(of.digest,)], limit + 1)}
    # And this one may have a key that another does not.
    lacking = {of.without(name) for name in axes_left_out if name.partition(".")[0] in OPEN_MAPS}
    keys = [(digest,) for digest in lacking if digest is not None]
    candidates |= {row[0] for row in _BY_DIGEST.read(connection, keys, limit + 1)}
    # They are compared by the values themselves: equal digests are only a hint.
    own = {number: part.axis for number, part in own_values(connection, of)}
    unheld = set(of.parts) - set(own.values())
    differing: dict[int, tuple[frozenset[int], set[str]]] = {}
    for number, held in values_of(connection, candidates).items():
        differing[number] = held - own.keys(), {own[value] for value in own.keys() - held} | unheld
    foreign = {value for values, _ in differing.values() for value in values}
    names: dict[int, str] = dict(AXIS.read(connection, ((value,) for value in foreign)))
    numbers: dict[str, list[int]] = {}
    for number, (values, missing) in differing.items():
        apart = missing | {names[value] for value in values if value in names}
        first = next((name for name in sorted(apart) if apart <= {name, *of.followers(name)}), None)
        if first is not None and axis in (None, first):
            numbers.setdefault(first, []).append(number)
    return {number: name for name, several in numbers.items() for number in sorted(several)[-limit:]}


def sharing(
    connection: Connection, axes_left_out: Sequence[tuple[Configuration, str]], limit: int
) -> list[tuple[int, Configuration]]:
    """Numbers of configurations that share one's digest without an axis, each with the one that it is like.

    The newest ``limit`` of each digest.
    """
    left = {digest: of for of, axis in axes_left_out if (digest := of.without(axis)) is not None}
    rows = _SHARED.read(connection, [(digest,) for digest in left], limit + 1)
    return [(number, left[digest]) for number, digest in rows]


def own_values(connection: Connection, of: Configuration) -> Iterator[tuple[int, AxisPart]]:
    """Numbers of a configuration's values, with their parts, as far as the store holds them."""
    by_key = {key_of(part): part for part in of.parts.values()}
    for axis, digest, seq in OF_VALUE.read(connection, by_key):
        yield seq, by_key[axis, bytes(digest)]


def _ends(*of: ColumnElement[bool]) -> list[ScalarSelect[Any]]:
    """The first and the last catalogue of configurations: PostgreSQL reads an index for each, and no more."""
    target = configurations.c.catalogue
    return [select(target).where(*of).order_by(end).limit(1).scalar_subquery() for end in (target, target.desc())]


def _is_whole() -> ColumnElement[bool]:
    """Whether the oldest receipt is placed: of receipts that came before the index it is placed last."""
    oldest = select(receipts.c.seq).order_by(receipts.c.seq).limit(1).scalar_subquery()
    return or_(exists().where(placements.c.receipt == oldest), ~exists(select(literal(1)).select_from(receipts)))


_OF_LANE: Final = SqlStatement(select(*_ends(configurations.c.lane == bindparam("lane")), _is_whole()))
_OF_ALL: Final = SqlStatement(select(*_ends(), _is_whole()))


def holds_lane(connection: Connection, of: Configuration) -> bool:
    """Whether the index holds every receipt of a configuration's lane, as it is read now."""
    ((first, last, whole),) = _OF_LANE.all(connection, {"lane": cut(safe(of.lane))})
    return bool(whole) and {first, last} <= {None, of.catalogue}


def holds_all(connection: Connection) -> bool:
    """Whether the index holds every receipt, with its axes as they are read now."""
    ((first, last, whole),) = _OF_ALL.all(connection, {})
    # An edition is the head of its catalogues, so that the ends speak for all between them.
    return bool(whole) and {edition_of(end) for end in (first, last) if end is not None} <= {edition()}


MAX_AT_ONCE: Final = 12  # axes up to which every mixture is asked for
MAX_MIXTURES: Final = 20_000  # mixtures that are asked for beyond that, layer by layer from both ends
MAX_DETOURS: Final = 8  # configurations that have an axis as neither side has it, the newest


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

    Every one of them for `MAX_AT_ONCE` axes and fewer; beyond, those that a row of stored ones joins to either side.
    ``beyond``: those instead that have one of the axes as neither side has it.
    """
    ordered = sorted(differing)
    if beyond:
        # At most `MAX_VALUES` for each mixture and axis, the newest. Asks 2^k · k/2 times for k axes.
        mixed = {(axis, one): a.mixed(b, one) for axis in ordered for one in _subsets(ordered) if axis not in one}
        like = dict(sharing(connection, [(item, axis) for (axis, _), item in mixed.items()], MAX_DETOURS))
        known = {item.whole for item in mixed.values()} | {a.whole, b.whole}
        between = {number: item for number, item in _read(connection, like).items() if item.whole not in known}
    elif len(ordered) <= MAX_AT_ONCE:
        between = _held(connection, a, b, (one for one in _subsets(ordered) if 0 < len(one) < len(ordered)))
    else:
        # From both ends at once, one axis further each time, over what is stored.
        every, between = frozenset(ordered), dict[int, Configuration]()
        seen: set[frozenset[str]] = {frozenset(), every}
        layers = {True: {frozenset[str]()}, False: {every}}
        while any(layers.values()) and len(seen) < MAX_MIXTURES:
            for forward, layer in layers.items():
                further = {item for one in layer for item in _further(a, one, every, forward=forward)} - seen
                seen |= further
                held = _held(connection, a, b, further)
                between |= held
                wholes = {item.whole for item in held.values()}
                layers[forward] = {one for one in further if a.mixed(b, one).whole in wholes} if held else set()
    return _launched(connection, between, kind)


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
    good = {number: seqs for (number, outcome), seqs in newest.items() if outcome in UNFAILED}
    bad = dict(sorted((number, seqs[0]) for (number, outcome), seqs in newest.items() if outcome not in UNFAILED))
    rows = entries_of(connection, [*chain(*good.values()), *bad.values()])
    between = []
    for number, item in sorted(configurations.items()):
        ok = [rows[seq] for seq in good.get(number, ()) if seq in rows]
        failed = rows.get(bad.get(number, 0))
        if ok or failed is not None:
            # One with its steps, and without an offense, stands for the others; then it is the newest.
            ok.sort(key=lambda at: (at.rate_source == "steps", at.rate_status == "valid", at.started, at.seq))
            between.append(Between(item, ok[-1] if ok else None, len(ok), failed))
    return between
