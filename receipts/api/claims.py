"""A store's claims with their present verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.judging.claim import Claim
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import ClaimVerdict
    from receipts.publish.page import Page
    from receipts.store import Store

Judged = tuple["Claim", "ClaimVerdict", "tuple[str | None, str] | None"]


def judged(store: Store, rulebook: Rulebook, *, status: str | None = None, superseded: bool = False) -> list[Judged]:
    """Claims, the verdict on each now, and what superseded it: the successor (None if it was withdrawn), the reason."""
    from receipts.questions.claims.judgment import stored, verdict_on

    ends = {item.id: item.superseded for item in store.published.claims(standing=False)}
    rows = []
    for claim in stored(store, standing=not superseded).claims:
        verdict, end = verdict_on(claim, rulebook, store), ends[claim.id]
        if status in (None, verdict.status):
            rows.append((claim, verdict, (end.successor, end.reason) if end else None))
    return rows


def check(store: Store, rulebook: Rulebook, document: bytes, *, add: bool) -> list[dict[str, Any]]:
    """The verdict on each claim of a ``claims.toml`` that names no files; with ``add`` the new ones are stored with it.

    With ``add`` only claims that the store did not hold are judged. Raises InputError, NotFound, ConflictError.
    """
    from receipts.judging.claim import ClaimFile, parse_claims
    from receipts.judging.verdict import verdict_to_json
    from receipts.questions.claims.judgment import verdict_on
    from receipts.questions.claims.stored import new_claims

    group = ClaimFile("the claims", None, parse_claims(document, "the claims"))
    wanted = set(store.published.add_claims(new_claims(group))) if add else {item.id for item in group.claims}
    verdicts = [verdict_on(item, rulebook, store) for item in group.claims if item.id in wanted]
    if add:
        store.published.record_claims(verdicts)
    return [verdict_to_json(item) for item in verdicts]


def as_data(rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """What ``receipts claim list --json`` prints."""
    from receipts.judging.verdict import verdict_to_json

    return [{**verdict_to_json(verdict), "superseded": end} for _, verdict, end in rows]


def page(rows: Sequence[dict[str, Any]]) -> Page:
    """A row for each claim."""
    from receipts.base.units import counted
    from receipts.publish.page import Page, Section, table_of

    lines = ((item["claim"], item["status"], item["text"]) for item in rows)
    table = table_of("Claims", "claim | status | says…", lines, empty="no claims")
    return Page("Claims", (counted(len(rows), "claim"),), sections=(Section("claims", "", tables=(table,)),))
