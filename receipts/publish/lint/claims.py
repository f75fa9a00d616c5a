"""From a claim's name in a link to its verdict: claims files first, then the claims that the store keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from receipts.judging.rulebook import Rulebook
from receipts.questions.claims.gather import is_file, stored, verdict_on
from receipts.questions.claims.load import ClaimFile

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.store import Store


def judge_named(
    name: str, files: tuple[ClaimFile, ...], rulebook: Rulebook, store: Callable[[], Store]
) -> ClaimVerdict | None:
    """The verdict on the claim of that id, or None where there is none. ``store`` is called where it is needed."""
    for group in files:
        for claim in group.claims:
            if claim.id == name:
                words = (*claim.baseline, *claim.candidate)
                opened = None if all(is_file(word) for word in words) else store()
                return verdict_on(claim, rulebook, opened, group.folder)
    opened = store()
    for claim in stored(opened).claims:
        if claim.id == name:
            return verdict_on(claim, rulebook, opened)
    return None
