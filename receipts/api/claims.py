"""A store's claims with their present verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.judging.rulebook import Rulebook
    from receipts.publish.page import Page
    from receipts.questions.claims import Claim
    from receipts.store import Store

Judged = tuple["Claim", "ClaimVerdict", "tuple[str | None, str] | None"]


def judged(store: Store, rulebook: Rulebook, *, status: str | None = None, superseded: bool = False) -> list[Judged]:
    """Claims, the verdict on each now, and what superseded it: the successor (None if it was withdrawn), the reason."""
    from receipts.questions.claims import judge
    from receipts.questions.claims.gather import gather, stored

    gone = {item.id: item.superseded for item in store.published.claims(standing=False)}
    group = stored(store, standing=not superseded)
    verdicts = [(claim, judge(claim, gather(claim, rulebook, store, group.folder), rulebook)) for claim in group.claims]
    return [(claim, item, gone[item.claim]) for claim, item in verdicts if status in (None, item.status)]


def as_data(rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """What ``receipts claim list --json`` prints."""
    from receipts.judging.verdict_json import to_json

    return [{**to_json(verdict), "superseded": gone} for _, verdict, gone in rows]


def page(rows: Sequence[dict[str, Any]]) -> Page:
    """A row for each claim."""
    from receipts.publish.page import Column, Page, Section, Table, row

    columns = (Column("claim"), Column("status"), Column("says", cut=True))
    table = Table(
        "Claims", columns, tuple(row(item["claim"], item["status"], item["text"]) for item in rows), empty="no claims"
    )
    return Page(
        "Claims",
        (f"{len(rows)} claim{'' if len(rows) == 1 else 's'}",),
        sections=(Section("claims", "", tables=(table,)),),
    )
