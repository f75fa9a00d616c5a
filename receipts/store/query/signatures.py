"""Signatures of launches: written with each receipt of a training launch, and asked for before the next one starts."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, literal, or_, select

from receipts.axes.replicates import LaunchSettings
from receipts.axes.signature import Signature, unstated
from receipts.judging.facts import EarlierFailure
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store.entries import Entry, entries, entry_of, safe, standing
from receipts.store.sql import engine_of
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import receipts, signatures

# A crash or a hang that comes back is as dear as memory that runs out; a loss that diverged says nothing of fitting.
FAILED: Final = ("oom", "crash", "hang")
# Launches of one signature or base that are looked at: enough to tell, and a bound on what a look-up costs.
MOST: Final = 50


INSERT: Final = SqlStatement.insert(signatures)


_NEWEST: Final = (signatures.c.receipt.desc(),)


def _look(*conditions: ColumnElement[bool], order: tuple[Any, ...] = _NEWEST) -> SqlStatement:
    """Columns of launches that meet these conditions, then their signature and its extras."""
    stated = receipts.c.provenance.in_([literal("measured"), literal("quoted")])
    query = entries().add_columns(signatures.c.signature, signatures.c.extras)
    query = query.join(signatures, signatures.c.receipt == receipts.c.seq).where(*conditions, stated, standing())
    return SqlStatement(query.order_by(*order).limit(MOST))


def _outcome(*names: str) -> ColumnElement[bool]:
    return signatures.c.outcome.in_([literal(name) for name in names])  # plain names would be written anew each time


# What another process held says nothing of this launch.
_OF_ITS_OWN: Final = or_(receipts.c.failure_class.is_(None), receipts.c.failure_class != literal("foreign_process"))
_SAME: Final = signatures.c.signature == bindparam("signature")
_BASE: Final = signatures.c.base == bindparam("base")
_WORKED: Final = _look(_SAME, signatures.c.outcome == literal("ok"))
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
    signatures.c.outcome == literal("ok"),
    signatures.c.micro_batch >= bindparam("micro_batch"),
    signatures.c.sequence_length >= bindparam("sequence_length"),
    order=(signatures.c.micro_batch, signatures.c.sequence_length),
)


def signed(launch: Launch) -> Signature | None:
    """What to write of a launch; None for what is no training launch, or states no shape and so says nothing."""
    parsed = launch.parsed
    written = parsed.receipt.run.kind == "training" and not unstated(parsed)
    return launch.settings.signature(launch.lane) if written else None


def row_of(seq: int, outcome: str, signature: Signature) -> dict[str, Any]:
    """The row of the receipt of that number."""
    return {**signature._asdict(), "receipt": seq, "outcome": outcome, "extras": json.dumps(signature.extras)}


def same(connection: Connection, signature: Signature) -> tuple[list[Entry], list[Entry]]:
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
        entries()
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
    ask = ask_earlier(parsed, LaunchSettings(parsed))
    return earlier(ask[0].all(connection, ask[1])) if ask is not None else []


def ask_earlier(parsed: Parsed, settings: LaunchSettings) -> Ask | None:
    """What to ask a store for the launches that `earlier` reads; None where `signed` gives none."""
    run = parsed.receipt.run
    if run.kind != "training" or unstated(parsed):
        return None
    return _EARLIER, {"signature": settings.signature_name, "launch": safe(run.launch), "started": run.started}


def earlier(rows: Iterable[Row]) -> list[EarlierFailure]:
    """The answer to `ask_earlier`: launches that failed before, the newest first."""
    failures = (entry_of(row[:-2]) for row in rows)
    return [
        EarlierFailure(item.id, item.outcome, item.failure_phase, item.failure_class, item.started) for item in failures
    ]
