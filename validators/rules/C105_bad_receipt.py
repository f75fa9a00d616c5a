"""# C105 bad_receipt

*Why.* A comparison is as good as its worse side. A throughput record was compared for weeks whose loss had been NaN
since the first iteration.

*Rejected.* Tokens per second against a side whose stated rate follows from none of its own numbers (R101). Against a
launch that ended in nan, crashed, hung or ran out of memory: of such a launch no rule has checked whether its steps
trained or were steady. Peak memory against a launch that ran out of it: it needed more than its peak shows. A launch
that was preempted, or whose end nothing shows, leaves the comparison open, and so does a side on which some rule lacks
a fact, also where nobody can show it (no source of its lane prints it): the effect is said, and not attributed.

*Accepted.* A side with an offense that does not spoil this metric: one memory figure for eight chips does not spoil
tokens per second. A setting that neither side states, where both name the same context: it is held equal, even if a
rule asks for it on one side only (the side with experts to distribute). A loss, an exit code or a time of ending is
not a setting, and no context holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from receipts.judging.grade import takes_away
from receipts.judging.rule import COMPARABLE, PATH, E, I, Offense, PairCase, Topic, rule
from receipts.judging.verdict import Finding, Level, Question
from receipts.metrics import Launch
from receipts.metrics.registry import Taint


@rule("C105", "bad_receipt", E, on="pair", question=COMPARABLE, about=Topic.SIDES)
def bad_receipt(pair: PairCase) -> Iterator[Offense]:
    """Errors of either side that taint the metric, and questions of comparability that could not be judged."""
    both: tuple[tuple[Literal["a", "b"], tuple[Finding, ...]], ...] = (("a", pair.findings_a), ("b", pair.findings_b))
    yield from _failed("a", pair.group_a, pair.metric.taint)
    yield from _failed("b", pair.group_b, pair.metric.taint)
    for side, mine in both:
        yield from _excused(side, mine, pair)
        for item in mine:
            if item.question is PATH or item.code in pair.sparing or not item.spoils(pair.metric.taint):
                continue
            if item.level is Level.ERROR:
                yield _offense(item, side, E)
            elif item.level is Level.OPEN and item.question is Question.COMPARABLE and not _held(item, pair):
                yield _offense(item, side, I)


def _excused(side: Literal["a", "b"], mine: tuple[Finding, ...], pair: PairCase) -> Iterator[Offense]:
    """What nobody can show is asked of nobody, and nothing that rests on it is attributed."""
    leaves = dict.fromkeys(
        item.at for item in mine if item.excused and item.question is not PATH and item.spoils(pair.metric.taint)
    )
    if gone := [path for path in leaves if not pair.holds(path)]:
        yield Offense(
            at=gone[0],
            found=f"not stated, as nobody can show it: {', '.join(gone)}",
            expected="facts that rules need",
            do="read the effect as what happened: why is not shown",
            level=I,
            side=side,
        )


def _failed(side: Literal["a", "b"], group: tuple[Launch, ...], kind: Taint) -> Iterator[Offense]:
    """The launch of a side that did not end well: what R111, R201 and R202 ask of a rate was never asked of it."""
    wanted = "peak is what it needed" if kind is Taint.MEMORY else "rate was judged"
    for launch in group:
        outcome = launch.parsed.receipt.run.outcome
        if outcome == "unknown" and kind is not Taint.NONE:
            yield Offense(
                at="run.outcome",
                found=f"nothing shows how {launch.parsed.name} ended",
                expected="a launch that ended well",
                do="give the end of its log; or state it, if you saw it end",
                level=I,
                side=side,
            )
            return
        if takes_away(outcome, kind):
            yield Offense(
                at="run.outcome",
                found=f"{launch.parsed.name} ended in {outcome}",
                expected=f"a launch that ended well, whose {wanted}",
                do="find out why it ended so, and compare a launch that ended well",
                level=I if outcome == "preempted" else E,
                side=side,
            )
            return


def _held(item: Finding, pair: PairCase) -> bool:
    """Whether one context holds on both sides the setting that is missing here, or nothing hangs on what is missing."""
    paths = item.lacks or (item.at,)
    return item.unjudged and (any(map(pair.holds, paths)) or (pair.nameless and pair.silent(*paths)))


def _offense(item: Finding, side: Literal["a", "b"], level: Level) -> Offense:
    return Offense(
        at=item.at,
        found=f"{item.code} {item.name}: {item.found}",
        expected=item.expected,
        do=item.do,
        level=level,
        side=side,
    )
