"""How earlier launches ended: at which shapes of a lane they ran or failed, and with which signatures.

Of a shape: how often, on how many days and hosts, and the last of them. Signatures are written with each receipt of a
training launch, and asked for before the next one starts.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, asc, bindparam, desc, distinct, func, literal, or_, select

from receipts.axes.replicates import LaunchSettings
from receipts.axes.shape import ShapeKey, Signature, unstated
from receipts.judging.facts import EarlierFailure, ReachedShape
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store import entries
from receipts.store.entries import cut, entry_of, safe, select_entries, standing
from receipts.store.entry import Entry
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import receipts, signatures

_KEY: Final = ShapeKey._fields
SIZE: Final = ("chips", "sequence_length", "micro_batch", "depth")
# Launches that are looked at from either end of the index: enough to tell two days or two hosts apart.
_LOOKED_AT: Final = 50
MIN_SPREAD_LAUNCHES: Final = 3  # launches below which days and hosts make no difference


class ShapeOutcomes(NamedTuple):
    """One shape of a lane with how its launches ended. A part that is None was not stated.

    ``outcome`` is ``ok`` or ``oom``; ``launches`` ended so, on so many ``days`` (UTC) and ``hosts`` that are stated.
    ``last`` is the id of the newest of them, which started at ``at``.
    """

    key: ShapeKey
    accelerator: str | None
    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    outcome: str
    class_: str | None
    phase: str | None
    launches: int
    days: int
    hosts: int
    last: str
    at: datetime


def reached_shapes(
    connection: Connection, lane: str, since: datetime | None = None, until: datetime | None = None
) -> list[ShapeOutcomes]:
    """Every shape that measured training of a lane sustained, or ran out of memory at; withdrawn receipts are left out.

    What is no sample of the rate, or kept no steps, was no good launch, and its failure is a failure all the same.
    ``since`` and ``until`` bound when launches started, the latter left out.
    """
    keys = [receipts.c[name] for name in (*_KEY, "accelerator", *SIZE, "outcome")]
    keys += [receipts.c.failure_class, receipts.c.failure_phase]
    day = engine_of(connection).day(receipts.c.started)
    query = (
        select(
            *keys,
            func.count(),
            func.count(distinct(day)),
            func.count(distinct(receipts.c.host)),
            func.max(receipts.c.seq).label("newest"),
        )
        .where(
            receipts.c.lane == cut(safe(lane)),
            receipts.c.kind == "training",
            receipts.c.provenance == "measured",
            receipts.c.geometry.is_not(None),
            entries.sustained_rows() | (receipts.c.outcome == "oom"),
            standing(),
        )
        .group_by(*keys)
    )
    if since is not None:
        query = query.where(receipts.c.started >= since)
    if until is not None:
        query = query.where(receipts.c.started < until)
    rows = [tuple(row) for row in connection.execute(query)]
    newest = select(receipts.c.seq, receipts.c.id, receipts.c.started).where(
        receipts.c.seq.in_([row[-1] for row in rows])
    )
    known = {seq: (name, at) for seq, name, at in connection.execute(newest)}
    return [ShapeOutcomes._make([ShapeKey(*row[:2]), *row[2:-1], *known[row[-1]]]) for row in rows]


def of_kind(row: Any = receipts) -> tuple[ColumnElement[bool], ...]:
    """Training of a lane, a geometry and a layout that ended well; `given` has what they are."""
    constant = (row.c.kind == literal("training"), row.c.outcome == literal("ok"))
    return (*constant, *(row.c[name] == bindparam(name) for name in ("lane", *_KEY)))


def counted(row: Any = receipts) -> tuple[ColumnElement[bool], ...]:
    """Those of a kind that sustained their shape."""
    return (*of_kind(row), entries.sustained_rows(row))


def given(lane: str, key: ShapeKey) -> dict[str, Any]:
    """A kind as parameters."""
    return {"lane": cut(safe(lane)), **key._asdict()}


def _ends(direction: Any) -> SqlStatement:
    """Launches of a shape that count, from one end of the index that covers the order."""
    order = ("tainted", "accelerator", "global_batch", "path_answer", "started")
    return SqlStatement(
        select(receipts.c.started, receipts.c.host)
        .where(*counted(), *(receipts.c[name] == bindparam(name) for name in SIZE))
        .order_by(*(direction(receipts.c[name]) for name in order))
        .limit(_LOOKED_AT)
    )


_FIRST: Final = _ends(asc)
_LAST: Final = _ends(desc)


def spread(
    connection: Connection, lane: str, key: ShapeKey, shapes: Sequence[ReachedShape]
) -> tuple[ReachedShape, ...]:
    """The shapes with the days and hosts of their launches, where there are enough launches for that to matter."""
    known = []
    for shape in shapes:
        if shape.launches >= MIN_SPREAD_LAUNCHES:
            wanted = {**given(lane, key), **{name: getattr(shape, name) for name in SIZE}}
            good = [*_FIRST.all(connection, wanted), *_LAST.all(connection, wanted)]
            days, hosts = {started.date() for started, _ in good}, {host for _, host in good if host is not None}
            shape = shape._replace(days=len(days), hosts=len(hosts))
        known.append(shape)
    return tuple(known)


# A crash or a hang that comes back is as dear as memory that runs out; a loss that diverged says nothing of fitting.
FAILED: Final = ("oom", "crash", "hang")
# Launches of one signature or base that are looked at: enough to tell, and a bound on what a look-up costs.
MAX_LAUNCHES: Final = 50


INSERT_SIGNATURE: Final = SqlStatement.insert(signatures)


_NEWEST: Final = (signatures.c.receipt.desc(),)


def _look(*conditions: ColumnElement[bool], order: tuple[Any, ...] = _NEWEST) -> SqlStatement:
    """Columns of launches that meet these conditions, then their signature and its extras."""
    stated = receipts.c.provenance.in_([literal("measured"), literal("quoted")])
    query = select_entries().add_columns(signatures.c.signature, signatures.c.extras)
    query = query.join(signatures, signatures.c.receipt == receipts.c.seq).where(*conditions, stated, standing())
    return SqlStatement(query.order_by(*order).limit(MAX_LAUNCHES))


def _outcome(*names: str) -> ColumnElement[bool]:
    return signatures.c.outcome.in_([literal(name) for name in names])  # plain names would be written anew each time


# What another process held says nothing of this launch.
_OF_ITS_OWN: Final = or_(receipts.c.failure_class.is_(None), receipts.c.failure_class != literal("foreign_process"))
_SAME: Final = signatures.c.signature == bindparam("signature")
_BASE: Final = signatures.c.base == bindparam("base")
# A launch worked that sustained its shape; what is quoted says so itself.
_GOOD: Final = (
    signatures.c.outcome == literal("ok"),
    or_(entries.sustained_rows(), receipts.c.provenance == literal("quoted")),
)
_WORKED: Final = _look(_SAME, *_GOOD)
_FAILED: Final = _look(_SAME, _outcome(*FAILED), _OF_ITS_OWN)


_EARLIER: Final = _look(
    _SAME,
    _outcome(*FAILED),
    _OF_ITS_OWN,
    receipts.c.launch != bindparam("launch"),
    receipts.c.started <= bindparam("started", type_=receipts.c.started.type),
)
_SMALLER: Final = _look(
    _BASE,
    signatures.c.outcome == literal("oom"),
    _OF_ITS_OWN,
    signatures.c.micro_batch <= bindparam("micro_batch"),
    signatures.c.sequence_length <= bindparam("sequence_length"),
    order=(signatures.c.micro_batch.desc(), signatures.c.sequence_length.desc()),
)
_RAN_OUT: Final = _look(_BASE, signatures.c.outcome == literal("oom"), _OF_ITS_OWN)
_LARGER: Final = _look(
    _BASE,
    *_GOOD,
    signatures.c.micro_batch >= bindparam("micro_batch"),
    signatures.c.sequence_length >= bindparam("sequence_length"),
    order=(signatures.c.micro_batch, signatures.c.sequence_length),
)


def signature_of(launch: Launch) -> Signature | None:
    """What to write of a launch; None for what is no training launch, or states no shape and so says nothing."""
    parsed = launch.parsed
    written = parsed.receipt.run.kind == "training" and not unstated(parsed)
    return launch.settings.signature(launch.lane) if written else None


def signature_row(seq: int, outcome: str, signature: Signature) -> dict[str, Any]:
    """The row of the receipt of that number."""
    return {**signature._asdict(), "receipt": seq, "outcome": outcome, "extras": json.dumps(signature.extras)}


def same_signature(connection: Connection, signature: Signature) -> tuple[list[Entry], list[Entry]]:
    """Launches of a signature that stand: those that worked and those that failed, the newest first."""
    worked, failed = (statement.all(connection, signature._asdict()) for statement in (_WORKED, _FAILED))
    return [entry_of(row[:-2]) for row in worked], [entry_of(row[:-2]) for row in failed]


def dominating(connection: Connection, signature: Signature) -> tuple[list[Entry], list[Entry]]:
    """Launches that differ in pressure alone: larger ones that worked and smaller ones that ran out of memory.

    The nearest first. None where a pressure of the plan is unstated: nobody can say that it is the larger one.
    """
    if signature.micro_batch is None or signature.sequence_length is None:
        return [], []

    def differing(statement: SqlStatement, dominates: Callable[[set[str], set[str]], bool]) -> list[Entry]:
        rows = statement.all(connection, signature._asdict())
        return [
            entry_of(row)
            for *row, name, extras in rows
            if name != signature.signature and dominates(set(json.loads(extras or "[]")), set(signature.extras))
        ]

    return differing(_LARGER, operator.ge), differing(_SMALLER, operator.le)


def ran_out(connection: Connection, signature: Signature) -> list[Entry]:
    """Launches that differ in pressure at most and ran out of memory, the newest first."""
    return [entry_of(row[:-2]) for row in _RAN_OUT.all(connection, signature._asdict())]


def failed_alike(connection: Connection, ids: Sequence[str]) -> list[tuple[str, Entry]]:
    """Failed launches that stand and share a signature with one of these, by signature, the oldest first.

    Memory that another process held says nothing of a signature, and is left out.
    """
    among = engine_of(connection).among
    own = select(signatures.c.signature).join(receipts, receipts.c.seq == signatures.c.receipt)
    names = sorted(set(connection.execute(own.where(among(receipts.c.id, list(ids)))).scalars()))
    query = (
        select_entries()
        .add_columns(signatures.c.signature)
        .join(signatures, signatures.c.receipt == receipts.c.seq)
        .where(
            among(signatures.c.signature, names),
            _outcome(*FAILED),
            _OF_ITS_OWN,
            receipts.c.provenance.in_(["measured", "quoted"]),
            standing(),
        )
        .order_by(signatures.c.signature, receipts.c.started, receipts.c.seq)
    )
    return [(signature, entry_of(row)) for *row, signature in connection.execute(query)]


def failed_before(connection: Connection, parsed: Parsed) -> list[EarlierFailure]:
    """Launches of this signature that failed before it started, the newest first; none where `signed` gives none."""
    ask = ask_earlier_failures(parsed, LaunchSettings(parsed))
    return earlier_failures(ask[0].all(connection, ask[1])) if ask is not None else []


def ask_earlier_failures(parsed: Parsed, settings: LaunchSettings) -> Ask | None:
    """What to ask a store for the launches that `earlier` reads; None where `signed` gives none."""
    run = parsed.receipt.run
    if run.kind != "training" or unstated(parsed):
        return None
    return _EARLIER, {"signature": settings.signature_name, "launch": safe(run.launch), "started": run.started}


def earlier_failures(rows: Iterable[Row]) -> list[EarlierFailure]:
    """The answer to `ask_earlier`: launches that failed before, the newest first."""
    failures = (entry_of(row[:-2]) for row in rows)
    return [
        EarlierFailure(item.id, item.outcome, item.failure_phase, item.failure_class, item.started) for item in failures
    ]
