"""What people said in a store: claims, decisions, and documents that quote receipts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from receipts.judging.claim_verdict import ClaimVerdict
from receipts.store.database import By, Database
from receipts.store.entries import entry_with_id
from receipts.store.history import published
from receipts.store.history.published import Decision, NewClaim, Quote, StoredClaim, StoredClaimVerdict

if TYPE_CHECKING:
    from receipts.store.history.events import Chronicle
    from receipts.store.history.incidents import Incident, IncidentEvent


class Published:
    """What a store holds of publications: claims, decisions, and documents that quote receipts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"Published({self._database!r})"

    def add_claims(self, new: Sequence[NewClaim]) -> list[str]:
        """Add claims, all or none; gives the ids of those that were not there yet. Raises ConflictError, NotFound."""
        return self._database.change(lambda connection, by: published.add_claims(connection, new, by))

    def claims(self, *, standing: bool = True) -> list[StoredClaim]:
        """Claims in the order in which they were added; those alone that stand, unless told otherwise."""
        with self._database.reading() as connection:
            return list(published.all_claims(connection, standing=standing))

    def claim(self, claim_id: str) -> StoredClaim:
        """One claim. Raises NotFound."""
        with self._database.reading() as connection:
            return published.one_claim(connection, claim_id)

    def supersede_claim(self, claim_id: str, successor: str | None, reason: str) -> None:
        """Say that a claim no longer stands. Raises NotFound, UsageError, ConflictError where that was said already."""
        self._database.change(
            lambda connection, by: published.supersede_claim(connection, claim_id, successor, reason, by)
        )

    def record_claims(self, verdicts: Sequence[ClaimVerdict]) -> list[int]:
        """Keep verdicts on claims with the receipts that they stood on, all or none; gives their numbers."""
        now = datetime.now(UTC)
        return self._database.write(
            lambda connection: [published.record_claim(connection, item, now) for item in verdicts]
        )

    def claim_verdicts(self, claim_id: str) -> list[StoredClaimVerdict]:
        """Every verdict on a claim, oldest first."""
        with self._database.reading() as connection:
            return list(published.claim_verdicts_of(connection, claim_id))

    def last_claim_verdict(self, claim_id: str) -> StoredClaimVerdict | None:
        """The last verdict on a claim, or None."""
        with self._database.reading() as connection:
            return published.last_claim_verdict(connection, claim_id)

    def claims_on(self, receipt_id: str) -> list[str]:
        """Ids of claims whose last verdict stood on a receipt."""
        with self._database.reading() as connection:
            return published.claims_on(connection, receipt_id)

    def decide(self, receipt_id: str, decision: str, reason: str) -> Decision:
        """Write down what was decided on a receipt: ship, hold or drop. Raises NotFound, UsageError."""

        def work(connection: Connection, by: By) -> Decision:
            entry_with_id(connection, receipt_id)
            return published.decide(connection, receipt_id, decision, reason, by)

        return self._database.change(work)

    def decisions(self, receipt_ids: Sequence[str] | None = None) -> list[Decision]:
        """Decisions on these receipts, or on all, oldest first; the last one of a receipt counts."""
        with self._database.reading() as connection:
            return list(published.decisions_on(connection, receipt_ids))

    def quote(self, document: str, found: Sequence[tuple[str, str | None]]) -> None:
        """Write down which receipts a document quotes, each as id and what it says; replaces its earlier reading."""
        self._database.write(lambda connection: published.quote(connection, document, found, datetime.now(UTC)))

    def quotes(self, receipt_id: str) -> list[Quote]:
        """Where documents quote a receipt, by the last reading of each document."""
        with self._database.reading() as connection:
            return list(published.quotes_of(connection, receipt_id))

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
        from receipts.store.history import events as chronicle_module

        with self._database.reading() as connection:
            return chronicle_module.chronicle(connection, since, until)

    def quoting(self, receipt_ids: Sequence[str], until: datetime) -> list[Quote]:
        """Where documents quote some receipts, by the last reading of each before a moment."""
        from receipts.store.history import events as chronicle_module

        with self._database.reading() as connection:
            return chronicle_module.quoting(connection, receipt_ids, until)
