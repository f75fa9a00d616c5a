"""What a launch says of itself: the five answers that head every receipt, and the regime that it ran in.

The answers are topology, amortization, sequence and family, path, target and envelope.

The regime: a launch is *unstable* where no steady segment was found, or where it compiled after warm-up. It is
*communication-heavy* where what nothing hides takes a fifth of a step, and *memory-limited* where its tightest chip
keeps less than the lane wants kept. It has *enough work* where all three are known and none of them holds. Several may
hold at once; where none was found and a fact is missing, the regime is not known. Of two launches, `payback` says what
a cold cache costs, and after how many steps a longer compile pays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts import metrics
from receipts.axes.lane import Lane
from receipts.axes.shape import described, target_of
from receipts.judging.facts import Facts, shape_standing
from receipts.judging.rule import Case, Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question, ReceiptVerdict
from receipts.metrics import Launch
from receipts.metrics.readings import SHARE, amortization, goodput_shown
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import UNFAILED
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import leaves

if TYPE_CHECKING:
    pass


State = Literal["yes", "no", "open"]


class AnsweredQuestion(NamedTuple):
    """A question, its answer in words, whether that is a yes, a no, or open, and the answer as a table has it.

    It is open where a part of the answer is not stated or not shown.
    """

    question: str
    answer: str
    state: State
    brief: str


NOT_STATED = "not stated"
NO_TARGET = "away from the lane's targets"
_SEEN = ("path.witnessed.attention", "path.witnessed.framework")


class Answers(NamedTuple):
    """One sentence a question, each `not stated` where the receipt does not carry it."""

    topology: AnsweredQuestion
    amortized: AnsweredQuestion
    workload: AnsweredQuestion
    path: AnsweredQuestion
    target: AnsweredQuestion

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Question and answer, in the order that they are asked."""
        return tuple((item.question, item.answer) for item in self)


def answers(parsed: Parsed, lane: Lane, verdict: ReceiptVerdict, facts: Facts | None, rules: RuleSet) -> Answers:
    """The five answers of one receipt under its lane and the rules that it was judged by."""
    machine, stated = topology(parsed), parsed.stated
    known, length = described(stated), stated.get("batch.sequence_length")
    names = dict.fromkeys(filter(None, (known.family or "family not stated", known.model, known.name)))
    workload = " · ".join([f"{length:,} tokens" if length else f"sequence {NOT_STATED}", *names])
    state: State = "open" if NOT_STATED in machine or machine.startswith("?") else "yes"
    return Answers(
        AnsweredQuestion("topology", machine, state, machine),
        _amortized(Launch(parsed, lane), verdict, rules),
        AnsweredQuestion("sequence and family", workload, "open" if NOT_STATED in workload else "yes", workload),
        _path(Case(Launch(parsed, lane), lane, facts), verdict),
        _target(parsed, lane, facts),
    )


def topology(parsed: Parsed) -> str:
    """Chips, accelerator and the degrees that are stated."""
    stated = parsed.stated
    machine, chips = stated.get("hardware.accelerator"), stated.get("hardware.chips")
    known = find_accelerator(machine) if machine else None
    name = known.key if known else machine or "accelerator not stated"
    shape = f" {stated['hardware.physical']}" if "hardware.physical" in stated else ""
    degrees = described(stated).layout
    return f"{chips if chips is not None else '?'} × {name}{shape}" + (f" · {degrees}" if degrees else "")


def _amortized(launch: Launch, verdict: ReceiptVerdict, rules: RuleSet) -> AnsweredQuestion:
    """Yes, no or not shown, with what compiling cost and where the wall time went, as far as they are stated.

    Where compiling took more than `SHARE` of the wall time, the rate is free of it and the launch has not paid for it.
    """
    judged = answer = _amortized_by_rules(launch.parsed, verdict, rules)
    if launch.parsed.receipt.run.outcome == "ok":
        cost = amortization(launch)
        if judged == "yes" and cost is not None and (cost.share or 0.0) > SHARE:
            judged = answer = "yes in the rate, not in the launch"
        figures = [str(cost) if cost is not None else None, goodput_shown(launch)]
        if shown := "; ".join(text for text in figures if text is not None):
            answer = f"{judged}{'; ' if ':' in judged else ': '}{shown}"
    state: State = "yes" if judged.startswith("yes") else "no" if judged.startswith("no:") else "open"
    return AnsweredQuestion("compile amortized?", answer, state, judged if state == "yes" else answer)


def _amortized_by_rules(parsed: Parsed, verdict: ReceiptVerdict, rules: RuleSet) -> str:
    if not any(path.startswith(("measurement.stated.", "measurement.step_durations")) for path in parsed.stated):
        return "nothing was measured"
    outcome = parsed.receipt.run.outcome
    if outcome not in UNFAILED:  # the rules on it ask nothing of a launch that failed
        return f"not judged: the launch ended in {outcome}"
    amortized = [(item, why) for item in verdict.findings if (why := rules.get(item.code).amortized)]
    for item, why in amortized:
        if item.level is Level.ERROR:
            return f"no: {why}"
    waiting = {item.code for item, _ in amortized if item.level is Level.OPEN}
    return f"not shown ({', '.join(sorted(waiting))})" if waiting else "yes"


def _path(case: Case, verdict: ReceiptVerdict) -> AnsweredQuestion:
    state: State = "open"
    answer = "unwitnessed"
    if verdict.path == "witnessed":
        leaf = next((name for name in _SEEN if case.get(name)), None)
        by = case.borrowed.witness_of(leaf) if leaf is not None else None
        state = "yes"
        answer = "witnessed" + (f": {case.get(leaf)}" if leaf else "") + (f", by {by[:12]}" if by else "")
    elif verdict.path == "left":
        first = next(item for item in verdict.findings if item.question == "path" and item.level is Level.ERROR)
        state, answer = "no", f"left: {first.code} {first.found}"
    return AnsweredQuestion("on its path?", answer, state, answer)


def _target(parsed: Parsed, lane: Lane, facts: Facts | None) -> AnsweredQuestion:
    """Whether a shape is a target of its lane and the lane sustained it; no where either is known not to be.

    In brief without the ceiling that says so.
    """
    met, where = target_of(parsed, lane), shape_standing(facts, parsed)
    at = "the lane names no target" if not lane.targets else f"at target {met.name}" if met else NO_TARGET
    state: State = "yes" if met is not None and where.word in ("inside", "at") else "open"
    if at == NO_TARGET or where.word == "beyond":
        state = "no"
    text = str(where)
    brief = "envelope unknown" if where.word == "unknown" else text.partition(",")[0].partition(":")[0]
    return AnsweredQuestion("at target, inside the envelope?", f"{at} · envelope: {text}", state, f"{at} · {brief}")


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
    # A steady segment, and nothing that compiled within it; None without steps to tell it from.
    incidents = rules.about(Topic.INCIDENT)
    unsettled = any(
        item.code in incidents
        and item.question is Question.EFFECT
        and not item.unjudged
        and item.level is not Level.SHOWN
        for item in findings
    )
    steady = False if unsettled else True if launch.summary is not None else None
    tokens, chips = launch.tokens_per_step, launch.stated.get("hardware.chips")
    seconds = launch.stated.get("measurement.exposed_communication_seconds")
    step = launch.read(metrics.get("step_seconds")).value
    exposed = 0.0 if chips == 1 else seconds / step if seconds is not None and step else None
    tightest, wanted = launch.account.tightest, launch.lane.headroom
    left = tightest.left if tightest is not None else None
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
