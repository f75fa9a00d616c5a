"""What rules may know of the other receipts in the store, fetched for them as values.

Receipts related to one are its witnesses, those that it witnesses, the launch that it resumed, those of its launch that
it replaces, launches that started on its host at its instant, and earlier failures of its signature.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from receipts.axes.replicates import LaunchSettings
from receipts.axes.shape import ShapeKey
from receipts.base.environment import same_principal
from receipts.judging.facts import Facts, ReachedShape, exact_start
from receipts.judging.witness import side_of
from receipts.receipt import Parsed, parse_again
from receipts.store.entries import cut, safe, standing, unpacked_document
from receipts.store.index import values_of
from receipts.store.query.outcomes import SIZE, ask_earlier_failures, counted, earlier_failures, given, of_kind, spread
from receipts.store.sql import Lookup, engine_of
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import axis_values, documents, placements, receipts, supersessions

Relation = Literal["taken_in", "witnesses", "failures", "resumed", "replaced", "at_once"]
# Related documents that are read for one receipt, the newest: each is parsed.
MAX_RELATED: Final = 20
_OWN: Final = receipts.alias("own")


def _related_documents(*conditions: ColumnElement[bool]) -> SqlStatement:
    """Id, packed document and submitter of each related receipt, newest first, and the receipt's own submitter.

    The newest are chosen before any document is read. They are numbered and not limited: with a limit PostgreSQL may
    walk all receipts from the newest.
    """
    place = func.row_number().over(order_by=receipts.c.seq.desc()).label("place")
    newest = select(receipts.c.seq, place).where(*conditions).subquery("newest")
    return SqlStatement(
        select(
            receipts.c.id, documents.c.codec, documents.c.body, receipts.c.actor, _own_column(_OWN.c.actor).label("own")
        )
        .select_from(newest)
        .join(receipts, receipts.c.seq == newest.c.seq)
        .join(documents, documents.c.receipt == newest.c.seq)
        .where(newest.c.place <= MAX_RELATED)
        .order_by(newest.c.seq.desc())
    )


def _own_column(column: ColumnElement[Any]) -> Any:
    return select(column).where(_OWN.c.id == bindparam("id")).scalar_subquery()


WITNESSES: Final = _related_documents(receipts.c.witness_for.in_((bindparam("id"), bindparam("launch"))), standing())
WITNESSED: Final = _related_documents(
    or_(receipts.c.id == bindparam("target"), and_(receipts.c.launch == bindparam("target"), standing()))
)
REPLACED: Final = _related_documents(
    receipts.c.launch == bindparam("launch"), receipts.c.seq < func.coalesce(_own_column(_OWN.c.seq), 2**62)
)
TAKEN_IN: Final = SqlStatement(select(receipts.c.submitted_at).where(receipts.c.id == bindparam("id")))
AT_ONCE: Final = _related_documents(
    receipts.c.started == bindparam("started"),
    receipts.c.host == bindparam("host"),
    receipts.c.launch != bindparam("launch"),
    receipts.c.seq
    < func.coalesce(_own_column(_OWN.c.seq), 2**62),  # what came first is not changed by what comes later
    standing(),
)


def related_questions(item: Parsed, settings: LaunchSettings) -> Iterator[tuple[Relation, Ask]]:
    """What to ask about a receipt with these settings; `signatures.earlier` reads the rows of failures.

    One look-up of witnesses: a witness shows its own path, and no other is asked to witness it.
    """
    run, names = item.receipt.run, {"id": item.id, "launch": safe(item.receipt.run.launch)}
    yield "taken_in", (TAKEN_IN, {"id": item.id})
    if run.witness_for is None:
        yield "witnesses", (WITNESSES, names)
    else:
        yield "witnesses", (WITNESSED, {"id": item.id, "target": safe(run.witness_for)})
    if run.resumed_from is not None:
        yield "resumed", (WITNESSED, {"id": item.id, "target": safe(run.resumed_from)})
    if run.supersedes is not None:
        yield "replaced", (REPLACED, names)
    if exact_start(item):
        yield "at_once", (AT_ONCE, {**names, "started": run.started, "host": safe(run.host)})
    failures = ask_earlier_failures(item, settings)
    if failures is not None:
        yield "failures", failures


SettingsOf = Callable[[Parsed], LaunchSettings]
Once = Callable[[object, Callable[[], Any]], Any]  # what `Database.once` is
# A few launches make a ceiling; how many more had its shape changes nothing, and counting them takes time.
MAX_COUNTED: Final = 10
# The newest launches of a context that are looked at: configurations repeat, and two values of a leaf are enough.
MAX_OF_CONTEXT: Final = 1000
_OF_CONTEXT: Final = Lookup(
    [receipts.c.context],
    [placements.c.configuration],
    joined=(placements, placements.c.receipt == receipts.c.seq),
    newest=[receipts.c.started],
)
_VALUES: Final = Lookup([axis_values.c.seq], [axis_values.c.value])


def facts_of_new(
    connection: Connection, group: Sequence[Parsed], actor: str, settings: SettingsOf = LaunchSettings
) -> list[Facts]:
    """Facts for judging each of several receipts that are coming in from an actor.

    Nothing can have superseded them yet but what their submission will tell, and the shapes of a geometry and layout
    are asked for once. On PostgreSQL that is one round trip, however many they are, which ends the transaction.
    ``settings`` gives those of a receipt, which launches of one configuration may share.
    """
    decided = {item.id: settings(item) for item in group}
    kinds = {item.id: (item.receipt.run.lane, decided[item.id].shape) for item in group}
    wanted = list(dict.fromkeys(kinds.values()))
    known, answers = _related_rows(connection, group, decided, [(_SHAPES, given(*kind)) for kind in wanted], end=True)
    shapes = {kind: _sustained(kind, rows) for kind, rows in zip(wanted, answers, strict=True)}
    within = Facts.among(group)
    now = datetime.now(UTC)
    return [
        replace(
            _with_related([item], within, known, actor),
            now=now,
            asked=True,
            shapes=shapes[kinds[item.id]],
            failures=tuple(earlier_failures(known.get((item.id, "failures"), ()))),
        )
        for item in group
    ]


def facts(connection: Connection, group: Sequence[Parsed], once: Once) -> Facts:
    """Facts for judging these receipts, stored or not: which are superseded, and what their lane sustained.

    Shapes are those of one lane, of the receipts' own geometries and layouts; for receipts of several lanes there are
    none. ``once`` may keep what many groups share.
    """
    decided = {item.id: LaunchSettings(item) for item in group}
    known, _ = _related_rows(connection, group, decided)
    lanes = {item.receipt.run.lane for item in group}
    kinds = dict.fromkeys((lane, decided[item.id].shape) for lane in lanes for item in group if len(lanes) == 1)
    failures = (failure for item in group for failure in earlier_failures(known.get((item.id, "failures"), ())))
    known_facts = Facts(
        superseded=_superseded(connection, group),
        shapes=tuple(item for kind in kinds for item in once(("shapes", kind), partial(_shapes, connection, kind))),
        failures=tuple(dict.fromkeys(failures)),
        now=datetime.now(UTC),
        asked=True,
        varied={
            name: once(("varied", name), partial(varied, connection, name))
            for name in sorted({item.receipt.run.context or "" for item in group} - {""})
        },
    )
    return _with_related(group, known_facts.beside(group), known)


def _superseded(connection: Connection, group: Sequence[Parsed]) -> dict[str, tuple[str, str]]:
    """The last word on each receipt: said in the store, by a stored receipt that names it, or within the group."""
    superseded = dict(Facts.among(group).superseded)
    ids = [item.id for item in group]
    launches = {item.receipt.run.launch: item.id for item in group}
    launch_of = {item.id: item.receipt.run.launch for item in group}
    among = engine_of(connection).among
    columns = (receipts.c[name] for name in ("id", "launch", "supersedes", "supersedes_reason"))
    for row in connection.execute(select(*columns).where(among(receipts.c.supersedes, [*ids, *launches]))):
        named = row.supersedes if row.supersedes in ids else launches[row.supersedes]
        if row.id != named and row.launch == launch_of[named] and row.launch != row.supersedes:
            superseded[named] = (row.id, row.supersedes_reason or "")
    statements = select(supersessions).where(among(supersessions.c.receipt, ids)).order_by(supersessions.c.seq)
    for statement in connection.execute(statements):
        superseded[statement.receipt] = (statement.successor or "", statement.reason)
        if statement.successor == statement.receipt:  # its retraction was withdrawn
            del superseded[statement.receipt]
    return superseded


Kind = tuple[str, ShapeKey]  # a lane, with a geometry and a layout: what shapes are asked for by
Known = Mapping[tuple[str, Relation], Sequence[Row]]  # what is stored around receipts, by id and what was asked


def _related_rows(
    connection: Connection,
    group: Sequence[Parsed],
    settings: Mapping[str, LaunchSettings],
    further: Sequence[Ask] = (),
    *,
    end: bool = False,
) -> tuple[Known, list[list[Row]]]:
    """What is stored around receipts, and the rows of further questions, in one round trip."""
    asks = {(item.id, about): ask for item in group for about, ask in related_questions(item, settings[item.id])}
    rows = engine_of(connection).together(connection, [*further, *asks.values()], end=end)
    return dict(zip(asks, rows[len(further) :], strict=True)), rows[: len(further)]


def _with_related(group: Sequence[Parsed], known_facts: Facts, known: Known, actor: str | None = None) -> Facts:
    """Facts with the stored witnesses of these receipts, newest first, and the launches that they witness.

    ``actor`` submits those of them that are not stored.
    """
    witnesses = {item.id: item for item in known_facts.witnesses}
    witnessed = {item.id: item for item in known_facts.witnessed}
    strangers, sides = set[str](), dict(known_facts.sides)
    for item in group:
        named = item.receipt.run.witness_for
        others = witnesses if named is None else witnessed
        for row in known.get((item.id, "witnesses"), ()):
            other, (its, own) = _parsed(row), row[3:]
            others[other.id] = other
            if named is None:
                sides[other.id] = sides.get(other.id, frozenset()) | {side_of(item)}
            if not same_principal(its, own or actor):
                strangers.add(other.id if named is None else item.id)
    # Receipts that come in together have not seen one another in the store.
    taken_in = {item.id: rows[0][0] for item in group if (rows := known.get((item.id, "taken_in")))}
    resumed = {item.id: _parsed(rows[0]) for item in group if (rows := known.get((item.id, "resumed")))}
    replaced = {item.id: tuple(map(_parsed, rows)) for item in group if (rows := known.get((item.id, "replaced")))}
    at_once = {
        item.id: (*known_facts.at_once.get(item.id, ()), *map(_parsed, known.get((item.id, "at_once"), ())))
        for item in group
        if item.id in known_facts.at_once or known.get((item.id, "at_once"), ())
    }
    return replace(
        known_facts,
        taken_in=taken_in,
        witnesses=tuple(witnesses.values()),
        witnessed=tuple(witnessed.values()),
        resumed={**known_facts.resumed, **resumed},
        replaced={**known_facts.replaced, **replaced},
        at_once=at_once,
        strangers=frozenset(strangers),
        sides=sides,
    )


def _parsed(row: Row) -> Parsed:
    receipt_id, codec, body, *_ = row
    return parse_again(unpacked_document(codec, body, receipt_id))


def _first_shape(row: Any, *conditions: ColumnElement[bool]) -> ScalarSelect[Any]:
    """A launch of the first shape of a kind that meets these conditions, in the index's order."""
    bounds = [row.c[name] for name in SIZE]
    whole = (column.is_not(None) for column in bounds)
    return select(row.c.seq).where(*of_kind(row), *conditions, *whole).order_by(*bounds).limit(1).scalar_subquery()


def _every_shape() -> Select[Any]:
    """Shapes that launches of a kind had, with how many show that they sustained it, up to a limit.

    One look-up a shape, however many launches had it: a lane has tens of shapes and may have a million launches.
    Shapes of which a part is unstated bound nothing and are left out.
    """
    here, following = receipts.alias("here"), receipts.alias("following")
    walk = select(_first_shape(following).label("launch")).cte("walk", recursive=True)
    # `>=` the next depth rather than `>` this one, for which SQLite steps over every launch of this shape. Sums, for it
    # looks up no more than the first of several columns where they are compared with columns as they are.
    bounds = tuple_(*(here.c[name] + int(name == SIZE[-1]) for name in SIZE))
    further = tuple_(*(following.c[name] for name in SIZE)) >= bounds
    step = select(_first_shape(following, further)).select_from(walk.join(here, here.c.seq == walk.c.launch))
    walk = walk.union_all(step)
    # How many launches had a shape, up to a limit.
    twin = receipts.alias("twin")
    alike = select(literal(1)).where(*(twin.c[name] == here.c[name] for name in SIZE), *counted(twin))
    few = alike.limit(MAX_COUNTED).correlate(here).subquery()
    return select(
        *(here.c[name] for name in SIZE), select(func.count()).select_from(few).scalar_subquery()
    ).select_from(walk.join(here, here.c.seq == walk.c.launch))


_SHAPES: Final = SqlStatement(_every_shape())


def _sustained(kind: Kind, rows: Iterable[Row]) -> tuple[ReachedShape, ...]:
    """Shapes that measured training sustained: it ended well, is a sample of the rate, and stands."""
    return tuple(ReachedShape(*row)._replace(key=kind[1]) for row in rows if row[-1])


def _shapes(connection: Connection, kind: Kind) -> tuple[ReachedShape, ...]:
    return spread(connection, *kind, _sustained(kind, _SHAPES.all(connection, given(*kind))))


def of_geometry(connection: Connection, lane: str, geometry: int) -> tuple[ReachedShape, ...]:
    """Shapes that a lane sustained with one geometry, whatever the layout."""
    constant = (receipts.c.kind == literal("training"), receipts.c.outcome == literal("ok"))
    of_lane = (receipts.c.lane == cut(safe(lane)), receipts.c.geometry == geometry)
    layouts = connection.execute(select(receipts.c.layout).where(*constant, *of_lane).distinct()).scalars()
    keys = [ShapeKey(geometry, layout) for layout in layouts]
    return tuple(shape for key in keys for shape in _shapes(connection, (lane, key)))


def varied(connection: Connection, context: str) -> frozenset[str]:
    """Axis leaves that the newest launches of a context state with two values."""
    numbers = set(_OF_CONTEXT.read(connection, [(safe(context),)], MAX_OF_CONTEXT))
    held = list(values_of(connection, (number for (number,) in sorted(numbers))).values())
    none = frozenset[int]()
    # What every configuration has does not vary.
    apart = none.union(*held) - (held[0].intersection(*held) if held else none)
    seen: dict[str, set[str]] = {}
    for (text,) in _VALUES.read(connection, ((number,) for number in sorted(apart))):
        for path, value in json.loads(text).items():
            seen.setdefault(path, set()).add(json.dumps(value))
    return frozenset(path for path, values in seen.items() if len(values) > 1)
