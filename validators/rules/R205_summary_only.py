"""# R205 summary_only

*Why.* A mean over steps that nobody kept cannot be checked for a warm-up, a stall or a trend, and has no spread. Such a
receipt can be stored and shown, but no claim can rest on it.

*Rejected.* 112,152 tokens/s and 2,337 ms a step, and no list of steps. Nine means over intervals of ten steps. As W:
300 durations of a run of 900 steps; nobody says which 600 are missing.

*Accepted.* The same with every step's duration or tokens per second in order, or with ten and more means over intervals
of known length. A list from which the warm-up is missing, or what came before a resumed launch. A failed launch, which
carries no rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import EFFECT, MFU, RATE, Case, I, Offense, W, ended_well, rule
from receipts.receipt.measurement import MAX_STEPS
from receipts.stats.steady import MINIMUM_STEPS

LOST = 0.02  # of the steps, one at least: what ingest accepts of a log


@rule(
    "R205",
    "summary_only",
    I,
    question=EFFECT,
    taints=(RATE, MFU),
    applies=ended_well,
    amortized="only a summary of its steps was kept",
)
def summary_only(case: Case) -> Iterator[Offense]:
    """No durations, or too few interval means, on a launch that went well."""
    segment = case.launch.segment
    if segment is not None and segment.status == "too_few" and case.launch.interval_steps:
        yield Offense(
            at="measurement.step_durations_seconds",
            found=f"{segment.kept} interval means that count, without the times of their steps",
            expected=f"every step's duration in order, or at least {MINIMUM_STEPS} interval means",
            do="run longer, log more often, or record every step",
        )
    if case.launch.series:
        yield from _partial(case)
        return
    leaves = case.parsed.flat.leaves
    stated = [path for path in leaves if path.startswith("measurement.stated.") and not path.endswith("_stated")]
    yield Offense(
        at="measurement.step_durations_seconds",
        found="aggregates alone" if stated else "no step times",
        expected="every step's duration in order",
        do="record the steps; a log that prints each of them will do",
    )


def _partial(case: Case) -> Iterator[Offense]:
    """More or fewer steps than the durations that are listed, beyond a line that a log may lose."""
    ran, listed = case.get("measurement.steps"), sum(case.launch.interval_steps) or len(case.launch.series)
    resumed, warmup = case.get("run.start_step") or 0, case.get("measurement.window.warmup_steps") or 0
    before, lost = (0, resumed, warmup, resumed + warmup), max(1.0, LOST * listed)
    full = len(case.launch.series) >= MAX_STEPS  # a receipt holds no more
    if ran is None or full or any(abs(ran - earlier - listed) <= lost for earlier in before):
        return
    yield Offense(
        at="measurement.steps",
        found=f"{ran:,} steps, and the durations of {listed:,}",
        expected="every step's duration in order",
        do="list every step, or leave out measurement.steps if it counts something else",
        level=W,
    )
