"""Whether a launch is a sample of a metric: what rules found of it, and whether it gives the metric a steady value."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from receipts.metrics.launch import Launch
from receipts.metrics.registry import Metric
from receipts.verdict import Finding, Level, Question, Taint

_FROM_STEPS: Final = (Taint.RATE, Taint.MFU)
_MEASURED: Final = ("step", "rate", "memory")


class Rank(IntEnum):
    """How well a launch stands for its configuration, the best first. From `UNSTEADY` on it is no sample."""

    CLEAN = 0
    OPEN = 1  # a question about it is open: its path is not witnessed, a fact is not stated
    UNSTEADY = 2  # no steady value of the metric, or one that was not measured
    INVALID = 3  # an offence spoils the metric, or it left its path
    FAILED = 4  # it did not end well


class Grade(NamedTuple):
    """The rank of a launch, and why: codes of rules, or how it ended."""

    rank: Rank
    why: tuple[str, ...] = ()

    @property
    def is_sample(self) -> bool:
        """Whether the launch counts as a sample of the metric."""
        return self.rank < Rank.UNSTEADY


def grade(launch: Launch, findings: Iterable[Finding], metric: Metric | None = None) -> Grade:
    """Whether a launch is a sample of a metric, by what rules found of it; without a metric, whether of its shape."""
    every, outcome = tuple(findings), launch.parsed.receipt.run.outcome
    errors = [item for item in every if item.level is Level.ERROR]
    ended = [outcome] if outcome != "ok" and (metric is None or metric.taint in _FROM_STEPS) else []
    spoilt = [item.code for item in errors if item.question is Question.PATH or _spoils(item, metric)]
    if ended:
        return _grade(Rank.FAILED, [*spoilt, *ended])
    if spoilt:
        return _grade(Rank.INVALID, spoilt)
    weak = [item for item in every if item.level is Level.OPEN and _asks(item, metric)]
    unmeasured = [item.code for item in errors if item.question is Question.EFFECT and not item.taints]
    if metric is not None and metric.summary in _MEASURED and launch.read(metric).source not in ("steps", "memory"):
        codes = [item.code for item in weak if item.question is Question.EFFECT]
        unmeasured += codes or [f"no {metric.title} from {'memory rows' if metric.summary == 'memory' else 'steps'}"]
    if unmeasured:
        return _grade(Rank.UNSTEADY, unmeasured)
    return _grade(Rank.OPEN, [item.code for item in weak]) if weak else Grade(Rank.CLEAN)


def _grade(rank: Rank, why: list[str]) -> Grade:
    return Grade(rank, tuple(dict.fromkeys(why)))


def _spoils(item: Finding, metric: Metric | None) -> bool:
    if metric is None:
        return any(taint is not Taint.NONE for taint in item.taints)
    return item.spoils(metric.taint) and item.code not in dict(metric.unmoved_by)


def _asks(item: Finding, metric: Metric | None) -> bool:
    """Whether an open question speaks of the metric."""
    if item.question is Question.NONE:
        return False
    return item.question is Question.PATH or metric is None or not item.taints or item.spoils(metric.taint)
