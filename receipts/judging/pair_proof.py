"""Proofs of the errors on a pair: the stated leaves of both sides and their witnesses that such an error rests on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from receipts.judging.facts import Facts
from receipts.judging.proof import Reducer, minimal, same_place, stated_by
from receipts.judging.rule import PairCase
from receipts.judging.rulebook import Rulebook
from receipts.judging.topic import Topic
from receipts.judging.verdict import Comparison, Finding, Level, ProofLeaf
from receipts.receipt import Parsed
from receipts.receipt.leaves import path_of

Retry = Callable[[Sequence[Parsed], Sequence[Parsed], Rulebook, Facts | None], Comparison]


def proved_pair(comparison: Comparison, pair: PairCase, rulebook: Rulebook, retry: Retry) -> tuple[Finding, ...]:
    """The findings of a comparison, its errors on the pair with their proofs.

    ``retry`` compares reduced receipts under a reduced rulebook and facts.
    """
    facts = pair.facts
    witnesses = facts.witnesses if facts is not None else ()
    sides = [[launch.parsed for launch in group] for group in (pair.group_a, pair.group_b)]
    every = stated_by([*sides[0], *sides[1], *(item for item in witnesses if item.id in comparison.witnesses)])
    moved = {member.path for change in comparison.difference.changed for member in change.members}
    # What a witness lends takes most leaves of two receipts: the proofs of the sides' own findings have them already.
    shown = {leaf for item in (*pair.findings_a, *pair.findings_b) for leaf in item.proof}
    spoilt = {item.code for item in (*pair.findings_a, *pair.findings_b) if item.level is Level.ERROR}
    quoting = rulebook.rules.about(Topic.SIDES)

    moved_leaves = {leaf for leaf in every if path_of(leaf.path) in moved}
    less = Reducer()
    books = {
        item.code: rulebook.of_rules({item.code, *(spoilt if item.code in quoting else ())})
        for item in comparison.findings
    }

    @lru_cache(maxsize=1024)  # several findings of one rule are tried on the same leaves
    def errors(code: str, leaves: frozenset[ProofLeaf], launches: int | None) -> frozenset[tuple[str, str]]:
        a, b = ([less(one, leaves) for one in side[:launches]] for side in sides)
        fewer = facts and replace(facts, witnesses=tuple(less(one, leaves) for one in witnesses))
        items = retry(a, b, books[code], fewer).findings
        return frozenset((item.at, item.found) for item in items if item.code == code and item.level is Level.ERROR)

    @cache
    def needed(code: str) -> int | None:
        """The launches of a side that a trial takes: the first where it alone is found at fault as all are."""
        leaves = frozenset(every)
        return 1 if errors(code, leaves, 1) == errors(code, leaves, None) else None

    def proof(item: Finding) -> tuple[ProofLeaf, ...]:
        launches = needed(item.code)

        def remains(leaves: Collection[ProofLeaf]) -> bool:
            return any(same_place(at, item.at) for at, _ in errors(item.code, frozenset(leaves), launches))

        def parts() -> Iterator[list[ProofLeaf]]:
            likely = [leaf for leaf in every if leaf in moved_leaves or leaf.path.startswith(item.at)]
            yield likely
            wider = shown.union(likely)
            yield [leaf for leaf in every if leaf in wider]
            yield every

        return next(filter(None, (minimal(part, remains) for part in parts())), ())

    return tuple(
        replace(item, proof=proof(item)) if item.level is Level.ERROR and item.on_pair else item
        for item in comparison.findings
    )
