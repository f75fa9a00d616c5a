"""What is stored around receipts that come in: all that can decide what becomes of them, asked in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, case, null, or_, select

from receipts.axes.configuration import Configuration
from receipts.store.entries import standing
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import configurations, purges, receipts, verdicts


class RelatedReceipt(NamedTuple):
    """A stored receipt that can decide what becomes of another; `superseded` is None where it stands."""

    id: str
    launch: str
    generation: int
    supersedes: str | None
    supersedes_reason: str | None
    submitted_at: datetime
    status: str
    actor: str | None
    superseded: int | None


class PurgedReceipt(NamedTuple):
    """The tombstone of a receipt that was erased."""

    id: str
    reason: str
    at: datetime


_superseded = case((standing(), null()), else_=0)
# All that can decide what becomes of receipts: themselves, their launches, whom they replace, and the actor who said
# they replace them before they came; and the tombstones of receipts.
_RELATED: Final = SqlStatement(
    lambda engine: select(
        *(receipts.c[name] for name in RelatedReceipt._fields[:-1]), _superseded.label("superseded")
    ).where(
        or_(
            engine.among_named(receipts.c.id, "ids"),
            engine.among_named(receipts.c.launch, "launches"),
            engine.among_named(receipts.c.supersedes, "named"),
        )
    )
)
_PURGED: Final = SqlStatement(
    lambda engine: select(purges.c.receipt, purges.c.reason, purges.c.at).where(
        engine.among_named(purges.c.receipt, "new")
    )
)
_CONFIGURED: Final = SqlStatement(
    lambda engine: select(configurations.c.whole, configurations.c.seq).where(
        engine.among_named(configurations.c.digest, "digests")
    )
)


class World:
    """What is stored around some receipts, and, as they are decided one by one, those of them that came before."""

    def __init__(self, neighbours: Iterable[RelatedReceipt], purged: Iterable[Row]) -> None:
        self._by_id: dict[str, RelatedReceipt] = {}
        self._by_launch: dict[str, list[str]] = {}
        self._by_target: dict[str, list[str]] = {}
        self.purged = {row[0]: PurgedReceipt(*row) for row in purged}
        for one in neighbours:
            self.add(one)

    def add(self, one: RelatedReceipt) -> None:
        """Take in a receipt, which those that are decided after it meet."""
        self._by_id[one.id] = one
        self._by_launch.setdefault(one.launch, []).append(one.id)
        if one.supersedes is not None:
            self._by_target.setdefault(one.supersedes, []).append(one.id)

    def take(
        self,
        row: Mapping[str, Any],
        actor: str | None,
        generation: int,
        replaced: Iterable[RelatedReceipt],
        *,
        stands: bool,
    ) -> None:
        """Take in a new receipt by its row, and that it replaced others."""
        for other in replaced:
            self.no_longer_stands(other.id)
        given = (row["id"], row["launch"], generation, row["supersedes"], row["supersedes_reason"])
        self.add(RelatedReceipt(*given, row["submitted_at"], row["status"], actor, None if stands else 0))

    def no_longer_stands(self, receipt_id: str) -> None:
        """Take note that a receipt was superseded or retracted."""
        self._by_id[receipt_id] = self._by_id[receipt_id]._replace(superseded=0)

    def get(self, receipt_id: str) -> RelatedReceipt | None:
        """The receipt of an id; None where it is not stored."""
        return self._by_id.get(receipt_id)

    def related(self, row: Mapping[str, Any]) -> list[RelatedReceipt]:
        """Receipts of this launch or of the one that it names, the one whose id it names, and who names this one."""
        launch, target = row["launch"], row["supersedes"]
        ids = dict.fromkeys(self._by_launch.get(launch, ()))
        if target is not None:
            ids |= dict.fromkeys([target, *self._by_launch.get(target, ())])
        ids |= dict.fromkeys([*self._by_target.get(row["id"], ()), *self._by_target.get(launch, ())])
        return [self._by_id[name] for name in ids if name in self._by_id]


def replaced_by(row: Mapping[str, Any], related: Sequence[RelatedReceipt]) -> list[RelatedReceipt]:
    """Those around a receipt that it replaces: of its launch, the one of the id that it names, or those that stand."""
    target, launch = row["supersedes"], row["launch"]
    own = (other for other in related if other.launch == launch)
    return [other for other in own if target == other.id or (target == launch and other.superseded is None)]


def replacing(row: Mapping[str, Any], related: Sequence[RelatedReceipt]) -> list[RelatedReceipt]:
    """Receipts of its launch that came earlier and said that they replace this one by its id."""
    return [other for other in related if other.supersedes == row["id"] and other.launch == row["launch"]]


def rival(
    row: Mapping[str, Any], related: Sequence[RelatedReceipt], replaced: Sequence[RelatedReceipt]
) -> RelatedReceipt | None:
    """The receipt of its launch that would stand beside this one: a launch has at most one that stands."""
    gone = {other.id for other in replaced}
    stand = (other for other in related if other.launch == row["launch"] and other.superseded is None)
    return next((other for other in stand if other.id not in gone), None)


class Existing(NamedTuple):
    """The world of some receipts, numbers of their configurations where they are known, and numbers for new rows.

    ``numbers`` gives, for each receipt that is new, that of its row and that of its verdict.
    """

    world: World
    placed: dict[bytes, int]
    numbers: Iterator[Sequence[int]]


def related(connection: Connection, rows: Sequence[Mapping[str, Any]], configured: Iterable[Configuration]) -> Existing:
    """Ask for what is stored around the rows of receipts; takes the lock, and of PostgreSQL one round trip."""
    engine = engine_of(connection)
    asks: list[Ask] = [
        *ask_related(connection, rows),
        (_CONFIGURED, {"digests": engine.values(sorted({one.digest for one in configured}))}),
        engine.numbers((receipts, verdicts), len(rows)),
    ]
    replaces = any(row["supersedes"] is not None for row in rows)
    # Numbers are given out before anything is written, so that every row can be written at once.
    *_, existing, purged, placed, numbers = engine.together(connection, [*engine.asks_locked(alone=replaces), *asks])
    world = World((RelatedReceipt(*row) for row in existing), purged)
    return Existing(world, {bytes(whole): seq for whole, seq in placed}, iter(numbers))


def ask_related(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[Ask]:
    """What to ask for the neighbours of the rows of receipts, those that are stored among them, and for tombstones."""
    ids, launches = [row["id"] for row in rows], [row["launch"] for row in rows]
    targets = [row["supersedes"] for row in rows if row["supersedes"] is not None]
    values = engine_of(connection).values
    related = {"ids": values(ids + targets), "launches": values(launches + targets), "named": values(ids + launches)}
    return [(_RELATED, related), (_PURGED, {"new": values(ids)})]
