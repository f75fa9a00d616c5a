"""# R103 impossible_mfu

*Why.* Nothing computes faster than the dense peak: above it the clock, the work or the denominator is wrong. A tool
that fell back to a default peak printed 563 %, and a base of 93.4 % was used to measure a regression.

*Rejected.* An MFU of 1.04. 1,030 TFLOP/s a chip in bf16 on an H200, whose dense peak is 989. As W: 93.4 % on an H200,
whose best dense matmul reaches about 80 %.

*Accepted.* 25.8 %. A rate on a machine without a published peak: it has no utilisation, and none is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.accelerators import find as find_accelerator
from receipts.metrics.rates import EACH, STATED, STEP, TOTAL, rates, stated
from receipts.rule import COMPARABLE, MFU, RATE, Case, E, Offence, W, rule

RATIO, TFLOPS, FLOPS, PEAK = (
    f"{STATED}.{name}" for name in ("mfu", "tflops_per_second_per_chip", "flops_per_token", "peak_flops_per_second")
)
TYPE = "numerics.compute_dtype"
STEPS = "measurement.step_durations_seconds"


def needs(case: Case) -> Iterable[str]:
    """Which chip, and in which type it multiplied, where a speed is stated or follows."""
    if case.get(TFLOPS) is not None or case.get(FLOPS) is not None:
        yield "hardware.accelerator"
        yield TYPE


@rule("R103", "impossible_mfu", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs)
def impossible_mfu(case: Case) -> Iterator[Offence]:
    """Stated MFU against 1; stated or computed speed against the dense peak of the compute type."""
    machine = find_accelerator(case.get("hardware.accelerator"))
    best = machine.best_fraction(case.get(TYPE)) if machine else None
    own = stated(case.launch, RATIO)
    if own is not None:
        yield from _above(RATIO, own.low, best)
    # A type that names no peak, such as a mixture, is held against the largest peak that the chip has.
    peaks = machine.dense_peak_flops_per_second if machine else {}
    dense = (machine.peak(case.get(TYPE)) if machine else None) or max(peaks.values(), default=None)
    if dense is None:
        return
    speed = stated(case.launch, TFLOPS)
    if speed is not None:
        yield from _above(TFLOPS, speed.low * 1e12 / dense, best)
    work, chips = stated(case.launch, FLOPS), case.get("hardware.chips")
    if work is not None and chips and own is None and speed is None and (found := rates(case.launch)):
        at = next((path for path in (TOTAL, EACH, STEPS) if case.get(path) is not None), STEP)
        slowest = min(item.value.low for item in found)
        yield from _above(at, slowest * work.low / (chips * dense), best)


def _above(at: str, share: float, best: float | None) -> Iterator[Offence]:
    """E above the peak, W above what the chip's own dense matmul reaches."""
    limit = 1.0 if share > 1.0 or best is None else best
    if share > limit:
        yield Offence(
            at=at,
            found=f"{share:.1%} of the dense peak",
            expected=f"at most {limit:.0%}" + (", what its best dense matmul reaches" if limit < 1.0 else ""),
            do="check the timer's synchronisation, the FLOPs a token and the denominator",
            level=W if limit < 1.0 else None,
        )
