"""What reports and front pages ask of a store: what ran, the best of every shape, verdicts, witnesses, counts.

They ask for an interval. A receipt *ran* when its launch ended, else when it started. The engine scans a year of
launches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Select, and_, bindparam, exists, func, literal, or_, select

from receipts.metrics.registry import Taint
from receipts.store import entries
from receipts.store.database import Database, Repository, reads
from receipts.store.entries import (
    AT_ONCE,
    documents_of,
    entries_of,
    entries_with_ids,
    entry_of,
    select_entries,
    standing,
    unpack,
)
from receipts.store.entry import Entry
from receipts.store.query import Condition
from receipts.store.query.axis_index import one_axis_away
from receipts.store.query.lists import Filters, find
from receipts.store.query.terms import naming, resolve_terms
from receipts.store.sql import distinct_texts, engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import metadata, placements, purges, receipts, subjects, supersessions, verdicts

FACETS: Final = ("lane", "status", "outcome")

# Whatever changes an answer adds a row to one of these.
_LAST: Final = (*(table.c.seq for table in metadata.sorted_tables if "seq" in table.c), purges.c.at)
_STATE: Final = SqlStatement(select(*(select(func.max(column)).scalar_subquery() for column in _LAST)))


FacetCounts = Mapping[str, Sequence[tuple[str, int]]]


def store_state(database: Database) -> Hashable:
    """The state of the store: another one once anything has been written that an answer follows from."""
    with database.reading() as connection:
        return tuple(_STATE.all(connection, {})[0])


MAX_COUNTED: Final = 2000  # receipts, where they are counted one by one


class FacetTable(NamedTuple):
    """How many receipts stand by lane, status and outcome; of those looked at, where they are not ``whole``."""

    counts: Counter[tuple[str, ...]]
    whole: bool = True

    def of(self, chosen: Mapping[str, str]) -> FacetCounts:
        """Counts of each facet, the most frequent first, of receipts that have what is chosen of the others."""
        by: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        for values, count in self.counts.items():
            missed = [name for name, value in zip(FACETS, values, strict=True) if chosen.get(name, value) != value]
            for name, value in zip(FACETS, values, strict=True):
                by[name][value] += count * (not set(missed) - {name})
        return {name: (+held).most_common() for name, held in by.items()}

    def total(self, chosen: Mapping[str, str]) -> int:
        """How many have everything that is chosen."""
        wanted = [chosen.get(name) for name in FACETS]
        met = (
            n for values, n in self.counts.items() if all(w in (None, v) for w, v in zip(wanted, values, strict=True))
        )
        return sum(met)


def facets(database: Database, conditions: Sequence[Condition] = (), words: Sequence[str] = ()) -> FacetTable:
    """Receipts that meet conditions, by facet: by one statement where columns alone are asked, 60 ms at 100,000."""
    with database.reading() as connection:
        terms = resolve_terms(connection, conditions)
        if len(terms.columns) < len(conditions) or any(test.is_pattern for test in terms.columns):
            rows = list(islice(find(connection, Filters(tuple(conditions), words=tuple(words))), MAX_COUNTED))
            counts = Counter(tuple(str(getattr(row, name)) for name in FACETS) for row in rows)
            return FacetTable(counts, whole=len(rows) < MAX_COUNTED)
        columns = [receipts.c[name].concat("") for name in FACETS]  # so that no index that begins so is walked for it
        tests = [test.clause(receipts) for test in terms.columns] + [naming(connection, word) for word in words]
        counted = select(*columns, func.count()).where(*tests).group_by(*columns)
        # The few that fell are taken away: to look for each of all of them takes ten times as long.
        fell = counted.where(receipts.c.id.in_(select(supersessions.c.receipt)), ~standing())
        every, fallen = (
            Counter({tuple(values): count for *values, count in connection.execute(query)}) for query in (counted, fell)
        )
        return FacetTable(every - fallen)


ENDED: Final = func.coalesce(receipts.c.finished, receipts.c.started)
_LAUNCHES: Final = SqlStatement(
    select_entries()
    .join(placements, placements.c.receipt == receipts.c.seq)
    .where(
        placements.c.configuration == bindparam("configuration"),
        receipts.c.kind == bindparam("kind"),
        receipts.c.outcome == literal("ok"),
        bindparam("until", type_=receipts.c.started.type) >= ENDED,
        standing(),
    )
    # Spoilt ones last: however many and new, they keep no good one from being seen.
    .order_by(~entries.unspoiled_rows(Taint.RATE), placements.c.receipt.desc())
    .limit(bindparam("most", type_=receipts.c.chips.type))
)


class NumberedEntry(NamedTuple):
    """A receipt with the number of its configuration; None where the axis index does not hold it."""

    entry: Entry
    configuration: int | None


class ReportScope(NamedTuple):
    """Which receipts are looked at: those that ran until a moment, of some lanes or, where none is named, of all."""

    until: datetime
    lanes: tuple[str, ...] = ()

    @property
    def clauses(self) -> tuple[ColumnElement[bool], ...]:
        """It in SQL."""
        # Who had not started had not ended, and that is looked up.
        ended = (self.until >= ENDED, receipts.c.started <= self.until)
        return (*ended, receipts.c.lane.in_(self.lanes)) if self.lanes else ended

    def before(self, moment: datetime) -> ReportScope:
        """The same before a moment."""
        return self._replace(until=min(self.until, moment - timedelta(microseconds=1)))


class Rules(NamedTuple):
    """The rule set in force, by its digest, and the judge's version."""

    digest: str
    judge: str


# What one row of a frontier has; the accelerator is part of the geometry.
SHAPE: Final = ("lane", "geometry", "depth", "sequence_length", "chips")
_RATE: Final = receipts.c.tokens_per_second_per_chip
RESULT: Final = (  # what a frontier may hold: training that ended well, with its rate from kept steps
    receipts.c.kind == "training",
    receipts.c.outcome == "ok",
    receipts.c.provenance.in_(["measured", "quoted"]),
    receipts.c.rate_source == "steps",
    _RATE > 0,
)


class ShapeConfiguration(NamedTuple):
    """A configuration whose launches may be valid results of a shape; ``shape`` has the values of `SHAPE`.

    ``number`` is its own, or where the axis index does not hold it, less than zero: that of its one launch.
    """

    shape: tuple[Any, ...]
    number: int


_NUMBER: Final = func.coalesce(placements.c.configuration, -receipts.c.seq)


def _placed(*columns: Any) -> Select[Any]:
    """Columns of receipts beside the numbers of their configurations."""
    return select(*columns).select_from(receipts).outerjoin(placements, placements.c.receipt == receipts.c.seq)


def ranked_shapes(connection: Connection, scope: ReportScope, rules: Rules, most: int) -> list[ShapeConfiguration]:
    """Of every shape the configurations with the highest mean rate: so many repeated ones, and as many of one launch.

    A mean, for a maximum grows with the number of launches.
    """
    shape = [receipts.c[name] for name in SHAPE]
    mean, repeated = func.avg(_RATE).label("mean"), (func.count() > 1).label("repeated")
    query = _placed(*shape, _NUMBER.label("number"), mean, repeated)
    held = query.where(*scope.clauses, *_valid(rules)).group_by(*shape, _NUMBER).subquery("held")
    order = [held.c.mean.desc(), held.c.number]
    place = func.row_number().over(partition_by=[*(held.c[name] for name in SHAPE), held.c.repeated], order_by=order)
    ranked = select(held, place.label("place")).subquery("ranked")
    rows = connection.execute(select(*(ranked.c[name] for name in (*SHAPE, "number"))).where(ranked.c.place <= most))
    return [ShapeConfiguration(tuple(row[:-1]), row[-1]) for row in rows]


def results_of(
    connection: Connection, numbers: Sequence[int], scope: ReportScope, rules: Rules, most: int
) -> dict[int, list[Entry]]:
    """Launches of configurations that may be valid results, by their numbers, so many of each, the newest first."""
    place = func.row_number().over(partition_by=_NUMBER, order_by=receipts.c.seq.desc())
    among = engine_of(connection).among
    own = or_(
        among(placements.c.configuration, [number for number in numbers if number >= 0]),
        among(receipts.c.seq, [-number for number in numbers if number < 0]),
    )
    query = _placed(receipts.c.seq, _NUMBER.label("number"), place.label("place"))
    ranked = query.where(own, *scope.clauses, *_valid(rules)).subquery("ranked")
    wanted = connection.execute(select(ranked.c.seq, ranked.c.number).where(ranked.c.place <= most)).all()
    rows = entries_of(connection, [row.seq for row in wanted])
    by_number: dict[int, list[Entry]] = {}
    for seq, number in sorted(map(tuple, wanted), reverse=True):
        by_number.setdefault(number, []).append(rows[seq])
    return by_number


class CourseLaunch(NamedTuple):
    """A launch of a shape, with its rate in tokens a second a chip and the number of its configuration."""

    id: str
    number: int
    started: datetime
    session: str | None
    ran: datetime
    rate: float


def shape_course(connection: Connection, shape: Mapping[str, Any], until: datetime, most: int) -> list[CourseLaunch]:
    """The newest launches of one shape that count and ran until a moment, in the order in which they ran."""
    alike = (receipts.c[name].is_not_distinct_from(shape[name]) for name in SHAPE if name != "lane")
    query = _placed(receipts.c.id, _NUMBER, receipts.c.started, receipts.c.session, ENDED, _RATE).where(
        *alike,
        receipts.c.lane == shape["lane"],
        *RESULT,
        entries.valid_rows(Taint.RATE),
        receipts.c.started <= until,
        until >= ENDED,
        standing(),
    )
    rows = connection.execute(query.order_by(ENDED.desc(), receipts.c.seq.desc()).limit(most))
    return [CourseLaunch._make(row) for row in rows][::-1]


def _valid(rules: Rules) -> tuple[ColumnElement[bool], ...]:
    """Training launches that stand, ended well and have their rate from kept steps.

    Only those whose rate can be valid under these rules: what was so when it came in, what was not judged by them, and
    what has a witness, which may have come later.
    """
    witness = receipts.alias("witness")
    otherwise = exists().where(
        subjects.c.receipt == receipts.c.seq,
        verdicts.c.seq == subjects.c.verdict,
        verdicts.c.kind == "receipt",
        verdicts.c.rules == rules.digest,
        verdicts.c.judge == rules.judge,
        verdicts.c.status != "valid",
    )
    # Two look-ups: of one with `or` inside PostgreSQL makes a scan.
    seen = or_(*(exists().where(witness.c.witness_for == receipts.c[name]) for name in ("id", "launch")))
    return (*RESULT, or_(entries.valid_rows(Taint.RATE), and_(~otherwise), seen), standing())


def _by_name(
    connection: Connection, names: Iterable[str], *looks: tuple[Column[str], Sequence[ColumnElement[bool]]]
) -> dict[str, list[Entry]]:
    """Receipts that have one of some names in a column, and meet its conditions; by the name, newest first."""
    by_name: dict[str, dict[int, Entry]] = {}
    wanted = sorted(set(names))
    for column, conditions in looks:
        query = select_entries().where(engine_of(connection).among(column, wanted), *conditions)
        for item in map(entry_of, connection.execute(query)):
            by_name.setdefault(getattr(item, column.name), {})[item.seq] = item
    return {name: sorted(held.values(), reverse=True) for name, held in by_name.items()}


def ran_since(connection: Connection, since: datetime | None, scope: ReportScope) -> list[NumberedEntry]:
    """What ran from a moment on, or ever, superseded receipts among it; in no order."""
    query = (
        select_entries()
        .add_columns(placements.c.configuration)
        .outerjoin_from(receipts, placements, placements.c.receipt == receipts.c.seq)
        .where(*scope.clauses)
    )
    if since is not None:
        query = query.where(since <= ENDED)
    rows = connection.execute(query.execution_options(yield_per=1000))
    return [NumberedEntry(entry_of(row[:-1]), row[-1]) for row in rows]


def last_ran(connection: Connection, scope: ReportScope) -> datetime | None:
    """When the last of them ran."""
    last: datetime | None = connection.scalar(select(func.max(ENDED)).where(*scope.clauses))
    return last


def lane_names(connection: Connection) -> list[str]:
    """Every lane that has a receipt: a look-up each, however many receipts."""
    return list(connection.execute(distinct_texts(receipts.c.lane)).scalars())


def last_verdicts(connection: Connection, numbers: Sequence[int], rules: Rules | None = None) -> dict[int, bytes]:
    """The last verdict on each of some receipts, under a rule set or any, as JSON, by their numbers."""
    columns = (verdicts.c[name] for name in ("seq", "rules", "judge", "codec", "body"))
    query = (
        select(subjects.c.receipt, *columns)
        .join(verdicts, verdicts.c.seq == subjects.c.verdict)
        .where(engine_of(connection).among(subjects.c.receipt, numbers), verdicts.c.kind == "receipt")
        .order_by(verdicts.c.seq)
    )
    rows = connection.execute(query)
    last = {row.receipt: row for row in rows if rules in (None, (row.rules, row.judge))}
    return {number: unpack(row.codec, row.body, f"verdict {row.seq}") for number, row in last.items()}


def witnesses_of(connection: Connection, of: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Receipts that stand and name one of these, or its launch, as what they witness; by the name, newest first."""
    names = (name for row in of for name in (row.id, row.launch))
    return _by_name(connection, names, (receipts.c.witness_for, [standing()]))


def receipts_named(connection: Connection, names: Iterable[str]) -> dict[str, list[Entry]]:
    """Receipts of these ids, and those of these launches that stand; by the name, newest first."""
    return _by_name(connection, names, (receipts.c.id, ()), (receipts.c.launch, [standing()]))


def configuration_numbers(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Numbers of the configurations of some receipts, by their ids."""
    query = select(receipts.c.id, placements.c.configuration).join(placements, placements.c.receipt == receipts.c.seq)
    rows = connection.execute(query.where(engine_of(connection).among(receipts.c.id, ids)))
    return {row.id: row.configuration for row in rows}


def launches_of(connection: Connection, configuration: int, kind: str, until: datetime, most: int) -> list[Entry]:
    """Launches of a configuration that stand and ended well, so many, those that the store took in last first."""
    given = {"configuration": configuration, "kind": kind, "until": until, "most": most}
    return [entry_of(row) for row in _LAUNCHES.all(connection, given)]


def recent_launches(connection: Connection, scope: ReportScope, kinds: Sequence[str], most: int) -> list[Entry]:
    """The launches of one lane that started last, stand and ended well; at most so many."""
    conditions = (
        Condition("lane", "=", scope.lanes[0]),
        Condition("outcome", "=", "ok"),
        Condition("started", "<=", scope.until.isoformat()),
    )
    rows = find(connection, Filters(conditions))
    wanted = (row for row in rows if row.kind in kinds and (row.finished or row.started) <= scope.until)
    return list(islice(wanted, most))


class ReportQueries(Repository):
    """A store as a report reads it. Every method is one transaction. Raises StoreError."""

    since = reads(ran_since)
    newest = reads(last_ran)
    lanes = reads(lane_names)
    configurations = reads(ranked_shapes)
    results = reads(results_of)
    course = reads(shape_course)
    verdicts = reads(last_verdicts)
    witnesses = reads(witnesses_of)
    named = reads(receipts_named)
    entries = reads(entries_with_ids)
    place = reads(configuration_numbers)
    launches = reads(launches_of)
    recent = reads(recent_launches)
    near = reads(one_axis_away)

    def documents(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Documents of receipts by their numbers, some at a time."""
        for at in range(0, len(numbers), AT_ONCE):
            with self.database.reading() as connection:
                raw = documents_of(connection, numbers[at : at + AT_ONCE])
            yield from raw.items()
