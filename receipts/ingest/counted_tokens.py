"""Tokens of a step as a log's own rates count them, against what configuration and settings say of batch and chips."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median
from typing import Final

from receipts.ingest.config import stated
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
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
    each, chips = _of_a_chip(steps), draft.get("hardware.chips")
    apart = _APART + _rounding(steps)
    claim = stated(files, TARGETS)
    targets = int(claim.value) if claim is not None else None
    where = Where(steps.track.file.name)
    if tokens is None and targets and each and chips and abs(each * chips - targets) <= _SAME * targets:
        draft.put(TOKENS, targets, where, SOURCE, "total_weights, and tokens/s over the time of a step")
        return targets
    if tokens and targets and targets > tokens and claim is not None:
        draft.contradict(TOKENS, f"{claim.where} counts {targets:,} targets a step", f"{tokens:,}, of batch and length")
    if tokens and each and chips and abs(each - tokens / chips) > apart * each:
        what = f"{where} prints {each:,.0f} tokens a step of one chip, by its tokens/s and its time"
        draft.contradict(TOKENS, what, f"{tokens:,} tokens over {chips:,} chips, {tokens / chips:,.0f} each")
        rates = [rate for rate, _ in _timed(steps)]
        draft.put("measurement.stated.tokens_per_second_per_chip", float(f"{median(rates):.6g}"), where, SOURCE)
        draft.put("measurement.stated.statistic", "median", where, SOURCE)
    return tokens


def _of_a_chip(steps: StepSeries) -> float | None:
    """Tokens of one chip in a step, by rate and time of the ordinary steps; None where the log has not both."""
    products = [rate * seconds for rate, seconds in _timed(steps)]
    return median(products) if len(products) >= _FEWEST else None


def _rounding(steps: StepSeries) -> float:
    """How far printed times may be from the true ones, as a share: three decimals are little of a short step."""
    seconds = [time for _, time in _timed(steps)]
    return min(map(steps.half, seconds)) / median(seconds) if seconds and median(seconds) > 0 else 0.0


def _timed(steps: StepSeries) -> list[tuple[float, float]]:
    """Rate and seconds of every ordinary step that has both."""
    rates, times = steps.column("tokens_per_second_per_chip"), steps.column("step_seconds")
    return [
        (rate, seconds)
        for number, rate, seconds in zip(steps.numbers, rates, times, strict=True)
        if rate and seconds and isfinite(rate) and isfinite(seconds) and number not in steps.not_steady
    ]
