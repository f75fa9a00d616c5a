"""Whether a launch is a sample of a metric: what rules found of it, and whether it gives the metric a steady value."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from receipts.judging.verdict import Finding, Level, Question, Status, path_answer, undecided
from receipts.metrics.launch import Launch
from receipts.metrics.registry import Metric, Taint

_FROM_STEPS: Final = (Taint.RATE, Taint.MFU)
_MEASURED: Final = ("step", "rate", "memory")


class Rank(IntEnum):
    """How well a launch represents its configuration, the best first. From `UNSTEADY` on it is no sample."""

    CLEAN = 0
    OPEN = 1  # a question about it is open: its path is not witnessed, a fact is not stated
    UNSTEADY = 2  # no steady value of the metric, or one that was not measured
    INVALID = 3  # an offense spoils the metric, or it left its path
    FAILED = 4  # it did not end well


class Grade(NamedTuple):
    """The rank of a launch, and why: codes of rules, or how it ended."""

    rank: Rank
    why: tuple[str, ...] = ()


def unspoilt(path: str, tainted: Collection[str], kind: Taint) -> bool:
    """Whether the offenses of a launch leave a kind of metric alone: it is on its path, and neither `all` nor that kind
    is tainted.

    What is spoilt is invalid for that metric wherever it is looked at. In SQL: `receipts.store.entries`.
    """
    return path != "left" and not concerns(tainted, kind)


def concerns(kinds: Collection[str], kind: Taint) -> bool:
    """Whether that kind of metric is among these, or all are."""
    return Taint.ALL in kinds or kind in kinds


def status_for(kind: Taint, path: str, tainted: Collection[str], undecided: Collection[str]) -> Status:
    """The status of a launch as far as one kind of metric goes: what concerns others alone makes no difference."""
    if not unspoilt(path, tainted, kind):
        return "invalid"
    return "open" if concerns(undecided, kind) else "valid"


def takes_away(outcome: str, kind: Taint) -> bool:
    """Whether a launch that ended so has no number of a kind: no rate if it failed, no peak if memory ran out.

    The peak of a launch that asked for more than there was is what it had, and not what it needed.
    """
    return outcome != "ok" if kind in _FROM_STEPS else kind is Taint.MEMORY and outcome == "oom"


def grade(
    launch: Launch, findings: Iterable[Finding], metric: Metric | None = None, sparing: Collection[str] = ()
) -> Grade:
    """Whether a launch is a sample of a metric, by what rules found of it; without a metric, of its rate.

    ``sparing`` are the codes of rules whose offense does not spoil the metric.
    """
    every, outcome = tuple(findings), launch.parsed.receipt.run.outcome
    errors = [item for item in every if item.level is Level.ERROR]
    ended = [outcome] if takes_away(outcome, _kind(metric)) else []
    spoilt = [item.code for item in errors if _spoils(item, metric, sparing)]
    if ended:
        return _grade(Rank.FAILED, [*spoilt, *ended])
    if spoilt:
        return _grade(Rank.INVALID, spoilt)
    weak = [item for item in every if item.level is Level.OPEN and concerns(undecided([item]), _kind(metric))]
    unmeasured = [item.code for item in errors if item.question is Question.EFFECT and not item.taints]
    if metric is not None and metric.summary in _MEASURED and launch.read(metric).source not in ("steps", "memory"):
        codes = [item.code for item in weak if item.question is Question.EFFECT]
        unmeasured += codes or [f"no {metric.title} from {'memory rows' if metric.summary == 'memory' else 'steps'}"]
    if unmeasured:
        return _grade(Rank.UNSTEADY, unmeasured)
    return _grade(Rank.OPEN, [item.code for item in weak]) if weak else Grade(Rank.CLEAN)


def _grade(rank: Rank, why: list[str]) -> Grade:
    return Grade(rank, tuple(dict.fromkeys(why)))


def _spoils(item: Finding, metric: Metric | None, sparing: Collection[str]) -> bool:
    spared = item.question is not Question.PATH and item.code in sparing
    return not spared and not unspoilt(path_answer([item]), item.taints, _kind(metric))


def _kind(metric: Metric | None) -> Taint:
    return Taint.RATE if metric is None else metric.taint
