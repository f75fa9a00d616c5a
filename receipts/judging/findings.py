"""Findings put together by rule, and those that decide a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from receipts import metrics
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Comparison, Finding, Level, Question

SHOWN_HELD = 12  # settings that are named one by one


_ORDER = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


@dataclass(frozen=True, slots=True)
class Grouped:
    """Findings put together: those of one rule, wherever they are, and those that wait for one missing fact.

    ``judged`` decide, ``shown`` decide nothing.
    """

    judged: tuple[tuple[Finding, ...], ...]
    waiting: Mapping[str, tuple[Finding, ...]]
    shown: tuple[tuple[Finding, ...], ...] = ()

    def at(self, level: Level) -> tuple[tuple[Finding, ...], ...]:
        """The judged groups of one level."""
        return tuple(group for group in self.judged if group[0].level is level)


def grouped(findings: Iterable[Finding]) -> Grouped:
    """Group findings by level, those on a question of the verdict before the others, each in the order of codes."""
    judged: dict[tuple[str, ...], list[Finding]] = {}
    waiting: dict[str, list[Finding]] = {}
    for item in findings:
        if item.unjudged:
            waiting.setdefault(item.at, []).append(item)
        else:
            judged.setdefault((item.code, item.level.value), []).append(item)
    ordered = sorted(judged.values(), key=lambda group: (*_weight(group[0]), group[0].code))
    deciding = [tuple(group) for group in ordered if group[0].level is not Level.SHOWN]
    shown = [tuple(group) for group in ordered if group[0].level is Level.SHOWN]
    return Grouped(tuple(deciding), {at: tuple(group) for at, group in waiting.items()}, tuple(shown))


def _weight(item: Finding) -> tuple[int, bool]:
    return _ORDER[item.level], item.question is Question.NONE


def worth_reading(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """The findings on the pair, and of the sides what those do not already quote."""
    pair = [item for item in verdict.findings if item.on_pair]
    quoted = {(item.subject, item.at) for item in pair if item.code in rules.about(Topic.SIDES)}
    unknown = rules.about(Topic.UNKNOWN)
    listed = len({item.at for item in pair if item.code in unknown}) <= SHOWN_HELD
    shown = (*rules.about(Topic.WITNESS), *rules.about(Topic.INCIDENT))  # what a side ran on, though it decides nothing
    sides = [
        item
        for item in verdict.findings
        if item not in pair
        and (item.subject, item.at) not in quoted
        and not (item.unjudged and item.question is Question.COMPARABLE)
        and (item.level is not Level.SHOWN or item.code in shown)
    ]
    return [item for item in pair if listed or item.code not in unknown] + sides


def decides(item: Finding, verdict: Comparison, rules: RuleSet) -> bool:
    """Whether a finding has a part in this verdict: on the pair, on a path, or on a side where it spoils this metric.

    What spoils another metric of a side alone is no reason of it.
    """
    if item.waived is not None or item.question is Question.NONE:
        return False
    if item.on_pair or item.question is Question.PATH:
        return True
    spoils = not item.taints or item.spoils(metrics.get(verdict.metric).taint)
    return spoils and item.code not in rules.sparing(verdict.metric)


def refusing(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """The errors that decide a verdict, the first the one to name: on the pair, on a side's path, then what a pair's
    rule quotes of a side.
    """
    quoting = rules.about(Topic.SIDES)
    errors = (item for item in verdict.findings if item.level is Level.ERROR and decides(item, verdict, rules))
    return sorted(errors, key=lambda item: (item.code in quoting, not item.on_pair))
