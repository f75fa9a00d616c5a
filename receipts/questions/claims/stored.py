"""Claims that a store keeps: how they get there, their history, and what a receipt that falls takes with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.files import read_small
from receipts.judging.claim import Claim, ClaimFile, claim_from_json, claim_to_json
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import ClaimVerdict
from receipts.judging.verdict import verdict_to_json as verdict_json
from receipts.questions.claims.judgment import is_file, verdict_on
from receipts.store import Decision, NewClaim, Quote, StoredClaim, StoredClaimVerdict

if TYPE_CHECKING:
    from receipts.store import Store

_MAX_DOCUMENT = 64 * 1024 * 1024  # bytes of a document that may name a receipt
TEXTS = (".md", ".rst", ".txt", ".html", ".json", ".toml", ".csv")
_ID = re.compile(r"\b([0-9a-f]{8,64})\b")
_LINK = re.compile(r"receipt:([0-9a-fA-F.]{4,130})")


def new_claims(group: ClaimFile) -> list[NewClaim]:
    """The claims of a file as a store takes them. Raises InputError where one names a file, which may move."""
    problems = [
        Problem(f"claim[{index}].{side}", f"{word} is a file", "submit it, and name it by id, label or @pin")
        for index, claim in enumerate(group.claims)
        for side in ("baseline", "candidate")
        for word in getattr(claim, side)
        if is_file(word)
    ]
    if problems:
        raise InputError(group.source, problems)
    return [
        NewClaim(item.id, item.kind, claim_to_json(item), group.source, item.supersedes, item.reason)
        for item in group.claims
    ]


@dataclass(frozen=True)
class ClaimHistory:
    """One stored claim with its verdict now, those before, and what was decided on its receipts."""

    stored: StoredClaim
    claim: Claim
    verdict: ClaimVerdict
    before: tuple[StoredClaimVerdict, ...]
    decisions: tuple[Decision, ...]

    def document(self) -> dict[str, Any]:
        """As JSON-able data."""
        gone = self.stored.superseded
        return {
            "claim": self.claim.model_dump(mode="json", exclude_none=True),
            "added": self.stored.at,
            "origin": self.stored.origin,
            "actor": self.stored.actor,
            "superseded": {"by": gone.successor, "reason": gone.reason, "actor": gone.actor} if gone else None,
            "verdict": verdict_json(self.verdict),
            "before": [{"at": item.at, "status": item.status, "rules": item.rules} for item in self.before],
            "decisions": [item._asdict() for item in self.decisions],
        }


def history(store: Store, claim_id: str, rulebook: Rulebook) -> ClaimHistory:
    """A claim's history. Raises NotFound."""
    kept = store.published.claim(claim_id)
    claim = claim_from_json(kept.body, f"claim {kept.id}")
    verdict = verdict_on(claim, rulebook, store)
    decided = store.published.decisions([*verdict.baseline, *verdict.candidate])
    return ClaimHistory(kept, claim, verdict, tuple(store.published.claim_verdicts(claim_id)), tuple(decided))


@dataclass(frozen=True, slots=True)
class Impact:
    """What quotes a receipt. `superseded` is its successor (empty if it was retracted) and the reason, if it fell."""

    receipt: str
    superseded: tuple[str, str] | None
    claims: tuple[tuple[StoredClaim, Claim], ...]
    quotes: tuple[Quote, ...]
    decisions: tuple[Decision, ...]
    found_in: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[str, ...]:
        """Documents that quote the receipt itself, or a claim that rests on it."""
        quoted = [place for _, claim in self.claims for place in claim.quoted_in]
        return tuple(dict.fromkeys([*quoted, *(item.document for item in self.quotes), *self.found_in]))

    @property
    def stale(self) -> bool:
        """Whether something quotes a receipt that was withdrawn."""
        return self.superseded is not None and bool(self.claims or self.documents)


def impact(store: Store, receipt_id: str, places: Sequence[Path] = ()) -> Impact:
    """The claims and documents that go stale, or would, with a receipt; its id is looked for in ``places`` as well.

    Raises UsageError where a place is not there.
    """
    fell = store.fallen([receipt_id]).get(receipt_id)
    judged, standing = set(store.published.claims_on(receipt_id)), []
    for kept in store.published.claims():  # that stood on it when they were last judged, or that name it outright
        claim = claim_from_json(kept.body, f"claim {kept.id}")
        words = (*claim.baseline, *claim.candidate)
        if kept.id in judged or any(len(word) >= 4 and receipt_id.startswith(word.lower()) for word in words):
            standing.append((kept, claim))
    return Impact(
        receipt=receipt_id,
        superseded=(fell.successor or "", fell.reason) if fell is not None else None,
        claims=tuple(standing),
        quotes=tuple(store.published.quotes(receipt_id)),
        decisions=tuple(store.published.decisions([receipt_id])),
        found_in=tuple(path for place in places for path in _naming(place, receipt_id)),
    )


def _naming(place: Path, receipt_id: str) -> Iterator[str]:
    """Text files at a place that name a receipt: by a link's ``receipt:``, or by eight digits of its id and more."""
    if not place.exists():
        raise UsageError(f"--in {place}: there is no such file or folder")
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in TEXTS)
    for path in files:
        try:
            text = read_small(path, _MAX_DOCUMENT).decode()
        except (OSError, UnicodeDecodeError):
            continue  # not a document
        words = _ID.findall(text)
        links = [word for link in _LINK.findall(text) for word in link.split("..")]
        if any(receipt_id.startswith(word.lower()) for word in (*words, *links) if len(word) >= 4):
            yield str(path)
