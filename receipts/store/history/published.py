"""What people published and decided: claims with their verdicts, decisions on receipts, documents that quote them.

Each is a row that is added, as in `standing`. Claims are kept as JSON and read by `receipts.questions.claims`, higher
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import Connection, func, insert, select

from receipts.base.errors import UsageError
from receipts.judging.claim_verdict import ClaimVerdict
from receipts.store.database import By, Database
from receipts.store.entries import entry_with_id
from receipts.store.history import claim_rows
from receipts.store.history.claim_rows import NewClaim, StoredClaim, StoredClaimVerdict
from receipts.store.sql import engine_of
from receipts.store.tables import claim_subjects, claim_verdicts, claims, decisions, quotes

if TYPE_CHECKING:
    from receipts.store.history.events import Chronicle
    from receipts.store.history.incidents import Incident, IncidentEvent

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


class Published:
    """What a store holds of publications: claims, decisions, and documents that quote receipts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"Published({self._database!r})"

    def add_claims(self, new: Sequence[NewClaim]) -> list[str]:
        """Add claims, all or none; gives the ids of those that were not there yet.

        The same claim again is harmless. Raises ConflictError where another of that id is there, or what one replaces
        was replaced already, and NotFound where that is not there.
        """
        return self._database.change(lambda connection, by: claim_rows.add_claims(connection, new, by))

    def claims(self, *, standing: bool = True) -> list[StoredClaim]:
        """Claims in the order in which they were added; those alone that stand, unless told otherwise."""
        with self._database.reading() as connection:
            gone = claim_rows.superseded(connection)
            rows = connection.execute(select(claims).order_by(claims.c.seq))
            return [claim_rows.as_stored(row, gone.get(row.id)) for row in rows if not (standing and row.id in gone)]

    def claim(self, claim_id: str) -> StoredClaim:
        """One claim. Raises NotFound."""
        with self._database.reading() as connection:
            return claim_rows.one_claim(connection, claim_id)

    def supersede_claim(self, claim_id: str, successor: str | None, reason: str) -> None:
        """Say that a claim no longer stands. Raises NotFound, UsageError, ConflictError where that was said already."""
        self._database.change(lambda connection, by: claim_rows.supersede(connection, claim_id, successor, reason, by))

    def record_claims(self, verdicts: Sequence[ClaimVerdict]) -> list[int]:
        """Keep verdicts on claims with the receipts that they stood on, all or none; gives their numbers."""
        now = datetime.now(UTC)
        return self._database.write(lambda connection: [claim_rows.record(connection, item, now) for item in verdicts])

    def claim_verdicts(self, claim_id: str) -> list[StoredClaimVerdict]:
        """Every verdict on a claim, oldest first."""
        with self._database.reading() as connection:
            query = select(claim_verdicts).where(claim_verdicts.c.claim == claim_id).order_by(claim_verdicts.c.seq)
            return claim_rows.as_verdicts(connection, connection.execute(query).all())

    def last_claim_verdict(self, claim_id: str) -> StoredClaimVerdict | None:
        """The last verdict on a claim, or None."""
        query = select(claim_verdicts).where(claim_verdicts.c.claim == claim_id)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(claim_verdicts.c.seq.desc()).limit(1)).all()
            return next(iter(claim_rows.as_verdicts(connection, rows)), None)

    def claims_on(self, receipt_id: str) -> list[str]:
        """Ids of claims whose last verdict stood on a receipt."""
        last = select(func.max(claim_verdicts.c.seq)).group_by(claim_verdicts.c.claim)
        query = (
            select(claim_verdicts.c.claim)
            .join(claim_subjects, claim_subjects.c.verdict == claim_verdicts.c.seq)
            .where(claim_subjects.c.receipt == receipt_id, claim_verdicts.c.seq.in_(last))
            .order_by(claim_verdicts.c.seq)
        )
        with self._database.reading() as connection:
            return list(dict.fromkeys(connection.execute(query).scalars()))

    def decide(self, receipt_id: str, decision: str, reason: str) -> Decision:
        """Write down what was decided on a receipt: ship, hold or drop. Raises NotFound, UsageError."""
        if decision not in DECISIONS:
            raise UsageError(f"there is no decision {decision!r}; it is one of {', '.join(DECISIONS)}")
        if not reason.strip():
            raise UsageError('say why: receipts decide ID ship|hold|drop --reason "…"')

        def work(connection: Connection, by: By) -> Decision:
            entry_with_id(connection, receipt_id)
            row = Decision(receipt_id, decision, reason, by.at, by.actor)
            connection.execute(insert(decisions).values(**row._asdict()))
            return row

        return self._database.change(work)

    def decisions(self, receipt_ids: Sequence[str] | None = None) -> list[Decision]:
        """Decisions on these receipts, or on all, oldest first; the last one of a receipt counts."""
        query = select(*(decisions.c[name] for name in Decision._fields)).order_by(decisions.c.seq)
        if receipt_ids is not None:
            query = query.where(decisions.c.receipt.in_(receipt_ids))
        with self._database.reading() as connection:
            return [Decision._make(row) for row in connection.execute(query)]

    def quote(self, document: str, claims: Sequence[tuple[str, str | None]]) -> None:
        """Write down which receipts a document quotes, each as id and what it says; replaces its earlier reading."""
        at = datetime.now(UTC)
        rows = [Quote(document, receipt, quoted, at)._asdict() for receipt, quoted in claims]
        nothing = [{"document": document, "receipt": None, "says": None, "at": at}]
        self._database.write(lambda connection: connection.execute(insert(quotes), rows or nothing))

    def quotes(self, *receipt_ids: str, until: datetime | None = None) -> list[Quote]:
        """Where documents quote some receipts, by the last reading of each document, or the last before a moment.

        In the order of documents.
        """
        # By number and not by time: a clock may go back.
        newest = select(func.max(quotes.c.seq)).group_by(quotes.c.document)
        if until is not None:
            newest = newest.where(quotes.c.at < until)
        last = select(quotes.c.document, quotes.c.at).where(quotes.c.seq.in_(newest)).subquery()
        with self._database.reading() as connection:
            query = (
                select(*(quotes.c[name] for name in Quote._fields))
                .join(last, (last.c.document == quotes.c.document) & (last.c.at == quotes.c.at))
                .where(engine_of(connection).among(quotes.c.receipt, list(dict.fromkeys(receipt_ids))))
            )
            rows = [Quote._make(row) for row in connection.execute(query)]
        return sorted(rows, key=lambda item: (item.document, item.receipt))

    def record_incidents(self, events: Sequence[IncidentEvent]) -> None:
        """Record that incidents were opened or closed, all or none."""
        from receipts.store.history import incidents

        self._database.change(lambda connection, by: incidents.record(connection, events, by))

    def incidents(self, lines: Sequence[int] | None = None) -> list[Incident]:
        """Incidents of some lines, or all, each as its last event left it, in the order in which they were opened."""
        from receipts.store.history import incidents

        with self._database.reading() as connection:
            return incidents.incidents(connection, lines)

    def chronicle(self, since: datetime, until: datetime) -> Chronicle:
        """What was decided, published and superseded from one moment to another, the latter left out."""
        from receipts.store.history import events

        with self._database.reading() as connection:
            return events.chronicle(connection, since, until)
