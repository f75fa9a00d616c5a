"""From what a claim names to the receipts themselves: files beside the claim, and what a store holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from receipts.axes.shape import meets
from receipts.base.errors import NotFound, UsageError
from receipts.judging.claims.claim import Claim
from receipts.judging.rulebook import Rulebook
from receipts.questions.claims.judge import ClaimEvidence, judge, target_bounds
from receipts.questions.claims.load import ClaimFile, from_json
from receipts.questions.comparisons import Comparisons, names_one
from receipts.questions.sides import Join
from receipts.receipt import Document, Parsed, parse, read

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.judging.facts import Facts
    from receipts.store import Store

Missing = list[tuple[str, str]]


def gather(
    claim: Claim, rulebook: Rulebook, store: Store | None, folder: Path | None = None, *, replicates: bool = True
) -> ClaimEvidence:
    """Fetch the receipts that a claim names, with Facts about them.

    Files are looked for in ``folder``. Without a store only files are found, and there are no Facts but what documents
    say of each other. Raises InputError where a file is no receipt.
    """
    missing: Missing = []
    sides_by_word = [_side(side, getattr(claim, side), store, folder, missing) for side in ("baseline", "candidate")]
    groups = [[item for _, group in side for item in group] for side in sides_by_word]
    named = {item.id for side in sides_by_word for word, group in side if _is_named(word, group) for item in group}
    earlier, lost = _last(claim, store) if store is not None else (None, ())
    if not any(groups):
        return ClaimEvidence((), (), None, tuple(missing), earlier, lost)
    comparisons = Comparisons(store, rulebook)
    of_shape = claim.kind == "ceiling"
    # A ceiling is no level that days move: every launch that reached the shape shows that it holds.
    join: Join = "all" if of_shape or claim.kind == "does-not-fit" else "session"
    labelled = {item.id for group in groups for item in group} - named
    asked = comparisons.asked(groups[0], groups[1], join if replicates else "only", labelled)
    try:
        # What does not fit is shown by launches that failed.
        own = None if claim.kind == "does-not-fit" else named
        sides = comparisons.sides(asked, claim.metric_name, own, of_shape=of_shape)
    except UsageError:  # a side of several configurations: the comparison says so
        sides = comparisons.sides(asked, claim.metric_name)
    facts = _with_target(claim, sides.b, sides.facts, rulebook, store)
    return ClaimEvidence(sides.a, sides.b, facts, tuple(missing), earlier, lost, sides.lost, frozenset(named))


def _with_target(
    claim: Claim, candidate: Sequence[Parsed], facts: Facts, rulebook: Rulebook, store: Store | None
) -> Facts:
    """The facts with what any layout sustained of this model, where the candidate did not run at the claim's target."""
    if store is None or not candidate:
        return facts
    launch = rulebook.launch(candidate[0])
    bounds = target_bounds(claim, launch.lane)
    if not bounds or meets(candidate[0], bounds):
        return facts
    every = store.query.reached_with(candidate[0].receipt.run.lane, launch.settings.shape.geometry)
    return replace(facts, shapes=tuple(dict.fromkeys((*facts.shapes, *every))))


def verdict_on(
    claim: Claim, rulebook: Rulebook, store: Store | None, folder: Path | None = None, *, replicates: bool = True
) -> ClaimVerdict:
    """The present verdict on a claim; see `gather`."""
    return judge(claim, gather(claim, rulebook, store, folder, replicates=replicates), rulebook)


def stored(store: Store, *, standing: bool = True) -> ClaimFile:
    """The claims of a store, as a file of them: those that stand, unless told otherwise."""
    kept = store.published.claims(standing=standing)
    return ClaimFile(store.url, None, tuple(from_json(item.body, f"claim {item.id}") for item in kept))


def _last(claim: Claim, store: Store) -> tuple[str | None, tuple[tuple[str, str, str], ...]]:
    """The status that it was last given, and which receipts of that day no longer stand."""
    last = store.published.last_claim_verdict(claim.id)
    if last is None:
        return None, ()
    superseded = store.fallen(receipt for _, receipt in last.receipts)
    gone = (superseded[receipt] for _, receipt in last.receipts if receipt in superseded)
    return last.status, tuple((item.receipt, item.successor or "", item.reason) for item in gone)


def _side(
    side: str, words: Sequence[str], store: Store | None, folder: Path | None, missing: Missing
) -> list[tuple[str, list[Parsed]]]:
    """The words of a side with the receipts that each names, and that none before it does."""
    named: list[tuple[str, list[Parsed]]] = []
    known: set[str] = set()
    for word in words:
        try:
            group = [item for item in _named(word, store, folder) if item.id not in known]
        except NotFound as error:
            missing.append((side, str(error)))
            continue
        known.update(item.id for item in group)
        named.append((word, group))
    return named


def _is_named(word: str, group: Sequence[Parsed]) -> bool:
    return is_file(word) or names_one(word, group)


def is_file(word: str) -> bool:
    """Whether a word of a claim names a file beside it, rather than a receipt of the store."""
    return word.endswith(".json") or "/" in word


def _named(word: str, store: Store | None, folder: Path | None) -> list[Parsed]:
    """The receipts of one word. A word that looks like a file is one; raises NotFound."""
    if folder is not None and is_file(word):
        place = folder / word
        if not place.is_file():
            raise NotFound(f"there is no file {word} beside the claims")
        return [parse(read(place))]
    if store is None:
        raise NotFound(f"{word!r} is no file, and no store was asked")
    return [parse(Document(store.document(item), item[:12])) for item in store.resolve_all(word)]
