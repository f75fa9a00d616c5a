"""What a verdict lacks, in words: by the leaf that a rule asks for, else by the name of the rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.judging.verdict import Finding, Level
from receipts.publish.findings import Grouped, actions, on_sides
from receipts.publish.page import Cell
from receipts.publish.readings import leaf
from receipts.publish.words import words


def called(item: Finding) -> str:
    """What a finding lacks."""
    return named(item.at) if item.at in _leaves() else item.name.replace("_", " ")


def named(at: str) -> str:
    """A leaf in words."""
    return _leaves().get(at) or leaf(at).replace("_", " ")


def _leaves() -> dict[str, str]:
    return dict(words("leaves").named("leaf"))


def short(groups: Grouped) -> list[str]:
    """Everything that is missing, each with the rules that ask for it: open questions, then facts not stated."""
    codes: dict[str, list[str]] = {}
    for group in groups.at(Level.OPEN):
        codes.setdefault(called(group[0]), []).append(group[0].code)
    known = {code for group in codes.values() for code in group}
    for at, items in groups.waiting.items():
        rules = dict.fromkeys(item.code for item in items if item.code not in known)
        codes.setdefault(named(at), []).extend(rules)
    return [f"{name} ({', '.join(rules)})" for name, rules in codes.items() if rules]


def remedies(groups: Sequence[Sequence[Finding]]) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Each open question by what it lacks, with all that would answer it."""
    by_rule: dict[str, list[Finding]] = {}
    for group in groups:
        by_rule.setdefault(group[0].code, []).extend(group)
    for code, items in by_rule.items():
        yield f"{called(items[0])} ({code}{on_sides(items)})", tuple((text,) for text in actions(items))
