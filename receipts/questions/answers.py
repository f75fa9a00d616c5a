"""The five answers that head every receipt: topology, amortization, sequence and family, path, target and envelope."""

from __future__ import annotations

from typing import Literal, NamedTuple

from receipts.axes.lane import Lane
from receipts.axes.shape import described, target_of
from receipts.judging.facts import Facts, shape_standing
from receipts.judging.rule import Case
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.metrics import Launch
from receipts.metrics.readings import SHARE, amortization, goodput_shown
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import UNFAILED

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
    machine, workload = topology(parsed), _workload(parsed)
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


def _workload(parsed: Parsed) -> str:
    stated = parsed.stated
    length = stated.get("batch.sequence_length")
    known = described(stated)
    parts = (known.family or "family not stated", known.model, known.name)
    return " · ".join(
        [f"{length:,} tokens" if length else f"sequence {NOT_STATED}", *dict.fromkeys(filter(None, parts))]
    )


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
