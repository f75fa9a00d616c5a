"""The regime that a launch ran in, how much work each chip had, how it was measured, and what compiling cost it.

A launch is *unstable* where no steady segment was found, or where it compiled after warm-up. It is
*communication-heavy* where what nothing hides takes a fifth of a step, and *memory-limited* where its tightest chip
keeps less than the lane wants kept. It has *enough work* where all three are known and none of them holds. Several may
hold at once; where none was found and a fact is missing, the regime is not known. Of two launches, `payback` says what
a cold cache costs, and after how many steps a longer compile pays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from receipts import metrics
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question
from receipts.metrics import Launch
from receipts.metrics.readings import amortization
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import leaves

HEAVY: Final = 0.20  # share of a step from which exposed communication is what a launch waits for


@dataclass(frozen=True, slots=True)
class StepWork:
    """What a chip had to do in a step, and what it waited for.

    `exposed` is the share of a step that is communication which nothing hides, `left` the share of its limit that the
    tightest chip kept, `wanted` what the lane wants kept, `steady` whether a steady segment was found. `regimes` holds
    each regime that was found, and `missing` the facts that nobody stated.
    """

    tokens_per_chip: float | None
    exposed: float | None
    left: float | None
    wanted: float
    steady: bool | None
    regimes: tuple[str, ...]
    missing: tuple[str, ...]


def work(launch: Launch, findings: Iterable[Finding], rules: RuleSet) -> StepWork:
    """The work and the regime of one launch, with what the rules found of it."""
    steady, exposed, left = _steady(launch, findings, rules), _exposed(launch), _left(launch)
    wanted = launch.lane.headroom
    tokens, chips = launch.tokens_per_step, launch.stated.get("hardware.chips")
    tokens_per_chip = tokens / chips if tokens is not None and chips else None
    parts = []
    if steady is False:
        parts.append("unstable")
    if exposed is not None and exposed >= HEAVY:
        parts.append("communication-heavy")
    if left is not None and left < wanted:
        parts.append("memory-limited")
    facts = {
        "tokens a chip": tokens_per_chip,
        "steadiness": steady,
        "exposed communication": exposed,
        "memory by chip with its limit": left,
    }
    missing = tuple(name for name, value in facts.items() if value is None)
    if not parts and not missing:
        parts.append("enough work")
    return StepWork(tokens_per_chip, exposed, left, wanted, steady, tuple(parts), missing)


def measured(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves that say how a launch was measured, as it states them: cache, window, timer."""
    regime = (leaf.path for leaf in leaves() if leaf.role is Role.REGIME and not leaf.required)
    return {path: stated[path] for path in regime if path in stated}


def _steady(launch: Launch, findings: Iterable[Finding], rules: RuleSet) -> bool | None:
    """Whether its steps have a steady segment and nothing compiled within; None without steps to tell it from."""
    incidents = rules.about(Topic.INCIDENT)
    for finding in findings:
        unsettled = finding.code in incidents and finding.question is Question.EFFECT
        if unsettled and not finding.unjudged and finding.level is not Level.SHOWN:
            return False
    return True if launch.summary is not None else None


def _exposed(launch: Launch) -> float | None:
    if launch.stated.get("hardware.chips") == 1:
        return 0.0
    seconds = launch.stated.get("measurement.exposed_communication_seconds")
    step = launch.read(metrics.get("step_seconds")).value
    return seconds / step if seconds is not None and step else None


def _left(launch: Launch) -> float | None:
    tightest = launch.account.tightest
    return tightest.left if tightest is not None else None


_CACHE = "compile.cache_state"


@dataclass(frozen=True, slots=True)
class Payback:
    """Two launches by their compile time. ``extra`` seconds that the ``longer`` of A and B compiled beyond the other.

    ``caches`` are their cache states, None where not stated. ``worth`` are steady steps of the other side that take as
    long as ``extra``; ``steps`` those after which the faster steps of the longer one have repaid it, None where its
    steps are not faster.
    """

    longer: str
    extra: float
    caches: tuple[str | None, str | None]
    worth: int | None
    steps: int | None
    shares: tuple[str, str]

    @property
    def of_caches(self) -> bool:
        """Whether one side started from a cold cache and the other from a warm one."""
        return set(self.caches) == {"cold", "warm"}

    def __str__(self) -> str:
        cache = dict(zip("AB", self.caches, strict=True))
        why = f" ({cache[self.longer]} cache)" if self.of_caches else ""
        text = f"{self.longer} compiled {self.extra:,.3g} s longer{why}"
        if self.worth is not None:
            text += f", as long as {self.worth:,} steps"
        if self.of_caches:
            text += f"; a warm cache is paid back after {self.worth:,} steps" if self.worth is not None else ""
        elif self.steps is not None:
            text += f"; paid back after {self.steps:,} steps"
        else:
            text += "; never paid back: its steps are not faster"
        return f"{text}. A: {self.shares[0]}. B: {self.shares[1]}."


def payback(a: Launch, b: Launch) -> Payback | None:
    """The launches by compile time; None where one states none, or both compiled equally long."""
    costs = amortization(a), amortization(b)
    if costs[0] is None or costs[1] is None or costs[0].seconds == costs[1].seconds:
        return None
    longer_is_a = costs[0].seconds > costs[1].seconds
    longer, shorter = (a, b) if longer_is_a else (b, a)
    extra = abs(costs[0].seconds - costs[1].seconds)
    gain = (shorter.step_seconds or 0.0) - (longer.step_seconds or 0.0)
    known = bool(shorter.step_seconds and longer.step_seconds)
    return Payback(
        longer="A" if longer_is_a else "B",
        extra=extra,
        caches=(a.stated.get(_CACHE), b.stated.get(_CACHE)),
        worth=math.ceil(extra / shorter.step_seconds) if shorter.step_seconds else None,
        steps=math.ceil(extra / gain) if known and gain > 0.0 else None,
        shares=(str(costs[0]), str(costs[1])),
    )
