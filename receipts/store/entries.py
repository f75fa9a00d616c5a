"""The row of a receipt: what is lifted out of the document for look-ups, and how it is read back.

Which launches are samples of a kind of metric follows from the columns that the first verdict fills: `unspoiled_rows`
is the SQL of `receipts.judging.grade.unspoilt`; a test holds that they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, literal, select

from receipts import metrics
from receipts.base.errors import InputError, NotFound, Problem
from receipts.judging.grade import KEPT_STEPS
from receipts.judging.verdict import ReceiptVerdict, undecided, undecided_by
from receipts.metrics import Launch
from receipts.metrics.registry import Taint
from receipts.receipt.accelerators import find_accelerator
from receipts.store.entry import COLUMNS, METRICS, NO_TAINT, PATHS, Entry
from receipts.store.query import Condition
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import receipts, supersessions


def taint_text(tainted: Collection[str]) -> str:
    """Kinds of metric as the columns `tainted` and `undecided` hold them."""
    return ",".join(kind.value for kind in Taint if kind in tainted and kind is not Taint.NONE) or NO_TAINT


def _texts(kind: Taint) -> list[ColumnElement[str]]:
    """Every text that names neither this kind nor `all`."""
    others = [item for item in Taint if item not in (Taint.ALL, Taint.NONE, kind)]
    sets = (some for count in range(len(others) + 1) for some in combinations(others, count))
    return [literal(taint_text(some)) for some in sets]


def unspoiled_rows(kind: Taint, row: Any = receipts) -> ColumnElement[bool]:
    """Whether a launch is no invalid one for this kind of metric."""
    return and_(row.c.tainted.in_(_texts(kind)), row.c.path_answer != literal("left"))


def sustained_rows(row: Any = receipts) -> ColumnElement[bool]:
    """Whether a launch sustained its shape, and stands: `sustained` of what no offense spoils."""
    return and_(
        row.c.kind == literal("training"),
        row.c.outcome == literal("ok"),
        row.c.provenance == literal("measured"),
        row.c.rate_source.in_([literal(name) for name in KEPT_STEPS]),
        unspoiled_rows(Taint.RATE, row),
        standing(row),
    )


def valid_rows(kind: Taint) -> ColumnElement[bool]:
    """Whether, beside that, no question about it was open."""
    return and_(receipts.c.undecided.in_(_texts(kind)), unspoiled_rows(kind))


def unspoiled_conditions(kind: Taint) -> tuple[Condition, ...]:
    """`unspoilt` as conditions of a list."""
    names = (Taint.ALL, kind)
    return (Condition("path_answer", "!=", "left"), *(Condition("tainted", "!=", f"*{name}*") for name in names))


class VerdictColumns(NamedTuple):
    """What the first verdict on a receipt fills columns with."""

    status: str
    path: str
    tainted: Collection[str]
    undecided: Collection[str]

    @classmethod
    def of(cls, status: str, document: Mapping[str, Any]) -> VerdictColumns:
        """Of a verdict's status and its document, as it was stored."""
        findings = [item for item in document.get("findings") or () if isinstance(item, dict)]
        named = ((item.get("level", ""), item.get("question", ""), item.get("taints") or ()) for item in findings)
        return cls(status, str(document.get("path")), document.get("tainted") or (), undecided_by(named))

    @classmethod
    def by(cls, verdict: ReceiptVerdict) -> VerdictColumns:
        """Of a verdict that was just given."""
        return cls(verdict.status, verdict.path, verdict.tainted, undecided(verdict.findings))


MAX_INDEXED: Final = 200  # characters


def promoted(launch: Launch, answer: VerdictColumns, now: datetime) -> dict[str, Any]:
    """The columns of a new row, but for `seq`, `generation` and `actor`.

    Raises InputError where a time cannot be told in UTC.
    """
    parsed, leaves = launch.parsed, launch.parsed.flat.leaves
    run = parsed.receipt.run
    row: dict[str, Any] = {column: safe(leaves.get(path)) for column, path in PATHS.items()}
    known = find_accelerator(row["accelerator"]) if row["accelerator"] else None
    if known is not None:
        row["accelerator"] = known.key
    readings = {name: launch.shown(metrics.get(name)) for name in METRICS}
    row["lane"], row["accelerator"] = cut(row["lane"]), cut(row["accelerator"])
    row.update({name: reading.value for name, reading in readings.items()})
    rate = readings["tokens_per_second"]
    row.update(
        id=parsed.id,
        status=answer.status,
        path_answer=answer.path,
        tainted=taint_text(answer.tainted),
        undecided=taint_text(answer.undecided),
        schema_version=parsed.receipt.schema_version,
        started=_utc(run.started, "run.started", parsed.source),
        finished=_utc(run.finished, "run.finished", parsed.source) if run.finished else None,
        submitted_at=now,
        rate_source=rate.source if rate.value is not None else None,
        rate_of=rate.text if rate.source in ("steps", "unsteady") else None,
        **launch.settings.shape._asdict(),
    )
    return row


def cut(text: Any) -> Any:
    """A text as indexes over several columns hold it; the document has the whole."""
    return text[:MAX_INDEXED] if isinstance(text, str) else text


def safe(value: Any) -> Any:
    """PostgreSQL holds every character but one, and the document keeps that one."""
    return value.replace("\0", "\\u0000") if isinstance(value, str) else value


def _utc(moment: datetime, at: str, source: str) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InputError(
            source, [Problem(at, f"{moment.isoformat()} is no year in UTC", "state when it ran")]
        ) from None


@lru_cache(maxsize=8)
def standing(row: Any = receipts) -> ColumnElement[bool]:
    """Whether a receipt stands: nothing superseded or retracted it, or its retraction was withdrawn since.

    A row that names the receipt itself as its successor withdraws what was stated before.
    """
    word, again = supersessions.alias("word"), supersessions.alias("again")
    back = (again.c.receipt == word.c.receipt, again.c.successor == again.c.receipt, again.c.seq > word.c.seq)
    fell = word.c.successor.is_distinct_from(word.c.receipt)
    return ~exists().where(word.c.receipt == row.c.id, fell, ~exists().where(*back))


@cache
def select_entries() -> Select[Any]:
    """Every receipt's columns with the last word on whether it was withdrawn; `entry_of` reads a row of it."""
    last = (
        select(supersessions.c.successor, supersessions.c.seq)
        .where(supersessions.c.receipt == receipts.c.id)
        .order_by(supersessions.c.seq.desc())
        .limit(1)
    )
    successor = last.with_only_columns(supersessions.c.successor).correlate(receipts).scalar_subquery()
    newest = last.with_only_columns(supersessions.c.seq).correlate(receipts).scalar_subquery()
    columns = [receipts.c[name] for name in COLUMNS]
    return select(*columns, successor.label("superseded_by"), newest.label("superseded_seq"))


def entries_of(connection: Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    """The rows of receipts by their numbers, however many; what is not stored is left out."""
    wanted = list(numbers)
    if not wanted:
        return {}
    return {entry.seq: entry for entry in _entries(connection, "seq", wanted)}


def entry_of(values: Sequence[Any]) -> Entry:
    """The values of a row of `entries`."""
    successor, reason = values[-2:]
    entry = Entry(*values[:-2])
    if reason is None or successor == entry.id:
        return entry
    return Entry(*(*values[:-2], successor or "", False))


def entries_with_ids(connection: Connection, ids: Iterable[str]) -> list[Entry]:
    """The rows of receipts by their ids, however many; what is not stored is left out."""
    return _entries(connection, "id", list(ids))


def _entries(connection: Connection, column: str, values: Sequence[Any]) -> list[Entry]:
    given = {"values": engine_of(connection).values(values)}
    return list(map(entry_of, _where_among(column).all(connection, given)))


@cache
def _where_among(column: str) -> SqlStatement:
    return SqlStatement(lambda engine: select_entries().where(engine.among_named(receipts.c[column], "values")))


def entry_with_id(connection: Connection, receipt_id: str) -> Entry:
    """The row of a receipt. Raises NotFound."""
    for entry in entries_with_ids(connection, [receipt_id]):
        return entry
    raise NotFound(f"there is no receipt {receipt_id[:12]}; see: receipts list")


def every_id(connection: Connection) -> list[str]:
    """The id of every receipt, in the order in which the store took them in."""
    return list(connection.execute(select(receipts.c.id).order_by(receipts.c.seq)).scalars())
