"""A receipt in the store: its packed document, and the row that is lifted out of it for look-ups.

Which launches are samples of a kind of metric follows from the columns that the first verdict fills: `unspoiled_rows`
is the SQL of `receipts.judging.grade.unspoilt`; a test holds that they agree. The client packs documents, so that the
server and the wire carry a third; conditions that no index holds are tested on them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import combinations, islice
from typing import Any, Final, NamedTuple, cast

from isal import isal_zlib
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, insert, literal, select

from receipts import metrics
from receipts.axes.configuration import input_value
from receipts.axes.effective import OPEN_MAPS, UNSET, effective, is_complete
from receipts.axes.inputs import PREFIX
from receipts.base.errors import InputError, NotFound, Problem, StoreError
from receipts.base.untrusted_text import parse_json
from receipts.judging.grade import KEPT_STEPS
from receipts.judging.verdict import ReceiptVerdict, undecided, undecided_by
from receipts.metrics import Launch
from receipts.metrics.registry import Taint
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.store.database import By
from receipts.store.entry import COLUMNS, METRICS, NO_TAINT, PATHS, Entry
from receipts.store.query import NOT_STATED, Condition, meets, number
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import documents, extracts, receipts, supersessions


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


# zlib's format, which every zlib reads. ISA-L writes it five times as fast: a 15 kB receipt (64 chips, 300 steps) takes
# 0.02 ms for 4.7 kB, where zlib takes 0.11 ms for 4.8 kB at level 3. ISA-L's level 3 takes half as long again for 1 %.
CODEC: Final = "zlib"
_LEVEL: Final = 1
AT_ONCE: Final = 250  # rows with their bodies that are read together: some 1 MB packed, 4 MB unpacked
_DAMAGED: Final = cast("type[Exception]", isal_zlib.error)  # its stubs have it for an instance


def pack(raw: bytes) -> bytes:
    """The bytes, packed as `CODEC`."""
    return isal_zlib.compress(raw, _LEVEL)


def unpack(codec: str, body: bytes, what: str) -> bytes:
    """The bytes as they were. Raises StoreError naming ``what`` where they are damaged or packed by a newer version."""
    if codec != CODEC:
        raise StoreError(f"{what} is packed as {codec}, which this version cannot read; upgrade frontier-receipts")
    try:
        return isal_zlib.decompress(body)
    except _DAMAGED as error:
        raise StoreError(f"{what} is damaged in the store ({error}); restore a backup") from error


def unpacked_document(codec: str, body: bytes, receipt_id: str) -> Document:
    """The document of a receipt. Raises StoreError where it has other bytes than its id says."""
    short = receipt_id[:12]
    kept = Document(unpack(codec, body, short), short)
    if kept.id != receipt_id:
        raise StoreError(f"the bytes of {short} were changed in the store; restore a backup")
    return kept


class Extract(NamedTuple):
    """What a plugin made of a file of evidence: the file's SHA-256, what it is, and its bytes."""

    digest: str
    kind: str
    raw: bytes


def keep_extracts(connection: Connection, _by: By, receipt: str, items: Sequence[Extract]) -> None:
    """Keep extracts of the files that a stored receipt lists; those that it has stay as they are."""
    number = connection.execute(select(receipts.c.seq).where(receipts.c.id == receipt)).scalar_one()
    held = select(extracts.c.digest, extracts.c.kind).where(extracts.c.receipt == number)
    there = {(digest, kind) for digest, kind in connection.execute(held)}
    rows = [
        {"receipt": number, "digest": item.digest, "kind": item.kind, "codec": CODEC, "body": pack(item.raw)}
        for item in dict.fromkeys(items)
        if (item.digest, item.kind) not in there
    ]
    if rows:
        connection.execute(insert(extracts), rows)


def extracts_of(connection: Connection, receipt: str, kind: str) -> list[Extract]:
    """The extracts of one kind of a receipt's files, by their digests. Raises StoreError for a damaged one."""
    query = (
        select(extracts.c.digest, extracts.c.codec, extracts.c.body)
        .join(receipts, receipts.c.seq == extracts.c.receipt)
        .where(receipts.c.id == receipt, extracts.c.kind == kind)
        .order_by(extracts.c.digest)
    )
    return [
        Extract(digest, kind, unpack(codec, body, digest[:12])) for digest, codec, body in connection.execute(query)
    ]


def readable_body(codec: str, body: bytes) -> tuple[bytes | None, str]:
    """What a packed body holds, or why it cannot be read."""
    try:
        return unpack(codec, body, "it"), ""
    except (StoreError, TypeError) as error:
        return None, str(error).partition(";")[0]


def json_body(codec: str, body: bytes) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON object that a packed body holds, or why it cannot be read."""
    raw, problem = readable_body(codec, body)
    if raw is None:
        return None, problem
    try:
        tree = parse_json(raw)
    except ValueError as error:
        return None, f"it is not JSON: {error}"
    return (tree, "") if isinstance(tree, dict) else (None, "it is not a JSON object")


_PLAIN: Final = re.compile(r"[\w .:@-]{3,}", re.ASCII)  # as it is in any JSON that does not escape it


def meeting_leaves(
    connection: Connection, rows: Iterator[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    """Those of some receipts whose documents meet conditions on leaves; some are read at a time."""
    # What a document that meets them has in its bytes, unless it escapes what need not be escaped: to look for it is a
    # twentieth of the work of reading the document.
    needles = []
    for path, item in conditions:
        leaf = find_leaf(path)
        unset = item.operator == "!=" or item.value == NOT_STATED
        if unset or leaf is None or leaf.role in (Role.AXIS, Role.DERIVED):
            continue
        needles.append(b'"%s"' % path.rpartition(".")[2].encode())
        if item.operator == "=" and _PLAIN.fullmatch(item.value) and number(item.value) is None:
            needles.append(item.value.encode())
    while chunk := list(islice(rows, AT_ONCE)):
        stored = documents_of(connection, [row.seq for row in chunk])
        for row in chunk:
            raw = stored[row.seq]
            if not all(needle in raw for needle in needles) and rb"\u" not in raw:
                continue
            parsed = parse(Document(raw, row.id[:12]))
            if all(meets(value_of(parsed, path), item) for path, item in conditions):
                yield row


def documents_of(connection: Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """The bytes of receipts by their numbers, some hundred; what is not stored is left out. Raises StoreError."""
    query = select(documents.c.receipt, documents.c.codec, documents.c.body)
    rows = connection.execute(query.where(engine_of(connection).among(documents.c.receipt, numbers)))
    return {number: unpack(codec, body, f"document {number}") for number, codec, body in rows}


def value_of(parsed: Parsed, path: str) -> Any:
    """The value at a leaf: what was effective where it is an axis, else what is stated; None where it is not stated."""
    value = effective(parsed).get(path)
    if value == UNSET and (name := path.partition(".")[0]) in OPEN_MAPS and is_complete(parsed, name):
        return None  # it says what its absence says
    if value is not None:
        return value
    stated = parsed.stated
    if path.startswith(PREFIX) and path not in stated:
        return input_value(parsed, path)
    for name in (path, f"{path}.value", f"{path}.version"):
        if name in stated:
            return stated[name]
    return None
