"""The five answers that head every receipt: topology, amortization, sequence and family, path, target and envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from receipts.axes.lane import Lane
from receipts.axes.shape import described, target_of
from receipts.judging.envelope import standing
from receipts.judging.facts import Facts
from receipts.judging.rule import Case
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.metrics import Launch
from receipts.metrics.amortization import SHARE, amortization, goodput_shown
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find as find_accelerator

State = Literal["yes", "no", "open"]


class AnsweredQuestion(NamedTuple):
    """A question, its answer in words, whether that is a yes, a no, or open, and the answer as a table has it."""

    question: str
    answer: str
    state: State
    brief: str


NOT_STATED = "not stated"
_SEEN = ("path.witnessed.attention", "path.witnessed.framework")


@dataclass(frozen=True, slots=True)
class Answers:
    """One sentence a question, each `not stated` where the receipt does not carry it."""

    topology: str
    amortized: str
    workload: str
    path: str
    target: str

    def states(self) -> tuple[AnsweredQuestion, ...]:
        """The answers with their states: open where a part of the answer is not stated or not shown."""
        states: tuple[State, ...] = (
            "open" if NOT_STATED in self.topology or self.topology.startswith("?") else "yes",
            "yes" if self.amortized.startswith("yes") else "no" if self.amortized.startswith("no:") else "open",
            "open" if NOT_STATED in self.workload else "yes",
            "yes" if self.path.startswith("witnessed") else "no" if self.path.startswith("left") else "open",
            _at_target(self.target),
        )
        amortized = self.amortized.partition(":")[0] if self.amortized.startswith("yes") else self.amortized
        briefs = (self.topology, amortized, self.workload, self.path, _brief_target(self.target))
        rows = zip(self.rows(), states, briefs, strict=True)
        return tuple(AnsweredQuestion(*row, state, brief) for row, state, brief in rows)

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Question and answer, in the order that they are asked."""
        return (
            ("topology", self.topology),
            ("compile amortized?", self.amortized),
            ("sequence and family", self.workload),
            ("on its path?", self.path),
            ("at target, inside the envelope?", self.target),
        )


def answers(parsed: Parsed, lane: Lane, verdict: ReceiptVerdict, facts: Facts | None, rules: RuleSet) -> Answers:
    """The five answers of one receipt under its lane and the rules that it was judged by."""
    return Answers(
        topology=topology(parsed),
        amortized=_amortized(Launch(parsed, lane), verdict, rules),
        workload=_workload(parsed),
        path=_path(Case(Launch(parsed, lane), lane, facts), verdict),
        target=_target(parsed, lane, facts),
    )


def _at_target(answer: str) -> State:
    """Whether a shape is a target of its lane and the lane sustained it; no where either is known not to be."""
    target, _, envelope = answer.partition(" · envelope: ")
    where = envelope.partition(" ")[0].rstrip(":,")
    if target.startswith("away") or where == "beyond":
        return "no"
    return "yes" if target.startswith("at target") and where in ("at", "inside") else "open"


def _brief_target(answer: str) -> str:
    """The target, and where the shape lies, without the ceiling that says so."""
    target, _, envelope = answer.partition(" · envelope: ")
    where = envelope.partition(",")[0].partition(":")[0]
    return f"{target} · {'envelope unknown' if where == 'unknown' else where}"


def topology(parsed: Parsed) -> str:
    """Chips, accelerator and the degrees that are stated."""
    stated = parsed.stated
    machine, chips = stated.get("hardware.accelerator"), stated.get("hardware.chips")
    known = find_accelerator(machine) if machine else None
    name = known.key if known else machine or "accelerator not stated"
    shape = f" {stated['hardware.physical']}" if "hardware.physical" in stated else ""
    degrees = described(stated).layout
    return f"{chips if chips is not None else '?'} × {name}{shape}" + (f" · {degrees}" if degrees else "")


def _amortized(launch: Launch, verdict: ReceiptVerdict, rules: RuleSet) -> str:
    """Yes, no or not shown, with what compiling cost and where the wall time went, as far as they are stated.

    Where compiling took more than `SHARE` of the wall time, the rate is free of it and the launch has not paid for it.
    """
    judged = _amortized_by_rules(launch.parsed, verdict, rules)
    if launch.parsed.receipt.run.outcome != "ok":
        return judged
    cost = amortization(launch)
    if judged == "yes" and cost is not None and (cost.share or 0.0) > SHARE:
        judged = "yes in the rate, not in the launch"
    figures = [str(cost) if cost is not None else None, goodput_shown(launch)]
    shown = "; ".join(text for text in figures if text is not None)
    return f"{judged}{'; ' if ':' in judged else ': '}{shown}" if shown else judged


def _amortized_by_rules(parsed: Parsed, verdict: ReceiptVerdict, rules: RuleSet) -> str:
    if not any(path.startswith(("measurement.stated.", "measurement.step_durations")) for path in parsed.stated):
        return "nothing was measured"
    outcome = parsed.receipt.run.outcome
    if outcome != "ok":  # the rules on it ask nothing of a launch that failed
        return f"not judged: the launch ended in {outcome}"
    asked = [(item, why) for item in verdict.findings if (why := rules.get(item.code).amortized)]
    for item, why in asked:
        if item.level is Level.ERROR:
            return f"no: {why}"
    waiting = {item.code for item, _ in asked if item.level is Level.OPEN}
    return f"not shown ({', '.join(sorted(waiting))})" if waiting else "yes"


def _workload(parsed: Parsed) -> str:
    stated = parsed.stated
    length = stated.get("batch.sequence_length")
    known = described(stated)
    parts = (known.family or "family not stated", known.model, known.name)
    return " · ".join([f"{length:,} tokens" if length else f"sequence {NOT_STATED}", *filter(None, parts)])


def _path(case: Case, verdict: ReceiptVerdict) -> str:
    if verdict.path == "witnessed":
        leaf = next((name for name in _SEEN if case.get(name)), None)
        by = case.borrowed.witness_of(leaf) if leaf is not None else None
        return "witnessed" + (f": {case.get(leaf)}" if leaf else "") + (f", by {by[:12]}" if by else "")
    if verdict.path == "left":
        first = next(item for item in verdict.findings if item.question == "path" and item.level is Level.ERROR)
        return f"left: {first.code} {first.found}"
    return "unwitnessed"


def _target(parsed: Parsed, lane: Lane, facts: Facts | None) -> str:
    at = "the lane names no target"
    if lane.targets:
        met = target_of(parsed, lane)
        at = f"at target {met.name}" if met else "away from the lane's targets"
    return f"{at} · envelope: {standing(facts, parsed)}"
