"""Finding receipts by any axis: conditions are answered by promoted columns, the axis index, or reading documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple, get_args

from sqlalchemy import ColumnElement, Connection, UnaryExpression, func, literal, or_, select
from sqlalchemy.sql.operators import custom_op

from receipts.axes.effective import OPEN_MAPS, UNSET, effective, is_complete
from receipts.errors import NotFound, UsageError, near
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.catalogue import find as find_leaf
from receipts.receipt.catalogue import leaves
from receipts.receipt.run import Kind
from receipts.store import indexed
from receipts.store.conditions import COMPARE, NOT_STATED, Condition, condition, is_pattern, meets
from receipts.store.near import holds_all
from receipts.store.packing import unpack
from receipts.store.rows import COLUMNS, PATHS, Entry, entries, entry, standing
from receipts.store.tables import documents, receipts

__all__ = ["Condition", "Filters", "Order", "condition", "find"]

Order = Literal["newest", "oldest", "stored"]
_TIMES: Final = ("started", "finished", "submitted_at")
_CHUNK: Final = 100
_NEAR: Final = 3000  # receipts that are asked in order before all that have a value are listed


class Filters(NamedTuple):
    """What `find` looks for. Superseded and retracted receipts are left out unless `superseded` is set."""

    conditions: tuple[Condition, ...] = ()
    superseded: bool = False
    order: Order = "newest"
    limit: int | None = None


def find(connection: Connection, filters: Filters) -> Iterator[Entry]:
    """Receipts that meet every condition, in order. Documents are read only where a condition needs them.

    Raises NotFound for a name that no leaf has, UsageError for a value that a column cannot have.
    """
    clauses, rest, listed = _clauses(connection, filters)
    stands = [] if filters.superseded else [standing()]
    if not rest and filters.limit is not None:
        yield from _first(connection, filters, [*clauses, *stands], listed and [*listed, *stands])
        return
    query = entries().where(*clauses, *stands).order_by(*_ORDER[filters.order])
    rows = (entry(row) for row in connection.execute(query.execution_options(yield_per=1000)))
    if not rest:
        yield from rows
        return
    found = _narrowed(connection, rows, rest)
    for count, item in enumerate(found):
        if filters.limit is not None and count >= filters.limit:
            return
        yield item


Clause = ColumnElement[bool]


def _first(
    connection: Connection, filters: Filters, clauses: Sequence[Clause], listed: Sequence[Clause] | None
) -> list[Entry]:
    """The first receipts in order, up to the limit. ``listed`` says the same as the clauses, by a list of them all.

    What many receipts have, the newest have, too, in most cases. Where it was long ago that the last one had it, a walk
    through the order would pass by all that came since: then they are listed.
    """
    if listed is not None:
        last = select(receipts.c.started).order_by(_ORDER[filters.order][0]).limit(1).offset(_NEAR)
        bound = connection.execute(last).scalar()
        if bound is not None:
            near = receipts.c.started >= bound if filters.order == "newest" else receipts.c.started <= bound
            found = _in(connection, filters, [*clauses, near])
            return found if len(found) == filters.limit else _in(connection, filters, listed)
    return _in(connection, filters, clauses)


def _in(connection: Connection, filters: Filters, clauses: Sequence[Clause]) -> list[Entry]:
    """The first receipts that meet the clauses: their numbers alone are sorted, and then those are read."""
    order = _ORDER[filters.order]
    numbers = select(receipts.c.seq).where(*clauses).order_by(*order).limit(filters.limit)
    query = entries().where(receipts.c.seq.in_(numbers)).order_by(*order)
    return [entry(row) for row in connection.execute(query)]


def _clauses(
    connection: Connection, filters: Filters
) -> tuple[list[Clause], list[tuple[str, Condition]], list[Clause] | None]:
    """The conditions in SQL, and those that SQL cannot answer with the columns or leaves that they are on.

    Where many receipts meet what the axis index answers, the clauses also with a list of them all in place of it, for
    when it is no use to ask each receipt in order.
    """
    clauses: list[tuple[str | None, Clause]] = []
    rest: list[tuple[str, Condition]] = []
    having: list[indexed.Wanted] = []
    index = _Index(connection)
    for asked in filters.conditions:
        column = _column(asked.name)
        clause = _clause(column, asked) if column else None
        path = PATHS[column] if column in _NUMBERS else "" if column else _path(asked.name)
        wanted = index.wanted(path, asked)
        if wanted is not None and wanted.has:
            having.append(wanted)
        if clause is not None:
            clauses.append((column, clause))
        elif wanted is not None:
            clauses.append((_LISTED if wanted.has else None, wanted.clause))
        else:
            rest.append((column or path, asked))
    clauses += _kinds(filters)
    few = indexed.few(connection, having)
    if few is not None:
        return [few, *_asked_of_each(connection, clauses)], rest, None
    plain = [clause for _, clause in clauses]
    in_order = _in_order(connection, filters, clauses, common=bool(having))
    if not having or filters.order == "stored" or (in_order is None and any(name == "lane" for name, _ in clauses)):
        return in_order or plain, rest, None
    listed = _asked_of_each(connection, [item for item in clauses if item[0] != _LISTED])
    return in_order or plain, rest, [indexed.among(having), *listed]


_LISTED: Final = "listed"  # stands for the column of a clause that a list of receipts says as well


def _kinds(filters: Filters) -> Iterator[tuple[str, Clause]]:
    """Every kind there is, for a lane's launches of one outcome: it stands between the two in the index."""
    equal = {_column(item.name) for item in filters.conditions if item.operator == "=" and not is_pattern(item)}
    if {"lane", "outcome"} <= equal and "kind" not in equal:
        yield "kind", receipts.c.kind.in_(get_args(Kind))


# Columns whose every value an axis has in the same words.
_NUMBERS: Final = ("chips", "sequence_length", "micro_batch", "global_batch", "depth")


class _Index:
    """The axis index, where it holds every receipt, which is asked at most once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def _whole(self) -> bool:
        return holds_all(self._connection)

    def wanted(self, path: str, item: Condition) -> indexed.Wanted | None:
        """What a condition on a leaf asks of its axis; None where the index cannot answer it."""
        axis = indexed.axis(path) if path else None
        return indexed.wanted(self._connection, axis, path, item) if axis is not None and self._whole else None


def _in_order(
    connection: Connection, filters: Filters, clauses: Sequence[tuple[str | None, Clause]], *, common: bool
) -> list[Clause] | None:
    """The clauses, so that the first few of many are read in their order, and not sorted out of all; None as they are.

    SQLite looks a lane up and sorts what it has, be it a million receipts; PostgreSQL counts first by itself. Where
    the axis index has said that the rest is ``common``, it is enough to count the lane.
    """
    plain = [clause for _, clause in clauses]
    of_lane = [clause for column, clause in clauses if column == "lane"]
    if connection.dialect.name != "sqlite" or filters.limit is None or not of_lane:
        return None
    asked = of_lane if common else plain
    several = select(literal(1)).select_from(receipts).where(*asked).limit(indexed.FEW + 1).subquery()
    if connection.execute(select(func.count()).select_from(several)).scalar_one() <= indexed.FEW:
        return None
    # SQLite looks nothing up by an expression, and `+` changes nothing.
    return [_unsought(clause) if column == "lane" else clause for column, clause in clauses]


def _asked_of_each(connection: Connection, clauses: Sequence[tuple[str | None, Clause]]) -> list[Clause]:
    """The clauses, so that SQLite asks them of each receipt of a list and looks no lane up beside it."""
    sqlite = connection.dialect.name == "sqlite"
    return [_unsought(clause) if sqlite and column in COLUMNS else clause for column, clause in clauses]


def _unsought(clause: Clause) -> Clause:
    return UnaryExpression(clause.self_group(), operator=custom_op("+"), type_=clause.type)


_ORDER: Final[Mapping[str, tuple[Any, ...]]] = {
    "newest": (receipts.c.started.desc(), receipts.c.seq.desc()),
    "oldest": (receipts.c.started, receipts.c.seq),
    "stored": (receipts.c.seq,),
}


def _column(name: str) -> str | None:
    """The column of that name, or that a leaf's path is promoted to."""
    if name in COLUMNS:
        return name
    return next((column for column, path in PATHS.items() if path == name), None) or _PROMOTED.get(name)


_PROMOTED: Final = {
    "run.started": "started",
    "run.finished": "finished",
    "schema_version": "schema_version",
    "path": "path_answer",
    "submitted": "submitted_at",
}


@lru_cache(maxsize=256)
def _path(name: str) -> str:
    """The full path of a leaf: given whole, or by its last part where one leaf alone ends so."""
    if find_leaf(name) is not None or name.startswith("path."):
        return name
    ending = sorted({leaf.path for leaf in leaves() if leaf.path.split(".")[-1] == name and "[]" not in leaf.path})
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise NotFound(f"{name} is the end of {', '.join(ending)}; write one of them")
    hint = near(name, [*COLUMNS, *(leaf.path for leaf in leaves())])
    raise NotFound(f"there is no column or leaf {name!r}; see: receipts axes{hint}")


def _clause(column: str, item: Condition) -> ColumnElement[bool] | None:
    """The condition in SQL; None for a pattern, which SQL engines read each in their own way."""
    target = receipts.c[column]
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        return target.is_(None) if item.operator == "=" else target.is_not(None)
    if is_pattern(item):
        return None
    value = _typed(column, item)
    compared: ColumnElement[bool] = COMPARE[item.operator](target, value)
    return or_(compared, target.is_(None)) if item.operator == "!=" else compared


def _typed(column: str, item: Condition) -> Any:
    if column in _TIMES:
        return _moment(item)
    kind = receipts.c[column].type.python_type
    if kind is str:
        return _accelerator(item.value) if column == "accelerator" else item.value
    try:
        return kind(item.value.replace(",", "").replace("_", ""))
    except ValueError:
        raise UsageError(f"{item}: {item.name} is a number; write {item.name}{item.operator}8") from None


def _accelerator(value: str) -> str:
    from receipts.accelerators import find as find_accelerator

    known = find_accelerator(value)
    return known.key if known else value


def _moment(item: Condition) -> datetime:
    try:
        moment = datetime.fromisoformat(item.value)
    except ValueError:
        raise UsageError(f"{item}: write a time such as {item.name}{item.operator}2026-03-01") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _narrowed(
    connection: Connection, rows: Iterable[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    """Rows that meet conditions which SQL cannot answer; documents are fetched a hundred at a time."""
    on_columns = [(name, item) for name, item in conditions if name in COLUMNS]
    on_leaves = [(name, item) for name, item in conditions if name not in COLUMNS]
    chunk: list[Entry] = []
    for row in rows:
        if all(meets(getattr(row, name), item) for name, item in on_columns):
            if not on_leaves:
                yield row
                continue
            chunk.append(row)
        if len(chunk) == _CHUNK:
            yield from _read(connection, chunk, on_leaves)
            chunk = []
    yield from _read(connection, chunk, on_leaves)


def _read(
    connection: Connection, chunk: Sequence[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    if not chunk:
        return
    query = select(documents).where(documents.c.receipt.in_([row.seq for row in chunk]))
    stored = {row.receipt: row for row in connection.execute(query)}
    for row in chunk:
        raw = unpack(stored[row.seq].codec, stored[row.seq].body, row.id[:12])
        parsed = parse(Document(raw, row.id[:12]))
        if all(meets(value_of(parsed, path), item) for path, item in conditions):
            yield row


def value_of(parsed: Parsed, path: str) -> Any:
    """The value at a leaf: what was effective where it is an axis, else what is stated; None where it is not stated."""
    value = effective(parsed).get(path)
    if value == UNSET and (name := path.partition(".")[0]) in OPEN_MAPS and is_complete(parsed, name):
        return None  # it says what its absence says
    if value is not None:
        return value
    stated = parsed.stated
    for name in (path, f"{path}.value", f"{path}.version"):
        if name in stated:
            return stated[name]
    return None
