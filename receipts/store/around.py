"""What is stored around receipts that come in: all that can decide what becomes of them, asked in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    String,
    any_,
    bindparam,
    func,
    literal,
    or_,
    select,
    union_all,
)

from receipts.axes.configuration import Configuration
from receipts.store.arrays import Array
from receipts.store.lock import ALONE, TOGETHER
from receipts.store.statement import Driven, Row, Statement, together
from receipts.store.tables import configurations, purges, receipts, supersessions, verdicts


class Neighbour(NamedTuple):
    """A stored receipt that can decide what becomes of another; `said` is None where it stands."""

    id: str
    launch: str
    generation: int
    supersedes: str | None
    supersedes_reason: str | None
    submitted_at: datetime
    status: str
    said: int | None


PURGED: Final = "purged"
_said = select(supersessions.c.seq).where(supersessions.c.receipt == receipts.c.id).limit(1).scalar_subquery()


def _neighbours(
    ids: ColumnElement[bool], *others: ColumnElement[bool], erased: ColumnElement[bool]
) -> CompoundSelect[Any]:
    """All that can decide what becomes of receipts: themselves, their launches, whom they replace, and whoever said
    that they replace them before they came."""
    return union_all(
        select(*(receipts.c[name] for name in Neighbour._fields[:-1]), _said.label("said")).where(or_(ids, *others)),
        select(
            purges.c.receipt,
            literal(""),
            literal(-1),
            literal(None),
            purges.c.reason,
            purges.c.at,
            literal(PURGED),
            literal(None),
        ).where(erased),
    )


def _among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return column == any_(bindparam(name, type_=Array(String())))


_NAMED_BY: Final = receipts.c.supersedes.in_([bindparam("id"), bindparam("launch")])
_ERASED: Final = purges.c.receipt == bindparam("id")
_NEIGHBOURS: Final = Statement(
    _neighbours(receipts.c.id == bindparam("id"), receipts.c.launch == bindparam("launch"), _NAMED_BY, erased=_ERASED)
)
_NEIGHBOURS_OF_SUCCESSOR: Final = Statement(
    _neighbours(
        receipts.c.id.in_([bindparam("id"), bindparam("target")]),
        receipts.c.launch.in_([bindparam("launch"), bindparam("target")]),
        _NAMED_BY,
        erased=_ERASED,
    )
)
_NEIGHBOURS_OF_MANY: Final = Statement(
    _neighbours(
        _among(receipts.c.id, "ids"),
        _among(receipts.c.launch, "launches"),
        _among(receipts.c.supersedes, "named"),
        erased=_among(purges.c.receipt, "new"),
    )
)
_CONFIGURED: Final = Statement(
    select(configurations.c.whole, configurations.c.seq).where(
        configurations.c.digest == bindparam("digest"), configurations.c.whole == bindparam("whole")
    )
)
_CONFIGURED_OF_MANY: Final = Statement(
    select(configurations.c.whole, configurations.c.seq).where(
        configurations.c.digest == any_(bindparam("digests", type_=Array(configurations.c.digest.type)))
    )
)
_HELD_COLUMNS: Final = (*(receipts.c[name] for name in ("id", "label", "status", "submitted_at")), _said.label("said"))
_HELD: Final = Statement(select(*_HELD_COLUMNS).where(receipts.c.id == bindparam("id")))
_HELD_OF_MANY: Final = Statement(select(*_HELD_COLUMNS).where(_among(receipts.c.id, "ids")))
# Numbers are given out before anything is written, so that every row can be written at once. On PostgreSQL writers
# pass side by side, and a number that is not used is left out; SQLite has one writer at a time.
_LAST: Final = Statement(
    select(
        select(func.coalesce(func.max(receipts.c.seq), 0)).scalar_subquery(),
        select(func.coalesce(func.max(verdicts.c.seq), 0)).scalar_subquery(),
    )
)
_NUMBERS: Final = Statement(
    # A sequence's name is asked for once, and not for every number.
    select(
        func.nextval(select(func.pg_get_serial_sequence("receipts", "seq")).scalar_subquery()),
        func.nextval(select(func.pg_get_serial_sequence("verdicts", "seq")).scalar_subquery()),
    ).select_from(func.generate_series(1, bindparam("count", type_=receipts.c.chips.type)))
)


class World:
    """What is stored around some receipts, and, as they are decided one by one, those of them that came before."""

    def __init__(self, found: Iterable[Neighbour]) -> None:
        self._by_id: dict[str, Neighbour] = {}
        self._by_launch: dict[str, list[str]] = {}
        self._by_target: dict[str, list[str]] = {}
        self.purged: dict[str, Neighbour] = {}
        for one in found:
            if one.status == PURGED:
                self.purged[one.id] = one
            elif one.id not in self._by_id:
                self.add(one)

    def add(self, one: Neighbour) -> None:
        """Take in a receipt, which those that are decided after it meet."""
        self._by_id[one.id] = one
        self._by_launch.setdefault(one.launch, []).append(one.id)
        if one.supersedes is not None:
            self._by_target.setdefault(one.supersedes, []).append(one.id)

    def no_longer_stands(self, receipt_id: str) -> None:
        """Take note that a receipt was superseded or retracted."""
        self._by_id[receipt_id] = self._by_id[receipt_id]._replace(said=0)

    def get(self, receipt_id: str) -> Neighbour | None:
        """The receipt of an id; None where it is not stored."""
        return self._by_id.get(receipt_id)

    def around(self, row: Mapping[str, Any]) -> list[Neighbour]:
        """Receipts of this launch or of the one that it names, the one whose id it names, and who names this one."""
        launch, target = row["launch"], row["supersedes"]
        ids = dict.fromkeys(self._by_launch.get(launch, ()))
        if target is not None:
            ids |= dict.fromkeys([target, *self._by_launch.get(target, ())])
        ids |= dict.fromkeys([*self._by_target.get(row["id"], ()), *self._by_target.get(launch, ())])
        return [self._by_id[name] for name in ids if name in self._by_id]


class Around(NamedTuple):
    """The world of some receipts, numbers of their configurations where they are known, and numbers for new rows.

    ``numbers`` gives, for each receipt that is new, that of its row and that of its verdict.
    """

    world: World
    placed: dict[bytes, int]
    numbers: Iterator[Sequence[int]]


def around(connection: Driven, rows: Sequence[Mapping[str, Any]], configured: Iterable[Configuration]) -> Around:
    """Ask for what is stored around the rows of receipts; takes the lock, and of PostgreSQL one round trip."""
    asked = {one.whole: one for one in configured}
    if connection.dialect.name == "postgresql":
        return _in_one(connection, rows, [one.digest for one in asked.values()])
    found = [Neighbour(*other) for row in rows for other in _around_one(connection, row)]
    keys = [{"digest": one.digest, "whole": one.whole} for one in asked.values()]
    placed = [pair for given in keys for pair in _CONFIGURED.all(connection, given)]
    ((receipt, verdict),) = _LAST.all(connection, {})
    return Around(World(found), dict(placed), ((receipt + step, verdict + step) for step in range(1, len(rows) + 1)))


def _around_one(connection: Driven, row: Mapping[str, Any]) -> list[Row]:
    names = {"id": row["id"], "launch": row["launch"]}
    if row["supersedes"] is None:
        return _NEIGHBOURS.all(connection, names)
    return _NEIGHBOURS_OF_SUCCESSOR.all(connection, {**names, "target": row["supersedes"]})


def _in_one(connection: Driven, rows: Sequence[Mapping[str, Any]], digests: Sequence[int]) -> Around:
    ids, launches = [row["id"] for row in rows], [row["launch"] for row in rows]
    targets = [row["supersedes"] for row in rows if row["supersedes"] is not None]
    names = {"ids": ids + targets, "launches": launches + targets, "named": ids + launches, "new": ids}
    _, found, placed, numbers = together(
        connection,
        [
            (ALONE if targets else TOGETHER, {}),
            (_NEIGHBOURS_OF_MANY, names),
            (_CONFIGURED_OF_MANY, {"digests": digests}),
            (_NUMBERS, {"count": len(rows)}),
        ],
    )
    return Around(World(Neighbour(*row) for row in found), dict(placed), iter(numbers))


class Held(NamedTuple):
    """A stored receipt as one is told of who brings its bytes again. ``at`` is when it was stored, in UTC."""

    id: str
    label: str | None
    status: str
    at: datetime
    said: int | None

    @property
    def name(self) -> str:
        """What to call it in a sentence: its label, else the start of its id."""
        return self.label or self.id[:12]


def held(connection: Driven, ids: Sequence[str]) -> dict[str, Held]:
    """Those of some ids that are stored; of PostgreSQL in one round trip."""
    if connection.dialect.name == "postgresql":
        (rows,) = together(connection, [(_HELD_OF_MANY, {"ids": list(ids)})], end=True)
    else:
        rows = [row for name in dict.fromkeys(ids) for row in _HELD.all(connection, {"id": name})]
    return {one.id: one for one in map(Held._make, rows)}
