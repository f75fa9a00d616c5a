"""A store's claims with their present verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.judging.rulebook import Rulebook
    from receipts.publish.page import Page
    from receipts.questions.claims import Claim, ClaimFile
    from receipts.store import Store

Judged = tuple["Claim", "ClaimVerdict", "tuple[str | None, str] | None"]


def judged(store: Store, rulebook: Rulebook, *, status: str | None = None, superseded: bool = False) -> list[Judged]:
    """Claims, the verdict on each now, and what superseded it: the successor (None if it was withdrawn), the reason."""
    from receipts.questions.claims import judge
    from receipts.questions.claims.gather import gather, stored

    ends = ((item.id, item.superseded) for item in store.published.claims(standing=False))
    gone = {name: (end.successor, end.reason) if end else None for name, end in ends}
    group = stored(store, standing=not superseded)
    verdicts = [(claim, judge(claim, gather(claim, rulebook, store, group.folder), rulebook)) for claim in group.claims]
    return [(claim, item, gone[item.claim]) for claim, item in verdicts if status in (None, item.status)]


def parsed_claims(document: bytes, source: str = "the claims") -> ClaimFile:
    """The claims of a ``claims.toml`` that names no files. Raises InputError."""
    from receipts.questions.claims import ClaimFile, parse

    return ClaimFile(source, None, parse(document, source))


def judge_all(store: Store, rulebook: Rulebook, group: ClaimFile) -> list[ClaimVerdict]:
    """The verdict on each claim of a file."""
    from receipts.questions.claims import judge
    from receipts.questions.claims.gather import gather

    return [judge(claim, gather(claim, rulebook, store, group.folder), rulebook) for claim in group.claims]


def add(store: Store, rulebook: Rulebook, group: ClaimFile) -> list[ClaimVerdict]:
    """Add the claims of a file, with a first verdict on each new one. Raises InputError, NotFound, ConflictError."""
    from dataclasses import replace

    from receipts.questions.claims.stored import new_claims

    added = set(store.published.add_claims(new_claims(group)))
    new = replace(group, claims=tuple(item for item in group.claims if item.id in added))
    verdicts = judge_all(store, rulebook, new)
    store.published.record_claims(verdicts)
    return verdicts


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
