"""What rules may know of the other receipts in the store, fetched for them as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    bindparam,
    func,
    literal,
    select,
    true,
    tuple_,
)

from receipts.axes.settings import LaunchSettings
from receipts.axes.shape import ShapeKey
from receipts.base.actor import same_principal
from receipts.base.errors import StoreError
from receipts.judging.facts import Facts, ReachedShape
from receipts.receipt import Document, Parsed, parse_again
from receipts.store.packing import unpack
from receipts.store.query import related as kin
from receipts.store.query.contexts import varied
from receipts.store.query.shapes import SIZE, counted, given, of_kind, spread
from receipts.store.query.signatures import earlier
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import receipts, supersessions

FAILED: Final = ("oom", "crash", "hang", "nan")
SettingsOf = Callable[[Parsed], LaunchSettings]
Once = Callable[[object, Callable[[], Any]], Any]  # what `Database.once` is
# A few launches make a ceiling; how many more had its shape changes nothing, and counting them takes time.
MOST_COUNTED: Final = 10


def _anew(_about: object, read: Callable[[], Any]) -> Any:
    return read()


def facts_of_new(
    connection: Connection, group: Sequence[Parsed], actor: str, settings: SettingsOf = LaunchSettings
) -> list[Facts]:
    """Facts for judging each of several receipts that are coming in from an actor.

    Nothing can have superseded them yet but what their submission will tell, and the shapes of a geometry and layout
    are asked for once. On PostgreSQL that is one round trip, however many they are. ``settings`` gives those of a
    receipt, which launches of one configuration may share.
    """
    known = _asked(connection, group, settings, end=True)
    within = Facts.among(group)
    now = datetime.now(UTC)
    return [
        replace(
            _with_kin([item], within, known, actor),
            now=now,
            shapes=known.shapes[known.kinds[item.id]],
            failures=tuple(earlier(known.of("failures", item.id))),
        )
        for item in group
    ]


def facts(connection: Connection, group: Sequence[Parsed], once: Once) -> Facts:
    """Facts for judging these receipts, stored or not: which are superseded, and what their lane sustained.

    Shapes are those of one lane, of the receipts' own geometries and layouts; for receipts of several lanes there are
    none. ``once`` may keep what many groups share.
    """
    known = _asked(connection, group, once=once)
    kinds = known.shapes.items() if len({lane for lane, _ in known.shapes}) == 1 else ()
    known_facts = Facts(
        superseded=_superseded(connection, group),
        shapes=tuple(
            item for kind, held in kinds for item in once(("spread", kind), partial(spread, connection, *kind, held))
        ),
        failures=tuple(dict.fromkeys(item for one in group for item in earlier(known.of("failures", one.id)))),
        now=datetime.now(UTC),
        varied={
            name: once(("varied", name), partial(varied, connection, name))
            for name in sorted({item.receipt.run.context or "" for item in group} - {""})
        },
    )
    return _with_kin(group, known_facts.beside(group), known)


Kind = tuple[str, ShapeKey]  # a lane, with a geometry and a layout: what shapes are asked for by


class _Known(NamedTuple):
    """What the store holds around some receipts: their kinds by id; shapes by kind; by what was asked, rows by id."""

    kinds: Mapping[str, Kind]
    shapes: Mapping[Kind, tuple[ReachedShape, ...]]
    rows: Mapping[kin.About, Mapping[str, Sequence[Row]]]

    def of(self, about: kin.About, receipt: str) -> Sequence[Row]:
        """The rows of one receipt."""
        return self.rows[about].get(receipt, ())


def _asked(
    connection: Connection,
    group: Sequence[Parsed],
    settings: SettingsOf = LaunchSettings,
    *,
    end: bool = False,
    once: Once = _anew,
) -> _Known:
    """Ask for all that facts are made of, in one round trip, which ends the transaction where nothing else is asked."""
    decided = {item.id: settings(item) for item in group}
    kind_of = {item.id: (item.receipt.run.lane, decided[item.id].shape) for item in group}
    kinds = list(dict.fromkeys(kind_of.values()))
    at_once = engine_of(connection).lateral
    walks: list[Ask] = [(_ALL_SHAPES, given(*kind)) for kind in kinds] if at_once else []
    questions = list(kin.questions(group, decided, together=at_once))
    answers = iter(engine_of(connection).together(connection, [*walks, *(item.ask for item in questions)], end=end))
    sustained = {
        kind: tuple(_sustained(kind, next(answers)))
        if at_once
        else once(("shapes", kind), partial(_walked, connection, kind))
        for kind in kinds
    }
    by_kind: dict[kin.About, dict[str, Sequence[Row]]] = {about: {} for about in get_args(kin.About)}
    for question, rows in zip(questions, answers, strict=True):
        by_kind[question.about].update(question.answered(rows))
    return _Known(kind_of, sustained, by_kind)


def _with_kin(group: Sequence[Parsed], known_facts: Facts, known: _Known, actor: str | None = None) -> Facts:
    """Facts with the stored witnesses of these receipts, newest first, and the launches that they witness.

    ``actor`` submits those of them that are not stored.
    """
    witnesses = {item.id: item for item in known_facts.witnesses}
    witnessed = {item.id: item for item in known_facts.witnessed}
    strangers = set[str]()
    for item in group:
        named = item.receipt.run.witness_for
        related = witnesses if named is None else witnessed
        for row in known.of("witnesses", item.id):
            other, (its, own) = _parsed(row), row[3:]
            related[other.id] = other
            if not same_principal(its, own or actor):
                strangers.add(other.id if named is None else item.id)
    # Receipts that come in together have not seen one another in the store.
    resumed = {**known_facts.resumed, **_first("resumed", group, known)}
    at_once = {
        item.id: (*known_facts.at_once.get(item.id, ()), *map(_parsed, known.of("at_once", item.id)))
        for item in group
        if item.id in known_facts.at_once or known.of("at_once", item.id)
    }
    return replace(
        known_facts,
        witnesses=tuple(witnesses.values()),
        witnessed=tuple(witnessed.values()),
        resumed=resumed,
        at_once=at_once,
        strangers=frozenset(strangers),
    )


def _first(about: kin.About, group: Sequence[Parsed], known: _Known) -> dict[str, Parsed]:
    return {item.id: _parsed(rows[0]) for item in group if (rows := known.of(about, item.id))}


def _parsed(row: Row) -> Parsed:
    receipt_id, codec, body, *_ = row
    document = Document(unpack(codec, body, receipt_id[:12]), receipt_id[:12])
    if document.id != receipt_id:
        raise StoreError(f"the bytes of {receipt_id[:12]} were changed in the store; restore a backup")
    return parse_again(document)


# Statements are made once: making one takes longer than running it.
_NAMED_BY: Final = select(receipts.c.id, receipts.c.launch, receipts.c.supersedes, receipts.c.supersedes_reason).where(
    receipts.c.supersedes.in_(bindparam("targets", expanding=True))
)
_SAID: Final = (
    select(supersessions.c.receipt, supersessions.c.successor, supersessions.c.reason)
    .where(supersessions.c.receipt.in_(bindparam("ids", expanding=True)))
    .order_by(supersessions.c.seq)
)


def _superseded(connection: Connection, group: Sequence[Parsed]) -> dict[str, tuple[str, str]]:
    """The last word on each receipt: said in the store, by a stored receipt that names it, or within the group."""
    superseded = dict(Facts.among(group).superseded)
    ids = [item.id for item in group]
    launches = {item.receipt.run.launch: item.id for item in group}
    launch_of = {item.id: item.receipt.run.launch for item in group}
    for row in connection.execute(_NAMED_BY, {"targets": [*ids, *launches]}):
        named = row.supersedes if row.supersedes in ids else launches[row.supersedes]
        if row.id != named and row.launch == launch_of[named] and row.launch != row.supersedes:
            superseded[named] = (row.id, row.supersedes_reason or "")
    for statement in connection.execute(_SAID, {"ids": ids}):
        superseded[statement.receipt] = (statement.successor or "", statement.reason)
    return superseded


_BOUNDS: Final = tuple(receipts.c[name] for name in SIZE)


def _launches_of(shape: Any) -> ScalarSelect[int]:
    """How many launches had a shape, up to a limit."""
    twin = receipts.alias("twin")
    alike = select(literal(1)).where(*(twin.c[name] == shape.c[name] for name in SIZE), *counted(twin))
    few = alike.limit(MOST_COUNTED).correlate(shape).subquery()
    return select(func.count()).select_from(few).scalar_subquery()


def _first_shape(*conditions: ColumnElement[bool]) -> Select[Any]:
    """The first shape of a kind that meets these conditions, in the index's order."""
    whole = (column.is_not(None) for column in _BOUNDS)
    return select(*_BOUNDS).where(*of_kind(), *conditions, *whole).order_by(*_BOUNDS).limit(1)


def _next_shape() -> Select[Any]:
    """The first shape from given bounds on, with how many launches had it."""
    start = tuple_(*(bindparam(column.name, type_=column.type) for column in _BOUNDS))
    return _first_shape(tuple_(*_BOUNDS) >= start).add_columns(_launches_of(receipts).label("launches"))


def _all_shapes() -> Select[Any]:
    """Every shape of a kind with how many launches had it: the steps of `_shapes`, which the server takes by itself."""
    walk = _first_shape().cte("walk", recursive=True)
    here = tuple_(*(walk.c[column.name] for column in _BOUNDS))
    following = _first_shape(tuple_(*_BOUNDS) > here).correlate(walk).lateral("following")
    walk = walk.union_all(select(*following.c).select_from(walk.join(following, true())))
    return select(*walk.c, _launches_of(walk))


_NEXT_SHAPE: Final = SqlStatement(_next_shape())
_ALL_SHAPES: Final = SqlStatement(_all_shapes())


def _sustained(kind: Kind, rows: Iterable[Row]) -> Iterator[ReachedShape]:
    return (ReachedShape(*row)._replace(key=kind[1]) for row in rows if row[-1])


def _walked(connection: Connection, kind: Kind) -> tuple[ReachedShape, ...]:
    return tuple(_sustained(kind, _shapes(connection, kind)))


def _shapes(connection: Connection, kind: Kind) -> Iterator[Row]:
    """Shapes that launches of a kind sustained: measured training that ended well, is a sample of the rate, and stands.

    One look-up a shape, however many launches had it: a lane has tens of shapes and may have a million launches.
    Shapes of which a part is unstated bound nothing and are left out.
    """
    at: dict[str, Any] = {**given(*kind), **{column.name: -1 for column in _BOUNDS}}
    while rows := _NEXT_SHAPE.all(connection, at):
        chips, sequence_length, micro_batch, depth, _ = rows[0]
        yield rows[0]
        # `>=` the next depth rather than `>` this one, for which SQLite steps over every launch of this shape.
        at.update(chips=chips, sequence_length=sequence_length, micro_batch=micro_batch, depth=depth + 1)
