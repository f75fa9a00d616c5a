"""From what a claim names to the receipts themselves: files beside the claim, and what a store holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from receipts.claims.assess import FEWEST_LAUNCHES
from receipts.claims.claim import Claim
from receipts.claims.judge import Evidence
from receipts.claims.load import ClaimFile, from_json
from receipts.errors import NotFound
from receipts.facts import Facts
from receipts.lane import Lane
from receipts.noise import noise_floor, with_floor
from receipts.receipt import Document, Parsed, parse, read
from receipts.replicates import with_replicates
from receipts.rulebook import Rulebook

if TYPE_CHECKING:
    from receipts.store import Store

Missing = list[tuple[str, str]]


def gather(
    claim: Claim, rulebook: Rulebook, store: Store | None, folder: Path | None = None, *, replicates: bool = True
) -> Evidence:
    """Fetch the receipts that a claim names, with Facts about them.

    Files are looked for in ``folder``. Without a store only files are found, and there are no Facts but what documents
    say of each other. Raises InputError where a file is no receipt.
    """
    missing: Missing = []
    sides = {side: _side(side, getattr(claim, side), store, folder, missing) for side in ("baseline", "candidate")}
    baseline, candidate = sides["baseline"], sides["candidate"]
    earlier, lost = _last(claim, store) if store is not None else (None, ())
    facts: Facts | None = None
    if store is not None and (baseline or candidate):
        lane = rulebook.lanes.of((candidate or baseline)[0].receipt.run.lane)
        if replicates:
            baseline, candidate = (
                _repeated(store, baseline, candidate, lane),
                _repeated(store, candidate, baseline, lane),
            )
        facts = store.facts([*baseline, *candidate])
        # Of memory they alone show whether it is exact.
        if claim.kind == "memory" or _wants_floor(baseline, candidate):
            facts = with_floor(facts, noise_floor(store, (candidate or baseline)[0], lane))
    elif baseline or candidate:
        facts = Facts.among([*baseline, *candidate])
    return Evidence(tuple(baseline), tuple(candidate), facts, tuple(missing), earlier, lost)


def _wants_floor(baseline: Sequence[Parsed], candidate: Sequence[Parsed]) -> bool:
    """Whether the store's own repeats must be read: for the spread of few launches.

    A receipt without its steps has no effect that they could decide.
    """
    few = any(0 < len(side) < FEWEST_LAUNCHES for side in (baseline, candidate))
    steps = all("measurement.step_durations_seconds" in item.stated for item in (*baseline, *candidate))
    return steps and few


def stored(store: Store, *, standing: bool = True) -> ClaimFile:
    """The claims of a store, as a file of them: those that stand, unless told otherwise."""
    kept = store.claims(standing=standing)
    return ClaimFile(store.url, None, tuple(from_json(item.body, f"claim {item.id}") for item in kept))


def _last(claim: Claim, store: Store) -> tuple[str | None, tuple[tuple[str, str, str], ...]]:
    """The status that it was last given, and which receipts of that day no longer stand."""
    last = store.last_claim_verdict(claim.id)
    if last is None:
        return None, ()
    said = {item.receipt: item for item in store.supersessions()}
    gone = (said[receipt] for _, receipt in last.receipts if receipt in said)
    return last.status, tuple((item.receipt, item.successor or "", item.reason) for item in gone)


def _side(side: str, words: Sequence[str], store: Store | None, folder: Path | None, missing: Missing) -> list[Parsed]:
    found: dict[str, Parsed] = {}
    for word in words:
        try:
            for item in _named(word, store, folder):
                found.setdefault(item.id, item)
        except NotFound as error:
            missing.append((side, str(error)))
    return list(found.values())


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


def _repeated(store: Store, side: list[Parsed], other: Sequence[Parsed], lane: Lane) -> list[Parsed]:
    return with_replicates(store, side, lane, other) if side else side
