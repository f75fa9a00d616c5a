"""# R103 impossible_mfu

*Why.* Nothing computes faster than the dense peak: above it the clock, the work or the denominator is wrong. A tool
that fell back to a default peak printed 563 %, a base of 93.4 % was used to measure a regression, and steps in
microseconds that were read as seconds led a weekly frontier with 10¹³ tokens a second.

*Rejected.* An MFU of 1.04. Steps of a 4.7B model five times as fast as eight H200 can train it. 1,030 TFLOP/s a chip in
bf16 on an H200, whose dense peak is 989. 3.03 billion active parameters at 1.1 × 10¹¹ tokens/s on eight H200, whether
an MFU is stated or not. As W: 93.4 % on an H200, whose best dense matmul reaches about 80 %.

*Accepted.* 25.8 %. A rate on a machine without a published peak: it has no utilization, and none is made up. A kernel
on its own, whose tokens a second pass no model.

*The bound.* Tokens a second × the least FLOPs a token ÷ (chips × peak), for the median step and for each stated rate.
The least FLOPs are 2 a parameter, the forward pass alone: of the GEMMs that the widths give, or of a quarter of the
stated active parameters. A step that trains every weight needs three times as many: where the run says that it has no
adapters, or its lane has none, that is the bound. Where it does not say, a rate between the two is open (I), and so it
is where the run counts fewer FLOPs a token itself, as one with frozen weights does.
Embeddings and sparse attention stay below it. The peak is that of the compute type where the run says that nothing is
computed in a lower one, else the chip's highest dense peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, W, rule
from receipts.judging.verdict import Level
from receipts.metrics.flops import geometry_of
from receipts.metrics.flops.matmuls import least_flops_per_token
from receipts.metrics.stated import EACH, STATED, STEP, TOTAL
from receipts.receipt.accelerators import Accelerator, dtype_of, find_accelerator

RATIO, TFLOPS, FLOPS, PEAK = (
    f"{STATED}.{name}" for name in ("mfu", "tflops_per_second_per_chip", "flops_per_token", "peak_flops_per_second")
)
TYPE, RECIPE = "numerics.compute_dtype", "numerics.fp8_recipe"
CHIPS, ACCELERATOR = "hardware.chips", "hardware.accelerator"
STEPS = "measurement.step_durations_seconds"
ADAPTERS = "numerics.adapters.kind"
PASSES = 3.0  # forward, and backward to activations and to weights
STEPPING = ("training", "profile")  # kinds whose tokens pass the whole model


def needs(case: Case) -> Iterable[str]:
    """Which chips, and in which type they multiplied, where a speed is stated; the model's size where a rate is."""
    if case.get(TFLOPS) is not None or case.get(FLOPS) is not None:
        yield ACCELERATOR
        yield TYPE
    if not any(_rates(case)):
        return
    yield ACCELERATOR
    machine = find_accelerator(case.get(ACCELERATOR))
    if machine is not None and machine.dense_peak_flops_per_second:
        yield CHIPS
        if not _least(case):
            yield "model.parameters_active|model.parameters_total|model.hidden"


@rule("R103", "impossible_mfu", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs)
def impossible_mfu(case: Case) -> Iterator[Offense]:
    """Stated MFU against 1; stated speed, and what each rate costs at the least, against the dense peak."""
    machine = find_accelerator(case.get(ACCELERATOR))
    best = machine.best_fraction(case.get(TYPE)) if machine else None
    own, speed = case.launch.numbers.stated(RATIO), case.launch.numbers.stated(TFLOPS)
    if own is not None:
        yield from _above(RATIO, own.low, best)
    peaks = machine.dense_peak_flops_per_second if machine else {}
    if machine is None or not peaks:
        return
    # A type that names no peak, such as a mixture, is held against the largest peak that the chip has.
    dense, highest = machine.peak(case.get(TYPE)) or max(peaks.values()), _highest(case, machine)
    if speed is not None:
        yield from _above(TFLOPS, speed.low * 1e12 / dense, best)
    chips, work, least = case.get(CHIPS), case.launch.numbers.stated(FLOPS), _least(case)
    for at, rate in _rates(case) if chips else ():
        share, trained, sure = rate * least / (chips * highest), *_trained(case)
        if share > 1.0 or (sure and share * trained > 1.0):
            frozen = share <= 1.0 and work is not None and work.high < trained * least
            yield from _above(at, share * trained, None, "at the least, ", I if frozen else E)
        elif work is not None:
            yield from _above(at, rate * work.low / (chips * dense), best if own is None and speed is None else None)
        elif share * trained > 1.0:
            yield from _above(at, share * trained, None, "with every weight trained, ", I)


def _least(case: Case) -> float:
    return least_flops_per_token(geometry_of(case.stated))


def _trained(case: Case) -> tuple[float, bool]:
    """Passes over the weights that a step makes, the forward pass being one, and whether the run says so."""
    adapters, region = case.get(ADAPTERS), case.get("measurement.region")
    if region == "forward" or adapters not in (None, "none"):
        return 1.0, True
    return PASSES, adapters is not None or ADAPTERS in case.lane.not_applicable


def _rates(case: Case) -> Iterator[tuple[str, float]]:
    """Tokens per second of all chips: by the median step, and each as stated, at the lower end of its rounding."""
    if case.receipt.run.kind not in STEPPING:
        return
    of_median = next(iter(case.launch.numbers.rate_statistics), None)  # the first of them; the others take time
    if of_median is not None:
        yield STEPS, of_median.value.low
    total, each, chips = case.launch.numbers.stated(TOTAL), case.launch.numbers.stated(EACH), case.get(CHIPS)
    if total is not None:
        yield TOTAL, total.low
    if each is not None and chips:
        yield EACH, each.low * chips
    if seconds := case.launch.numbers.rate_from_step_time:
        yield STEP, min(item.value.low for item in seconds)


def _highest(case: Case, machine: Accelerator) -> float:
    """The peak of the lowest precision that the run could use."""
    peak = machine.peak(case.get(TYPE))
    # A library may run fp32 as TF32, or cast it; sixteen bits become eight by a recipe alone.
    known = peak is not None and case.get(RECIPE) == "none" and dtype_of(case.get(TYPE)) in ("bf16", "fp16")
    return peak if peak and known else max(machine.dense_peak_flops_per_second.values())


def _above(at: str, share: float, best: float | None, least: str = "", level: Level = E) -> Iterator[Offense]:
    """``level`` above the peak, W above what the chip's own dense matmul reaches."""
    limit = 1.0 if share > 1.0 or best is None else best
    if share > limit:
        yield Offense(
            at=at,
            found=f"{least}{share:,.1%} of the dense peak",
            expected=f"at most {limit:.0%}" + (", what its best dense matmul reaches" if limit < 1.0 else ""),
            do="check the timer's synchronization, the FLOPs a token and the denominator",
            level=W if limit < 1.0 else level,
        )
