"""What people decide and publish: pins, decisions, quotes, incidents; receipts that are retracted or purged.

Each is a row that is added. A pin is a name of a receipt, with all that it was set to. `Published` has all but pins,
and the claims, as methods of a store; `events_between` lists what happened within an interval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from receipts.base.errors import ConflictError, UsageError
from receipts.store import index, verdicts
from receipts.store.database import By, Repository, reads, writes
from receipts.store.entries import entry_with_id, standing
from receipts.store.sql import engine_of
from receipts.store.tables import (
    claim_subjects,
    claim_supersessions,
    claim_verdicts,
    claims,
    decisions,
    documents,
    extracts,
    incidents,
    pins,
    purges,
    quotes,
    receipts,
    subjects,
    supersessions,
)
from receipts.store.tables import verdicts as verdict_rows
from receipts.store.verdicts import Replaced

_PIN: Final = re.compile(r"^[A-Za-z][A-Za-z0-9._-]{0,99}$")


class Pin(NamedTuple):
    """A named reference at some time; `receipt` is None where the name was taken away.

    `withdrawn` says how a receipt that no longer stands fell, and why.
    """

    name: str
    receipt: str | None
    note: str | None
    at: datetime
    actor: str | None = None
    withdrawn: str | None = None


_COLUMNS: Final = Pin._fields[:-1]


def pin(connection: Connection, by: By, name: str, receipt_id: str | None, note: str | None = None) -> Pin:
    """Point ``@name`` at a receipt, or, with None, take the name away. Raises NotFound, UsageError."""
    if receipt_id is not None:
        entry_with_id(connection, receipt_id)
    bare = name.removeprefix("@")
    if not _PIN.match(bare):
        raise UsageError(f"{name!r} cannot name a pin; write @ and a letter, then letters, digits, . _ or -")
    fell = fallen(connection, [receipt_id] if receipt_id is not None else ()).get(receipt_id or "")
    placed = Pin(bare, receipt_id, note, by.at, by.actor, str(fell) if fell is not None else None)
    connection.execute(insert(pins).values(name=bare, receipt=receipt_id, note=note, **by._asdict()))
    return placed


def pin_history(connection: Connection, name: str | None = None) -> list[Pin]:
    """What one pin, or every pin, has pointed at, oldest first."""
    query = select(*(pins.c[name] for name in _COLUMNS)).order_by(pins.c.seq)
    if name is not None:
        query = query.where(pins.c.name == name.removeprefix("@"))
    placed = [Pin._make((*row, None)) for row in connection.execute(query)]
    fell = fallen(connection, {item.receipt for item in placed if item.receipt is not None})
    return [item._replace(withdrawn=str(fell[item.receipt])) if item.receipt in fell else item for item in placed]


def current_pins(connection: Connection) -> dict[str, Pin]:
    """Each pin that is set, by its name without the @."""
    last = {item.name: item for item in pin_history(connection)}
    return {name: item for name, item in sorted(last.items()) if item.receipt is not None}


DECISIONS: Final = ("ship", "hold", "drop")


class Decision(NamedTuple):
    """What was decided on a receipt, and why. Time in UTC."""

    receipt: str
    decision: str
    reason: str
    at: datetime
    actor: str | None = None


class Quote(NamedTuple):
    """A place where a document quotes a receipt."""

    document: str
    receipt: str
    says: str | None
    at: datetime


def add_decision(connection: Connection, by: By, receipt_id: str, decision: str, reason: str) -> Decision:
    """Write down what was decided on a receipt: ship, hold or drop. Raises NotFound, UsageError."""
    if decision not in DECISIONS:
        raise UsageError(f"there is no decision {decision!r}; it is one of {', '.join(DECISIONS)}")
    if not reason.strip():
        raise UsageError('say why: receipts decide ID ship|hold|drop --reason "…"')
    entry_with_id(connection, receipt_id)
    row = Decision(receipt_id, decision, reason, by.at, by.actor)
    connection.execute(insert(decisions).values(**row._asdict()))
    return row


def decisions_on(connection: Connection, receipt_ids: Sequence[str] | None = None) -> list[Decision]:
    """Decisions on these receipts, or on all, oldest first; the last one of a receipt counts."""
    query = select(*(decisions.c[name] for name in Decision._fields)).order_by(decisions.c.seq)
    if receipt_ids is not None:
        query = query.where(decisions.c.receipt.in_(receipt_ids))
    return [Decision._make(row) for row in connection.execute(query)]


def add_quote(connection: Connection, by: By, document: str, receipts: Sequence[tuple[str, str | None]]) -> None:
    """Write down which receipts a document quotes, each as id and what it says; replaces its earlier reading."""
    rows = [Quote(document, receipt, sentence, by.at)._asdict() for receipt, sentence in receipts]
    nothing = [{"document": document, "receipt": None, "says": None, "at": by.at}]
    connection.execute(insert(quotes), rows or nothing)


def quotes_of(connection: Connection, *receipt_ids: str, until: datetime | None = None) -> list[Quote]:
    """Where documents quote some receipts, by the last reading of each document, or the last before a moment.

    In the order of documents.
    """
    # By number and not by time: a clock may go back.
    newest = select(func.max(quotes.c.seq)).group_by(quotes.c.document)
    if until is not None:
        newest = newest.where(quotes.c.at < until)
    last = select(quotes.c.document, quotes.c.at).where(quotes.c.seq.in_(newest)).subquery()
    query = (
        select(*(quotes.c[name] for name in Quote._fields))
        .join(last, (last.c.document == quotes.c.document) & (last.c.at == quotes.c.at))
        .where(engine_of(connection).among(quotes.c.receipt, list(dict.fromkeys(receipt_ids))))
        .order_by(quotes.c.document, quotes.c.receipt)
    )
    return [Quote._make(row) for row in connection.execute(query)]


Event = Literal["opened", "closed"]


class IncidentEvent(NamedTuple):
    """An incident that is opened or closed. ``body`` is JSON: the change as it was seen."""

    incident: str
    event: Event
    line: int
    kind: str
    metric: str
    body: dict[str, Any]
    reason: str
    owner: str | None = None


class Incident(NamedTuple):
    """An incident: how it was opened, and how it was closed if it was. Times in UTC."""

    id: str
    line: int
    kind: str
    metric: str
    body: dict[str, Any]
    owner: str | None
    opened: datetime
    why: str
    actor: str | None = None
    closed: datetime | None = None
    closed_why: str | None = None


def add_incident_events(connection: Connection, by: By, events: Sequence[IncidentEvent]) -> None:
    """Record that incidents were opened or closed, all or none.

    An incident that was opened already is not opened again: two runs of watch may see it at once.
    """
    wanted = [item.incident for item in events if item.event == "opened"]
    known = set(connection.execute(select(incidents.c.incident).where(incidents.c.incident.in_(wanted))).scalars())
    rows = [
        {**item._asdict(), "body": orjson.dumps(item.body).decode(), **by._asdict()}
        for item in events
        if item.event == "closed" or item.incident not in known
    ]
    if rows:
        connection.execute(insert(incidents), rows)


def stored_incidents(connection: Connection, lines: Sequence[int] | None = None) -> list[Incident]:
    """Incidents of some lines, or all, each as its last event left it, in the order in which they were opened."""
    query = select(incidents).order_by(incidents.c.seq)
    if lines is not None:
        query = query.where(engine_of(connection).among(incidents.c.line, list(lines)))
    known: dict[str, Incident] = {}
    for row in connection.execute(query):
        if row.event == "opened":
            body = orjson.loads(row.body)
            known.setdefault(
                row.incident,
                Incident(row.incident, row.line, row.kind, row.metric, body, row.owner, row.at, row.reason, row.actor),
            )
        elif row.incident in known:
            known[row.incident] = known[row.incident]._replace(closed=row.at, closed_why=row.reason)
    return list(known.values())


MAX_SUPERSEDED: Final = 200


class StatusVerdict(NamedTuple):
    """The status that a verdict gave a claim. Time in UTC."""

    claim: str
    status: str
    rules: str
    at: datetime


class IntervalEvents(NamedTuple):
    """What was said from one moment to another, the latter left out, in the order in which it was said.

    ``before`` is the last status that each claim had when the stretch began. Of the receipts that were superseded, the
    first few are listed and all are counted.
    """

    decisions: tuple[Decision, ...]
    added: tuple[str, ...]
    before: dict[str, StatusVerdict]
    verdicts: tuple[StatusVerdict, ...]
    replaced: tuple[Replaced, ...]
    superseded: tuple[Replaced, ...]
    superseded_count: int


def events_in(connection: Connection, since: datetime, until: datetime) -> IntervalEvents:
    """Decisions, claims that were added, judged or replaced, and receipts that were superseded, within a stretch."""

    def within(table: Any, *names: str) -> Any:
        columns = (table.c[name] for name in names)
        return select(*columns).where(table.c.at >= since, table.c.at < until).order_by(table.c.seq)

    last = select(func.max(claim_verdicts.c.seq)).where(claim_verdicts.c.at < since).group_by(claim_verdicts.c.claim)
    columns = (claim_verdicts.c[name] for name in StatusVerdict._fields)
    before = map(StatusVerdict._make, connection.execute(select(*columns).where(claim_verdicts.c.seq.in_(last))))
    judged = connection.execute(within(claim_verdicts, *StatusVerdict._fields))
    replaced = connection.execute(within(claim_supersessions, "claim", *Replaced._fields[1:]))
    fell = supersessions.c.successor.is_distinct_from(supersessions.c.receipt)
    superseded = connection.execute(
        within(supersessions, "receipt", *Replaced._fields[1:]).where(fell).limit(MAX_SUPERSEDED)
    )
    count = select(func.count()).where(supersessions.c.at >= since, supersessions.c.at < until, fell)
    return IntervalEvents(
        decisions=tuple(map(Decision._make, connection.execute(within(decisions, *Decision._fields)))),
        added=tuple(connection.execute(within(claims, "id")).scalars()),
        before={item.claim: item for item in before},
        verdicts=tuple(map(StatusVerdict._make, judged)),
        replaced=tuple(map(Replaced._make, replaced)),
        superseded=tuple(map(Replaced._make, superseded)),
        superseded_count=connection.execute(count).scalar_one(),
    )


class Published(Repository):
    """What people published and decided. Claims are kept as JSON and read by `receipts.questions.claims`, higher up."""

    add_claims = writes(verdicts.add_claims)
    supersede_claim = writes(verdicts.supersede)
    record_claims = writes(verdicts.record_claim)
    claims = reads(verdicts.stored)
    claim = reads(verdicts.one_claim)
    claim_verdicts = reads(verdicts.verdicts_on)
    last_claim_verdict = reads(verdicts.last_verdict)
    claims_on = reads(verdicts.claims_on)
    decide = writes(add_decision)
    decisions = reads(decisions_on)
    quote = writes(add_quote)
    quotes = reads(quotes_of)
    record_incidents = writes(add_incident_events)
    incidents = reads(stored_incidents)
    events_between = reads(events_in)


BY_PURGED: Final = "superseded by a receipt that was purged"


class Supersession(NamedTuple):
    """What was said of a receipt that stands no longer; `successor` is None where it was retracted, and itself where
    that was withdrawn. Ids, and time in UTC.
    """

    receipt: str
    successor: str | None
    reason: str
    at: datetime
    actor: str | None = None

    @property
    def how(self) -> str:
        """How the receipt fell, and when."""
        how = f"superseded by {self.successor[:12]}" if self.successor else "retracted"
        return f"{how} on {self.at:%Y-%m-%d}"

    def __str__(self) -> str:
        return f"{self.how}: {self.reason}"


def retract(connection: Connection, by: By, receipt_id: str, reason: str) -> None:
    """Withdraw a receipt without a successor. Raises NotFound, ConflictError where it no longer stands."""
    entry_with_id(connection, receipt_id)
    _need(reason, "retract")
    fell = fallen(connection, [receipt_id]).get(receipt_id)
    if fell is not None:
        raise ConflictError(f"{receipt_id[:12]} was {fell.how} already: {fell.reason}")
    connection.execute(insert(supersessions).values(receipt=receipt_id, successor=None, reason=reason, **by._asdict()))


def reinstate(connection: Connection, by: By, receipt_id: str, reason: str) -> None:
    """Withdraw the retraction of a receipt, by a row that names the receipt as its own successor.

    Raises NotFound, and ConflictError where it stands, was superseded, or its launch has another receipt since.
    """
    entry = entry_with_id(connection, receipt_id)
    _need(reason, "retract --withdraw")
    fell = fallen(connection, [receipt_id]).get(receipt_id)
    if fell is None:
        raise ConflictError(f"{receipt_id[:12]} stands: there is no retraction to withdraw")
    if fell.successor is not None:
        raise ConflictError(f"{receipt_id[:12]} was {fell}; only a retraction can be withdrawn")
    query = select(receipts.c.id).where(receipts.c.launch == entry.launch, receipts.c.id != receipt_id, standing())
    if (rival := connection.execute(query).scalars().first()) is not None:
        raise ConflictError(f"launch {entry.launch} has another receipt that stands, {rival[:12]}; retract that first")
    row = {"receipt": receipt_id, "successor": receipt_id, "reason": reason, **by._asdict()}
    connection.execute(insert(supersessions).values(**row))


def purge(connection: Connection, receipt_id: str, reason: str, by: By) -> None:
    """Erase a receipt, its bytes, and every verdict that speaks of it; a tombstone with id and reason stays.

    A verdict quotes the document, and so does the reason for which the receipt superseded another.
    """
    from receipts.store.seals import keep_leaves  # a purge alone needs it, and every command opens a store

    _need(reason, "purge")
    engine_of(connection).lock(connection, alone=True)  # no verdict on it may come in meanwhile, nor a seal
    number = select(receipts.c.seq).where(receipts.c.id == receipt_id).scalar_subquery()
    spoken = select(subjects.c.verdict).where(subjects.c.receipt == number)
    claimed = select(claim_subjects.c.verdict).where(claim_subjects.c.receipt == receipt_id)
    superseding = select(supersessions.c.seq).where(supersessions.c.successor == receipt_id)
    doomed = {"receipts": select(number), "verdicts": spoken, "claim_verdicts": claimed, "supersessions": superseding}
    going = {what: list(connection.execute(query.distinct()).scalars()) for what, query in doomed.items()}
    keep_leaves(connection, receipt_id, {**going, "columns": going["receipts"]})
    connection.execute(insert(purges).values(receipt=receipt_id, reason=reason, **by._asdict()))
    connection.execute(delete(verdict_rows).where(verdict_rows.c.seq.in_(spoken)))
    connection.execute(delete(claim_verdicts).where(claim_verdicts.c.seq.in_(claimed)))
    index.purge(connection, going["receipts"])
    connection.execute(delete(documents).where(documents.c.receipt == number))
    connection.execute(delete(extracts).where(extracts.c.receipt == number))
    connection.execute(delete(receipts).where(receipts.c.id == receipt_id))
    others = supersessions.c.receipt != receipt_id
    query = select(supersessions.c.receipt).where(supersessions.c.successor == receipt_id, others)
    replaced = list(connection.execute(query).scalars())
    connection.execute(delete(supersessions).where(supersessions.c.successor == receipt_id))
    if replaced:
        rows = [{"receipt": item, "successor": receipt_id, "reason": BY_PURGED, **by._asdict()} for item in replaced]
        connection.execute(insert(supersessions), rows)


def _need(reason: str, verb: str) -> None:
    if not reason.strip():
        raise UsageError(f'say why: receipts {verb} ID --reason "…"')


def fallen(connection: Connection, ids: Iterable[str] | None = None) -> dict[str, Supersession]:
    """The last word on each of some receipts, or of all, that no longer stands."""
    last = {item.receipt: item for item in all_supersessions(connection, ids)}
    return {name: item for name, item in last.items() if item.successor != name}


def all_supersessions(connection: Connection, ids: Iterable[str] | None = None) -> list[Supersession]:
    """Every supersession and retraction, of some receipts or of all, in the order in which they were said."""
    query = select(*(supersessions.c[name] for name in Supersession._fields)).order_by(supersessions.c.seq)
    if ids is not None:
        query = query.where(engine_of(connection).among(supersessions.c.receipt, list(ids)))
    return [Supersession._make(row) for row in connection.execute(query)]
