"""What a log prints of its speed: tokens/s, TFLOP/s and MFU, each stated as exactly as it is printed.

A printed MFU counts where its formula and its peak are known. The tokens of a step, as a log's own rates count them,
are checked against what configuration and settings say of batch and chips.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isfinite
from statistics import fmean, median
from typing import Final

from receipts.ingest import vocabulary
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.resolve import stated
from receipts.ingest.series import StepSeries, paced
from receipts.receipt.accelerators import ACCELERATORS, find_accelerator
from receipts.stats.rounding import half_of

SOURCE: Final = "steps"
STATED: Final = "measurement.stated"
_SAME_PEAK: Final = 0.005  # sources round a peak to three or four digits
_BASIS: Final = ("formula", "peak_flops_per_second", "peak_dtype")
_OUTRUN: Final = 4.0  # times the clock's: more than a few bursts of buffered lines make
_SLOWER: Final = 1.5  # times the printed step: more than pauses between two lines add to most of them
# Digits beyond these are those of a division: a share of the number.
_EXACT: Final = 5e-6
TOKENS: Final = "measurement.tokens_per_step"
# Targets of a step without padding: no more than its tokens.
TARGETS: Final = "measurement.target_tokens_per_step"
_MIN_TIMED: Final = 3
# Rates leave out what a loop's own timer leaves out; a wrong batch or count of chips is more than that.
_MAX_APART: Final = 0.1
_SAME_TOKENS: Final = 0.02


def check_rates(
    draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries, tokens: int | None
) -> int | None:
    """The tokens of a step: as stated, or as targets and rates count them alike where nothing states them.

    Where the log's rate over its own time is another number of tokens, both are reported and the rate is stated, so
    that the rules judge it.
    """
    # Rate and seconds of every ordinary step that has both.
    rates, times = steps.column("tokens_per_second_per_chip"), steps.column("step_seconds")
    timed = [
        (rate, seconds)
        for number, rate, seconds in zip(steps.numbers, rates, times, strict=True)
        if rate and seconds and isfinite(rate) and isfinite(seconds) and number not in steps.not_steady
    ]
    chips = draft.get("hardware.chips")
    each = median(rate * seconds for rate, seconds in timed) if len(timed) >= _MIN_TIMED else None
    claim = stated(files, TARGETS)
    targets = int(claim.value) if claim is not None else None
    if tokens is None and targets and each and chips and abs(each * chips - targets) <= _SAME_TOKENS * targets:
        draft.put(TOKENS, targets, steps.where, SOURCE, "total_weights, and tokens/s over the time of a step")
        return targets
    if tokens and targets and targets > tokens and claim is not None:
        draft.contradict(TOKENS, f"{claim.where} counts {targets:,} targets a step", f"{tokens:,}, of batch and length")
    # Printed times may be off by their rounding: three decimals are little of a short step.
    seconds = [time for _, time in timed]
    apart = _MAX_APART + (min(map(steps.half, seconds)) / median(seconds) if seconds and median(seconds) > 0 else 0.0)
    if tokens and each and chips and abs(each - tokens / chips) > apart * each:
        what = f"{steps.where} prints {each:,.0f} tokens a step of one chip, by its tokens/s and its time"
        draft.contradict(TOKENS, what, f"{tokens:,} tokens over {chips:,} chips, {tokens / chips:,.0f} each")
        rate = float(f"{median(rate for rate, _ in timed):.6g}")
        draft.put("measurement.stated.tokens_per_second_per_chip", rate, steps.where, SOURCE)
        draft.put("measurement.stated.statistic", "median", steps.where, SOURCE)
    return tokens


def check_pace(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int]) -> None:
    """Averages against the clock of their lines."""
    printed = draft.get(f"{STATED}.step_seconds")
    tokens, rate = draft.get(TOKENS), draft.get(f"{STATED}.tokens_per_second")
    chips, each = draft.get("hardware.chips"), draft.get(f"{STATED}.tokens_per_second_per_chip")
    if printed is None and tokens and (rate := rate or (chips and each and chips * each)):
        printed = tokens / rate
    pace = paced(steps, rows) if printed else None
    if pace and pace[0] > _SLOWER * printed:
        what = f"by the clock of its lines {steps.where} took {pace[0]:.4g} s a step"
        draft.contradict(f"{STATED}.step_seconds", what, f"{printed:.4g} s, as it prints,")


def outruns_its_lines(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int], printed: float) -> bool:
    """Whether a log prints longer steps than fit between its lines: rates of fairseq on TPUs count one step in many."""
    pace = paced(steps, rows) if printed > 0 else None
    if pace is None or printed <= _OUTRUN * pace[1]:
        return False
    what = f"{steps.where} prints {printed:.4g} s a step, and by the clock of its lines a step took {pace[1]:.4g} s"
    draft.contradict(f"{STATED}.step_seconds", what, "none of its times and rates")
    return True


def put_rates(
    draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int], names: Sequence[str], statistic: str
) -> None:
    """State printed rates of the steps at ``rows``: of the mean or the median time."""
    for name in names:
        values = steps.known(name, rows)
        if not values or any(not math.isfinite(value) or value <= 0 for value in values):
            continue
        if name == "mfu" and not _named(draft, steps, rows):
            continue
        # The rate of the median or mean time: the median of an even number of rates is that of no median time.
        spent = [1 / item for item in values]
        value = 1 / (median(spent) if statistic == "median" else fmean(spent))
        state_printed(draft, steps, name, value, values, statistic)


def _named(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int]) -> bool:
    """Whether a printed MFU names its formula and denominator; one that does not is no figure of this receipt.

    The peak that somebody divided by follows from the TFLOP/s that are printed beside the MFU.
    """
    source = steps.track.reading.source
    if formula := vocabulary.source(source).formula:
        draft.fill(f"{STATED}.formula", formula, steps.where, SOURCE)
    if all(draft.get(f"{STATED}.{leaf}") is not None for leaf in _BASIS):
        return True
    shown = f"the printed MFU, {median(steps.known('mfu', rows)):.2%},"
    implied = _implied_peaks(steps, rows)
    worst = max(steps.known("mfu", rows))
    if worst > 1:
        draft.tell("note", f"an MFU of {worst:.2%} is printed: no chip does more than its peak", steps.where)
    if implied is None and median(steps.known("mfu", rows)) > 1:
        return True  # by whatever formula and peak
    if implied is None:
        draft.tell("note", f"{shown} names no formula or no peak of this chip: left out", steps.where)
        return False
    low, high = implied
    peak = (low + high) / 2
    chip = find_accelerator(str(draft.get("hardware.accelerator") or ""))
    peaks = [
        (figure, dtype)
        for machine in ([chip] if chip is not None else ACCELERATORS)
        for dtype, figure in machine.dense_peak_flops_per_second.items()
        if low * (1 - _SAME_PEAK) <= figure <= high * (1 + _SAME_PEAK)
    ]
    what = f"{shown} and the TFLOP/s beside it divide by {peak / 1e12:.4g} TFLOP/s"
    if not peaks:
        draft.tell(
            "note", f"{what}, which is no peak of {chip.key if chip is not None else 'a known chip'}", steps.where
        )
        if chip is None:
            return False
    wanted = draft.get("numerics.compute_dtype")
    peak, dtype = min(peaks, key=lambda item: (item[1] != wanted, item[1] != "bf16"), default=(peak, wanted))
    draft.fill(f"{STATED}.formula", source, steps.where, SOURCE)
    draft.fill(f"{STATED}.peak_flops_per_second", float(f"{peak:.4g}"), steps.where, SOURCE, what)
    if dtype is not None:
        draft.fill(f"{STATED}.peak_dtype", dtype, steps.where, SOURCE)
    return True


def _implied_peaks(steps: StepSeries, rows: Sequence[int]) -> tuple[float, float] | None:
    """Between which FLOP/s the peak lies that printed TFLOP/s and MFU imply, by their rounding; None without both."""
    bands = []
    for row in rows:
        tera, share = steps.at("tflops_per_second_per_chip", row), steps.at("mfu", row)
        if tera and share and 0 < tera < math.inf and 0 < share < math.inf:
            share = float(f"{share:.9g}")
            below, above = (steps.half(value) for value in (tera, share))
            if above < share:
                bands.append(((tera - below) / (share + above) * 1e12, (tera + below) / (share - above) * 1e12))
    if not bands:
        return None
    low, high = max(low for low, _ in bands), min(high for _, high in bands)
    return (low, high) if low <= high else (median(low for low, _ in bands), median(high for _, high in bands))


def state_printed(
    draft: ReceiptDraft, steps: StepSeries, name: str, value: float, values: Sequence[float], statistic: str
) -> None:
    """State one printed figure, unless it is stated."""
    path = f"{STATED}.{name}"
    if draft.get(path) is None:
        text = f"{statistic} of {len(values):,} printed"
        put_printed(draft, path, value, min(map(steps.half, values)), steps.where, text)
        draft.fill(f"{STATED}.statistic", statistic, steps.where, SOURCE)


def put_printed(draft: ReceiptDraft, path: str, value: float, half: float, where: Where, text: str) -> None:
    """State a number that follows from printed ones, and how exact they are: ± ``half``, as its source text."""
    # As many digits as a log prints, not those of a division.
    draft.put(path, float(f"{value:.6g}"), where, SOURCE, text)
    place = math.ceil(math.log10(2 * half))
    if half > _EXACT * value and (digits := round(value / 10.0**place)):
        draft.put(f"{path}_stated", f"{digits}e{place}", where, SOURCE)


def state_flops(draft: ReceiptDraft, files: Sequence[FileEvidence], tokens: int | None) -> None:
    """FLOPs a token out of the FLOPs that a framework states for a step of one chip."""
    claim = stated(files, "measurement.flops_per_step_per_chip")
    chips = draft.get("hardware.chips")
    path = "measurement.stated.flops_per_token"
    if claim is None or not tokens or not chips or draft.get(path) is not None:
        return
    try:
        value = float(claim.value) * chips / tokens
        # Printed in TFLOP, of which two decimals are little of a small model's work.
        half = half_of(float(claim.value) / 1e12) * 1e12 * chips / tokens
    except (TypeError, ValueError, OverflowError):
        return
    put_printed(draft, path, value, half, claim.where, claim.text)
