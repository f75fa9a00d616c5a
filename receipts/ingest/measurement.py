"""The section ``measurement`` out of a series of steps: durations where every step has one, else averages as such.

Losses and gradient norms come from the same steps; rates that a log prints: `printed`.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import mul
from statistics import fmean, median
from typing import Final

from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.printed import (
    SOURCE,
    STATED,
    TOKENS,
    check_pace,
    check_rates,
    outruns_its_lines,
    put_printed,
    put_rates,
    state_flops,
    state_printed,
)
from receipts.ingest.reading import BAR, IntervalMeans, Reason
from receipts.ingest.resolve import readings
from receipts.ingest.series import StepSeries, series, state_walls
from receipts.receipt.measurement import MAX_STEPS

_DURATIONS: Final = "measurement.step_durations_seconds"
_MEANS: Final = "measurement.interval_means_seconds"
_RATES_OF_STEPS: Final = "measurement.step_tokens_per_second"
_MEAN: Final = "kept as their mean, single steps are not in this log; log every step"
# A log may lose a line; where more are missing than that, what is left is not every step.
MAX_GAPS: Final = 0.02
_RATES: Final = ("tokens_per_second", "tokens_per_second_per_chip", "tflops_per_second_per_chip", "mfu")
# The receipt's flags by what readers say. A time that cannot be, and one in which nothing was updated, are no
# ordinary steps either, and the receipt has no word of their own for them.
FLAGS: Final[Mapping[Reason, str]] = {
    "compile": "compile",
    "warmup": "warmup",
    "profile": "profile",
    "impossible": "warmup",
    "stall": "data",
    "eval": "eval",
    "checkpoint": "checkpoint",
    "skipped": "warmup",
}
_RENAMED: Final = ("impossible", "stall", "skipped")
# What never follows from durations and tokens; with steps kept, rates that do follow would be stated twice.
_OWN_WORK: Final = ("tflops_per_second_per_chip", "mfu")
# A log's timer and a recorder's differ by what each of them leaves out of a step.
_SAME_STEPS: Final = 0.2
# Sources whose timers are of what they call, and of no whole step of a loop around them.
_TIMERS: Final = ("deepspeed",)


def state_steps(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> StepSeries | None:
    """State what the steps of the files show, and give them; beside a receipt's own steps, losses and norms alone."""
    own = draft.base and (draft.base.get(_DURATIONS) or draft.base.get("measurement.steps"))
    if not own:
        # A series of means as what it is; where each is of one step, they are the steps, digit for digit.
        for file, reading in readings(files):
            means, where = reading.means, Where(file.name)
            if means is None or reading.source == BAR or _timed(draft):
                continue
            seconds, counts = means.seconds[:MAX_STEPS], means.steps[:MAX_STEPS]
            if means.single:
                draft.put(_DURATIONS, seconds, where, reading.source, _summary(seconds))
            else:
                draft.put(_MEANS, seconds, where, reading.source, f"{len(counts):,} means over {sum(counts):,} steps")
                text = f"{min(counts)} to {max(counts)} steps"
                draft.put("measurement.interval_steps", counts, where, reading.source, text)
            for leaf in ("timer", "region"):
                if clock := getattr(means, leaf):
                    draft.fill(f"measurement.{leaf}", clock, where, SOURCE)
            _fill_tokens(draft, where)
        steps = series(draft, files)
        if steps is not None:
            state_measurement(draft, files, steps)
        _state_bar(draft, files)
        return steps
    steps = series(ReceiptDraft(), files)
    if steps is not None and draft.base is not None:
        count = f"{len(own) if isinstance(own, list) else own:,}"
        text = f"{steps.where} prints {len(steps.numbers):,} steps; the {count} of {draft.base.name} stand"
        draft.tell("note", text, steps.where)
        # Note where the steps of a file are not those of the receipt, by the median of their times.
        printed = [value for value in steps.known("step_seconds") if value > 0]
        if isinstance(own, list) and printed:
            theirs, ours = median(printed), median(own)
            if abs(theirs - ours) > _SAME_STEPS * max(theirs, ours):
                draft.contradict(_DURATIONS, f"{steps.where} has a median of {theirs:.4g} s", f"{ours:.4g} s stands")
        for leaf, state in (("loss", state_losses), ("gradient_norm", state_norms)):
            if draft.get(f"measurement.{leaf}") is None:
                state(draft, steps)
    return steps


def state_measurement(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries) -> None:
    """State what the steps show."""
    tokens = check_rates(draft, files, steps, _tokens_per_step(draft, steps))
    if not _timed(draft):
        durations = _durations(draft, steps, tokens)
        part = _is_part(draft, files, steps, durations)
        if durations is not None and not part:
            _keep(draft, steps, durations)
        elif not part:
            # The printed tokens a second of every step, where a log prints no more of it, and their flags by position.
            whole = steps.numbers[-1] - steps.numbers[0] + 1 == len(steps.numbers)
            moving = draft.get("batch.global_batch") and draft.get("batch.sequence_length")
            if whole and not (steps.known("step_seconds") or moving or steps.averaged or steps.stride > 1):
                every_row = array("L", range(min(len(steps.numbers), MAX_STEPS)))
                if _state_rates(draft, steps, every_row) and (flags := _flags(draft, steps, every_row)):
                    draft.put("measurement.step_flags", flags, steps.where, SOURCE)
            # Averages as averages: how many steps, their mean time, and rates whose mean is over time.
            every = max(steps.stride, steps.interval or 1)
            first, last = steps.numbers[0], steps.numbers[-1]
            # How many steps the first record represents: loops that print every tenth one may print the first, too.
            alone = len(steps.numbers) > 1 and steps.numbers[1] - first < every
            total = last - first + (1 if alone else every if first >= every - 1 else max(first, 1))
            if steps.interval != 0:
                draft.put("measurement.steps", total, steps.where, SOURCE)
            rows = [row for row, number in enumerate(steps.numbers) if number not in steps.not_steady]
            rows = rows or list(range(len(steps.numbers)))
            statistic = "mean" if steps.averaged or steps.stride == 1 else "median"
            seconds = [value for value in steps.known("step_seconds", rows) if value > 0]
            value = (fmean(seconds) if statistic == "mean" else median(seconds)) if seconds else 0.0
            if not outruns_its_lines(draft, steps, rows, value):
                if seconds:
                    state_printed(draft, steps, "step_seconds", value, seconds, statistic)
                put_rates(draft, steps, rows, _RATES, statistic)
                check_pace(draft, steps, rows)
    state_flops(draft, files, tokens)
    # Of lines that were printed twice, none is another rank's.
    if any(steps.skews):
        draft.put("measurement.health.rank_skew", round(median(steps.skews), 6), steps.where, SOURCE)
    state_losses(draft, steps)
    state_norms(draft, steps)


def _is_part(
    draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries, durations: Sequence[float | None] | None
) -> bool:
    """Whether timers time a part of a step: a progress bar beside them, which times the whole, says so."""
    bar = _bar(files)
    known = [value for value in durations or () if value is not None and math.isfinite(value)]
    if bar is None or not known or steps.track.reading.source not in _TIMERS:
        return False
    if bar[2] <= (1 + _SAME_STEPS) * median(known):
        return False
    text = f"its timers say {median(known):.4g} s a step, and the bar {bar[2]:.4g} s: they time a part of it"
    draft.tell("note", text, steps.where)
    draft.put("measurement.timer", bar[1].timer, Where(bar[0].name), BAR)
    return True


def _bar(files: Sequence[FileEvidence]) -> tuple[FileEvidence, IntervalMeans, float] | None:
    """The progress bar of the files that spent most time, with its mean time of a step."""
    bars = [(file, reading.means) for file, reading in readings(files) if reading.source == BAR and reading.means]
    spent = [(file, means, sum(map(mul, means.seconds, means.steps))) for file, means in bars]
    if not spent:
        return None
    file, means, seconds = max(spent, key=lambda item: item[2])
    return file, means, seconds / sum(means.steps)


def _state_bar(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State what a progress bar shows, where no line times a step; its clock counts whole seconds."""
    bar, path = _bar(files), f"{STATED}.step_seconds"
    stated_rates = any(draft.get(f"{STATED}.{name}") for name in ("tokens_per_second", "tokens_per_second_per_chip"))
    if bar is None or _timed(draft) or draft.get(path) is not None or stated_rates:
        return
    file, means, mean = bar
    where, steps = Where(file.name), sum(means.steps)
    if len(means.seconds) > 1:
        text = f"{len(means.steps):,} means over {steps:,} steps"
        draft.put(_MEANS, means.seconds[:MAX_STEPS], where, BAR, text)
        draft.put("measurement.interval_steps", means.steps[:MAX_STEPS], where, BAR, text)
    else:
        put_printed(draft, path, mean, 1.0 / steps, where, f"mean of {steps:,} steps by what a bar says has elapsed")
        draft.fill(f"{STATED}.statistic", "mean", where, BAR)
        draft.fill("measurement.steps", steps, where, BAR)
    draft.fill("measurement.timer", means.timer, where, BAR)
    _fill_tokens(draft, where)


def _fill_tokens(draft: ReceiptDraft, where: Where) -> int | None:
    """The tokens of a step, which are batch times length where nothing else states them."""
    batch, length = draft.get("batch.global_batch"), draft.get("batch.sequence_length")
    if batch and length:
        draft.fill(TOKENS, int(batch * length), where, f"{batch:,} × {length:,}")
    total: int | None = draft.get(TOKENS)
    return total


def _timed(draft: ReceiptDraft) -> bool:
    """Whether a series of times is stated already."""
    return draft.get(_DURATIONS) is not None or draft.get(_MEANS) is not None


def _tokens_per_step(draft: ReceiptDraft, steps: StepSeries) -> int | None:
    """Global batch times sequence length; a batch that the step lines alone print is stated with them."""
    printed = {int(value) for value in steps.known("global_batch") if 1 <= value < 2**62}
    batch = draft.get("batch.global_batch")
    if len(printed) > 1:
        few = ", ".join(f"{size:,}" for size in sorted(printed)[:4])
        text = f"the global batch moves over the steps ({few}): tokens a step are not one number"
        draft.tell("note", text, steps.where)
        return None
    if printed and batch is not None and batch not in printed:
        ran = next(iter(printed))
        what = f"{batch:,} is stated, and the step lines of {steps.where} print {ran:,}"
        draft.contradict("batch.global_batch", what, f"{batch if draft.holder('batch.global_batch') else ran:,}")
        if draft.holder("batch.global_batch"):
            return None
        draft.put("batch.global_batch", ran, steps.where, SOURCE, "of the step lines")
    for size in printed:
        draft.fill("batch.global_batch", size, steps.where, SOURCE)
    return _fill_tokens(draft, steps.where)


def _durations(draft: ReceiptDraft, steps: StepSeries, tokens: int | None) -> list[float | None] | None:
    """A duration for every step, or None where the log prints averages, samples, or too few of them."""
    printed = steps.column("step_seconds")
    if all(value is None for value in printed):
        # Where the log prints tokens a second alone, times follow from them.
        for name, over in (("tokens_per_second", 1), ("tokens_per_second_per_chip", draft.get("hardware.chips"))):
            rates = steps.column(name)
            if tokens and over and any(rates):
                text = f"step times follow from {tokens:,} tokens a step and the printed tokens/s"
                draft.tell("note", text, steps.where)
                printed = [tokens / (rate * over) if rate and math.isfinite(rate) else None for rate in rates]
                break
    known = sum(value is not None and math.isfinite(value) for value in printed)
    span = steps.numbers[-1] - steps.numbers[0] + 1
    if not known:
        return None
    if steps.averaged:
        text = f"each record is an average over {steps.interval or 'several'} steps: {_MEAN}"
    elif steps.stride > 1:
        text = f"one step in {steps.stride} is printed: {_MEAN}"
    elif span - known > max(1, MAX_GAPS * span):
        text = f"{known:,} of {span:,} steps have a time: kept as their mean, not as every step"
    else:
        if span > known:
            text = f"{span - known} of {span:,} steps have no time in the log; the others stand in order"
            draft.tell("note", text, steps.where)
        return printed
    draft.tell("note", text, steps.where)
    return None


def _keep(draft: ReceiptDraft, steps: StepSeries, durations: Sequence[float | None]) -> None:
    """Durations in order, flags by position, and the stated figures that durations do not give."""
    where = steps.where
    rows = array("L", (row for row, value in enumerate(durations) if value is not None and math.isfinite(value)))
    if len(rows) > MAX_STEPS:
        text = f"of {len(rows):,} steps the first {MAX_STEPS:,} are kept, as many as a receipt holds"
        draft.tell("note", text, where)
        rows = rows[:MAX_STEPS]
    kept = [round(float(durations[row] or 0.0), 9) for row in rows]
    draft.put(_DURATIONS, kept, where, steps.track.reading.source, _summary(kept))
    draft.fill("measurement.timer", "framework log", where, SOURCE)
    state_walls(draft, steps, rows, kept)
    if flags := _flags(draft, steps, rows):
        draft.put("measurement.step_flags", flags, where, SOURCE)
    # Printed rates of tokens that do not follow from the durations: what a step holds, or the chips, are unknown. A
    # batch that moves leaves the tokens of a step unknown, too, but its rates are of steps that differ.
    underived = ["tokens_per_second_per_chip"] * (not draft.get("hardware.chips"))
    if not draft.get(TOKENS):
        _state_rates(draft, steps, rows)
        moving = draft.get("batch.global_batch") and draft.get("batch.sequence_length")
        underived = [] if moving else ["tokens_per_second", "tokens_per_second_per_chip"]
    ordinary = array("L", (row for row in rows if steps.numbers[row] not in steps.not_steady)) or rows
    # A median over fewer steps than those is one of other steps than the receipt's own.
    # One rate of tokens: a log rounds each of them for itself (22.8K beside 11.4K), so that two may seem to differ.
    names = (*_OWN_WORK, *underived)
    whole = [name for name in names if len(steps.known(name, ordinary)) == len(ordinary)]
    if "tokens_per_second" in whole and "tokens_per_second_per_chip" in whole:
        whole.remove("tokens_per_second_per_chip")
    put_rates(draft, steps, ordinary, whole, "median")


def _state_rates(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int]) -> bool:
    """State the printed tokens a second of the steps at ``rows``, where each of them has a rate over all chips."""
    for name, chips in (("tokens_per_second", 1), ("tokens_per_second_per_chip", draft.get("hardware.chips"))):
        rates = steps.known(name, rows)
        if chips and len(rates) == len(rows) and all(0.0 < rate < math.inf for rate in rates):
            kept = [float(f"{rate * chips:.9g}") for rate in rates]
            text = f"{len(kept):,} steps, median {median(kept):,.6g} tokens/s"
            draft.put(_RATES_OF_STEPS, kept, steps.where, steps.track.reading.source, text)
            return True
    return False


def _flags(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int]) -> dict[str, list[int]]:
    """The flags of steps that are not ordinary ones, each with their positions among ``rows``."""
    flagged: defaultdict[str, list[int]] = defaultdict(list)
    renamed: defaultdict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if (reason := steps.not_steady.get(steps.numbers[row])) is not None:
            flagged[FLAGS[reason]].append(position)
            if reason in _RENAMED:
                renamed[reason].append(steps.numbers[row])
    for word, numbers in renamed.items():
        few = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
        draft.tell("note", f"step {few}: {word}, no ordinary step", steps.where)
    return dict(flagged)


def _summary(durations: Sequence[float]) -> str:
    return f"{len(durations):,} steps, median {median(durations):.4g} s"


MAX_LOSSES: Final = 20_000


def state_losses(draft: ReceiptDraft, steps: StepSeries) -> None:
    """State the losses of the steps, thinned where there are very many, and whether all are finite."""
    steps = steps.beside or steps
    _ends(draft, steps, "loss", "loss")
    losses = steps.columns["loss"]
    finite = array(
        "L", (row for row, value in enumerate(losses) if steps.at("loss", row) is not None and math.isfinite(value))
    )
    if len(finite) > MAX_LOSSES:
        every = math.ceil(len(finite) / MAX_LOSSES)
        draft.tell("note", f"of {len(finite):,} losses every {every}th is kept", steps.where)
        finite = finite[::every]
    if finite := array("L", (row for row in finite if steps.numbers[row] >= 0)):
        draft.put("measurement.loss.steps", [steps.numbers[row] for row in finite], steps.where, SOURCE)
        draft.put("measurement.loss.values", [losses[row] for row in finite], steps.where, SOURCE)


def state_norms(draft: ReceiptDraft, steps: StepSeries) -> None:
    """State the first, the last and the largest gradient norm, and whether all are finite."""
    steps = steps.beside if steps.beside is not None and not steps.known("grad_norm") else steps
    _ends(draft, steps, "grad_norm", "gradient_norm")
    if finite := [value for value in steps.known("grad_norm") if math.isfinite(value)]:
        draft.put("measurement.gradient_norm.largest", max(finite), steps.where, SOURCE)


def _ends(draft: ReceiptDraft, steps: StepSeries, name: str, section: str) -> None:
    """State whether all values are finite, and the first and the last where these are."""
    if known := steps.known(name):
        draft.put(f"measurement.{section}.finite", all(map(math.isfinite, known)), steps.where, SOURCE)
        for leaf, value in (("first", known[0]), ("last", known[-1])):
            if math.isfinite(value):
                draft.put(f"measurement.{section}.{leaf}", value, steps.where, SOURCE)
