"""Tokens of a step as a log's own rates count them, against what configuration and settings say of batch and chips."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median
from typing import Final

from receipts.ingest.config import stated
from receipts.ingest.draft import ReceiptDraft
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.series import StepSeries

SOURCE: Final = "steps"
TOKENS: Final = "measurement.tokens_per_step"
# Targets of a step without padding: no more than its tokens.
TARGETS: Final = "measurement.target_tokens_per_step"
_FEWEST: Final = 3
# Rates leave out what a loop's own timer leaves out; a wrong batch or count of chips is more than that.
_APART: Final = 0.1
_SAME: Final = 0.02


def check_rates(
    draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries, tokens: int | None
) -> int | None:
    """The tokens of a step: as stated, or as targets and rates count them alike where nothing states them.

    Where the log's rate over its own time is another number of tokens, both are reported and the rate is stated, so
    that the rules judge it.
    """
    chips, timed = draft.get("hardware.chips"), _timed(steps)
    each = median(rate * seconds for rate, seconds in timed) if len(timed) >= _FEWEST else None
    claim = stated(files, TARGETS)
    targets = int(claim.value) if claim is not None else None
    if tokens is None and targets and each and chips and abs(each * chips - targets) <= _SAME * targets:
        draft.put(TOKENS, targets, steps.where, SOURCE, "total_weights, and tokens/s over the time of a step")
        return targets
    if tokens and targets and targets > tokens and claim is not None:
        draft.contradict(TOKENS, f"{claim.where} counts {targets:,} targets a step", f"{tokens:,}, of batch and length")
    # Printed times may be off by their rounding: three decimals are little of a short step.
    seconds = [time for _, time in timed]
    apart = _APART + (min(map(steps.half, seconds)) / median(seconds) if seconds and median(seconds) > 0 else 0.0)
    if tokens and each and chips and abs(each - tokens / chips) > apart * each:
        what = f"{steps.where} prints {each:,.0f} tokens a step of one chip, by its tokens/s and its time"
        draft.contradict(TOKENS, what, f"{tokens:,} tokens over {chips:,} chips, {tokens / chips:,.0f} each")
        rate = float(f"{median(rate for rate, _ in timed):.6g}")
        draft.put("measurement.stated.tokens_per_second_per_chip", rate, steps.where, SOURCE)
        draft.put("measurement.stated.statistic", "median", steps.where, SOURCE)
    return tokens


def _timed(steps: StepSeries) -> list[tuple[float, float]]:
    """Rate and seconds of every ordinary step that has both."""
    rates, times = steps.column("tokens_per_second_per_chip"), steps.column("step_seconds")
    return [
        (rate, seconds)
        for number, rate, seconds in zip(steps.numbers, rates, times, strict=True)
        if rate and seconds and isfinite(rate) and isfinite(seconds) and number not in steps.not_steady
    ]
