"""Single drops from documents: every section, leaf, row, entry of a list and key of a map, and what is exempt."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import rule_cases
from exempt import exempt
from receipts.base.errors import InputError, ReceiptsError
from receipts.judging.comparison import compare
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import Level
from receipts.receipt import Parsed
from receipts.receipt.leaves import counted_entries
from rule_cases import RuleCase

# A noise floor lets one launch a side carry an interval, so that an acceptance is within reach of every pair.
FACTS: Final = Facts(sigma=0.003, sigma_df=30)
# The cases are typed: they are judged by what a lane asked in their days, so that a drop can make one valid.
_THEN: Final = datetime(2026, 11, 16, tzinfo=UTC)
SIDES: Final = ("a", "b", "both")
LONG: Final = 40  # of a longer list of numbers the first, the middle and the last stand for all
Place = tuple[str | int, ...]
BOOK = rule_cases.rulebook()


def rejected_cases() -> list[RuleCase]:
    """Cases of rules on one receipt that make it invalid."""
    return [
        case
        for rule in BOOK.rules.rules
        if rule.subject == "receipt"
        for case in rule_cases.read_cases(rule.code)
        if case.kind == "rejected" and case.level(rule) is Level.ERROR
    ]


def rejected_pairs() -> list[RuleCase]:
    """Cases of rules on a pair that reject it; not C108's, which name a document by an id that a drop changes."""
    return [
        case
        for rule in BOOK.rules.rules
        if rule.subject == "pair" and rule.code != "C108"
        for case in rule_cases.read_cases(rule.code)
        if case.kind == "rejected" and case.level(rule) is Level.ERROR
    ]


def as_written(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree with the counts of its entries, as recorder and ingest write them."""
    return {**tree, "run": {**tree["run"], "entries": counted_entries(tree)}}


def places(tree: Any, above: Place = ()) -> Iterator[Place]:
    """Every place of a tree that holds something."""
    keys: Iterable[str | int] = ()
    if isinstance(tree, dict):
        keys = tree
    elif isinstance(tree, list):
        keys = range(len(tree)) if len(tree) <= LONG else (0, len(tree) // 2, len(tree) - 1)
    for key in keys:
        yield (*above, key)
        yield from places(tree[key], (*above, key))


def named(place: Place) -> str:
    """A place as a dotted path."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def without(tree: dict[str, Any], *gone: Place) -> dict[str, Any]:
    """The tree without what stands at some places; of a list the later entries go first. The rest is shared."""
    top: dict[str, Any] = copy.copy(tree)
    for place in sorted(gone, key=str, reverse=True):
        node: Any = top
        try:
            for part in place[:-1]:
                node[part] = copy.copy(node[part])
                node = node[part]
            del node[place[-1]]
        except (KeyError, IndexError):
            continue  # it went with what holds it
    return top


def facts_of(case: RuleCase) -> Facts:
    """The facts of a case; those of an empty store where it has none."""
    return rule_cases.facts_of(case.table.get("facts"), base_name=case.table.get("base", "cpu")) or Facts()


def judged(parsed: Parsed, facts: Facts) -> str:
    """Status of a receipt among some facts."""
    known = replace(facts, now=facts.now or _THEN)
    return judge_receipt(parsed, BOOK.lanes.of(parsed.receipt.run.lane), BOOK.rules, known).status


def status(tree: dict[str, Any], facts: Facts) -> str:
    """Status of what a tree states; ``refused`` where it is no receipt."""
    try:
        parsed = rule_cases.parsed(tree)
    except InputError:
        return "refused"
    return judged(parsed, facts)


def droppable(tree: dict[str, Any]) -> list[Place]:
    """Places that are not exempt."""
    stated = rule_cases.parsed(tree).stated
    return [place for place in places(tree) if not exempt(named(place), stated)]


class PairDrops:
    """The pair of a case as recorder and ingest write it, and its status after drops.

    What one context holds is exempt, so that there is none here.
    """

    def __init__(self, case: RuleCase) -> None:
        *groups, request = rule_cases.pair(case.table)
        given = request.facts or FACTS
        known = replace(given, sigma=FACTS.sigma, sigma_df=FACTS.sigma_df, now=given.now or _THEN)
        self._request = replace(request, facts=known)
        self._trees = [
            [without(as_written(json.loads(item.raw)), ("run", "context")) for item in group] for group in groups
        ]
        self._whole = [[rule_cases.parsed(tree) for tree in group] for group in self._trees]
        # Rules that object to the whole pair are asked first: what some rules do not accept, all of them do not.
        found = compare(*self._whole, BOOK, self._request).findings
        self._first = BOOK.of_rules({item.code for item in found if item.level is not Level.SHOWN} | {"R120", "C105"})

    def places(self, *, every: bool = False) -> list[Place]:
        """Places of either side, without those that are exempt."""
        at = places if every else droppable
        return list(dict.fromkeys(place for group in self._trees for place in at(group[0])))

    def status(self, side: str = "", *gone: Place) -> str:
        """Status without what stands at some places of a side; ``refused`` where it is no pair any more."""
        try:
            left = [
                [rule_cases.parsed(without(tree, *gone)) for tree in trees] if side in (letter, "both") else whole
                for letter, trees, whole in zip("ab", self._trees, self._whole, strict=True)
            ]
            few = compare(*left, self._first, self._request).status
            return compare(*left, BOOK, self._request).status if few == "accepted" else few
        except ReceiptsError:
            return "refused"
