"""Receipts related to one: its witnesses, those it witnesses, the launch it resumed, launches that started on its host
at its instant, and earlier failures of its signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select

from receipts.axes.replicates import LaunchSettings
from receipts.judging.facts import exact_start
from receipts.receipt import Parsed
from receipts.store.entries import safe, standing
from receipts.store.query.signatures import ask_earlier
from receipts.store.sql.statement import Ask, SqlStatement
from receipts.store.tables import documents, receipts

About = Literal["witnesses", "failures", "resumed", "at_once"]
# Related documents that are read for one receipt, the newest: each is parsed.
MOST_RELATED: Final = 20
_OWN: Final = receipts.alias("own")


def _documents(*conditions: ColumnElement[bool]) -> SqlStatement:
    """Id, packed document and submitter of each related receipt, newest first, and the receipt's own submitter.

    The newest are chosen before any document is read. They are numbered and not limited: with a limit PostgreSQL may
    walk all receipts from the newest.
    """
    place = func.row_number().over(order_by=receipts.c.seq.desc()).label("place")
    newest = select(receipts.c.seq, place).where(*conditions).subquery("newest")
    return SqlStatement(
        select(receipts.c.id, documents.c.codec, documents.c.body, receipts.c.actor, _own(_OWN.c.actor).label("own"))
        .select_from(newest)
        .join(receipts, receipts.c.seq == newest.c.seq)
        .join(documents, documents.c.receipt == newest.c.seq)
        .where(newest.c.place <= MOST_RELATED)
        .order_by(newest.c.seq.desc())
    )


def _own(column: ColumnElement[Any]) -> Any:
    return select(column).where(_OWN.c.id == bindparam("id")).scalar_subquery()


WITNESSES: Final = _documents(receipts.c.witness_for.in_((bindparam("id"), bindparam("launch"))), standing())
WITNESSED: Final = _documents(
    or_(receipts.c.id == bindparam("target"), and_(receipts.c.launch == bindparam("target"), standing()))
)
AT_ONCE: Final = _documents(
    receipts.c.started == bindparam("started"),
    receipts.c.host == bindparam("host"),
    receipts.c.launch != bindparam("launch"),
    receipts.c.seq < func.coalesce(_own(_OWN.c.seq), 2**62),  # what came first is not changed by what comes later
    standing(),
)


def questions(item: Parsed, settings: LaunchSettings) -> Iterator[tuple[About, Ask]]:
    """What to ask about a receipt with these settings; `signatures.earlier` reads the rows of failures.

    One look-up of witnesses: a witness shows its own path, and no other is asked to witness it.
    """
    run, names = item.receipt.run, {"id": item.id, "launch": safe(item.receipt.run.launch)}
    if run.witness_for is None:
        yield "witnesses", (WITNESSES, names)
    else:
        yield "witnesses", (WITNESSED, {"id": item.id, "target": safe(run.witness_for)})
    if run.resumed_from is not None:
        yield "resumed", (WITNESSED, {"id": item.id, "target": safe(run.resumed_from)})
    if exact_start(item):
        yield "at_once", (AT_ONCE, {**names, "started": run.started, "host": safe(run.host)})
    failures = ask_earlier(item, settings)
    if failures is not None:
        yield "failures", failures
