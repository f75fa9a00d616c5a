"""Single drops from documents: every section, leaf, row, entry of a list and key of a map, and what is exempt."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final

import rule_cases
from receipts.errors import InputError
from receipts.exempt import exempt
from receipts.facts import Facts
from receipts.judge import judge_receipt
from receipts.receipt import Parsed
from receipts.verdict import Level
from rule_cases import RuleCase

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
    """Cases of rules on a pair that reject it."""
    return [
        case
        for rule in BOOK.rules.rules
        if rule.subject == "pair"
        for case in rule_cases.read_cases(rule.code)
        if case.kind == "rejected" and case.level(rule) is Level.ERROR
    ]


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
    return judge_receipt(parsed, BOOK.lanes.of(parsed.receipt.run.lane), BOOK.rules, facts).status


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
