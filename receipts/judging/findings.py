"""Findings put together by rule, and those that decide a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from receipts import metrics
from receipts.axes.inputs import leaf
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Comparison, Finding, Level, Question

SHOWN_HELD = 12  # settings that are named one by one
MAX_EXPECTED = 60
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

    An offense that spoils only another metric of a side is not a reason.
    """
    if item.waived is not None or item.question is Question.NONE:
        return False
    if item.on_pair or item.question is Question.PATH:
        return True
    spoils = not item.taints or item.spoils(metrics.get(verdict.metric).taint)
    return spoils and item.code not in rules.sparing(verdict.metric)


def refusing(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """The errors that reject a comparison, the first the one to name: on the pair, on a side's path, then what spoils a
    side, and last the pair's rule that quotes it. An error on the effect alone rejects nothing.
    """
    quoting = rules.about(Topic.SIDES)
    quoted = {(item.subject, item.at) for item in verdict.findings if item.code in quoting}
    errors = (item for item in verdict.findings if item.level is Level.ERROR and decides(item, verdict, rules))
    rejecting = [
        item
        for item in errors
        if item.question is Question.PATH
        or (item.question is not Question.EFFECT if item.on_pair else (item.subject, item.at) in quoted)
    ]
    return sorted(
        rejecting, key=lambda item: (item.code in quoting, not item.on_pair, item.question is not Question.PATH)
    )


def on_sides(findings: Sequence[Finding]) -> str:
    """`` on A``, `` on B``, `` on A and B``, or nothing for a finding on the pair."""
    sides = sorted({item.subject.upper() for item in findings if item.subject in ("a", "b")})
    return f" on {' and '.join(sides)}" if sides else ""


def reason(item: Finding) -> str:
    """One finding in one sentence: what is there, and what was expected if that is short."""
    expected = f", expected {item.expected}" if item.expected and len(item.expected) <= MAX_EXPECTED else ""
    name = leaf(item.at)
    return f"{item.found if item.found.startswith(name) else f'{name}: {item.found}'}{expected}"


class Refusal(NamedTuple):
    """A rule that rejects a comparison, on which sides (` on A and B`; empty for the pair), its finding and remedy."""

    code: str
    name: str
    sides: str
    found: str
    do: str


def refusals(verdict: Comparison, rules: RuleSet) -> list[Refusal]:
    """The rules that reject a comparison, each once, the one to name first: the reason is the same on every page.

    A pair's rule that quotes a side says nothing more where the side's own rule is named.
    """
    errors = refusing(verdict, rules)
    quoting = rules.about(Topic.SIDES)
    named = {item.at for item in errors if item.code not in quoting}
    refused: dict[str, Refusal] = {}
    for item in errors:
        if item.code in refused or (item.code in quoting and item.at in named):
            continue
        same = [other for other in errors if (other.code, other.found) == (item.code, item.found)]
        refused[item.code] = Refusal(item.code, item.name, on_sides(same), reason(item), item.do)
    return list(refused.values())


def several_axes(verdict: Comparison, rules: RuleSet) -> bool:
    """Whether a comparison is rejected since several axes changed: then they are its reason, and no other."""
    return len(verdict.counted) > 1 and any(item.code in rules.about(Topic.AXES) for item in refusing(verdict, rules))
