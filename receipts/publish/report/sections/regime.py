"""How much work each chip had, and the regime that a launch ran in: from what the receipt says, by fixed limits.

A launch is *unstable* where no steady segment was found, or where it compiled after warm-up. It is
*communication-heavy* where what nothing hides takes a fifth of a step, and *memory-limited* where its tightest chip
keeps less than the lane wants kept. It has *enough work* where all three are known and none of them holds. Several may
hold at once; where none was found and a fact is missing, the regime is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from receipts import metrics
from receipts.judging.topic import Topic
from receipts.judging.verdict import Level, Question
from receipts.publish.report.reader import Item
from receipts.publish.text import number

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


def work(item: Item) -> StepWork:
    """The work and the regime of one launch."""
    steady, exposed, left = _steady(item), _exposed(item), _left(item)
    wanted = item.lane.headroom
    tokens = _tokens(item)
    parts = []
    if steady is False:
        parts.append("unstable")
    if exposed is not None and exposed >= HEAVY:
        parts.append("communication-heavy")
    if left is not None and left < wanted:
        parts.append("memory-limited")
    facts = {
        "tokens a chip": tokens,
        "steadiness": steady,
        "exposed communication": exposed,
        "memory by chip with its limit": left,
    }
    missing = tuple(name for name, value in facts.items() if value is None)
    if not parts and not missing:
        parts.append("enough work")
    return StepWork(tokens, exposed, left, wanted, steady, tuple(parts), missing)


def _steady(item: Item) -> bool | None:
    """Whether its steps have a steady segment and nothing compiled within; None without steps to tell it from."""
    incidents = item.reader.rulebook.rules.about(Topic.INCIDENT)
    for finding in item.verdict.findings:
        unsettled = finding.code in incidents and finding.question is Question.EFFECT
        if unsettled and not finding.unjudged and finding.level is not Level.SHOWN:
            return False
    return True if item.launch.summary is not None else None


def _exposed(item: Item) -> float | None:
    if item.entry.chips == 1:
        return 0.0
    seconds = item.parsed.stated.get("measurement.exposed_communication_seconds")
    step = item.launch.read(metrics.get("step_seconds")).value
    return seconds / step if seconds is not None and step else None


def _left(item: Item) -> float | None:
    tightest = item.launch.account.tightest
    return tightest.left if tightest is not None else None


def _tokens(item: Item) -> float | None:
    stated = item.parsed.stated
    tokens, chips = stated.get("measurement.tokens_per_step"), item.entry.chips
    if tokens is None:
        batch, length = stated.get("batch.global_batch"), stated.get("batch.sequence_length")
        tokens = batch * length if batch is not None and length is not None else None
    return tokens / chips if tokens is not None and chips else None


def tokens(work_done: StepWork) -> str:
    """Tokens a step a chip."""
    return number(work_done.tokens_per_chip)
