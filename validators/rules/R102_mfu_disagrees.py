"""# R102 mfu_disagrees

*Why.* One table took its MFU from 3.03 billion parameters in some rows and from 3.13 in others; another divided FP8
runs by the bf16 peak. Each row looked right alone.

*Rejected.* 48.1 % beside 203,000 tokens/s on eight chips at 18.18 GFLOP a token and 989 TFLOP/s: that makes 46.6 %.
249 TFLOP/s a chip beside an MFU of 29.2 % of 989 TFLOP/s. 28.38 GFLOP a token called six times 3.03 billion active
parameters, whether an MFU is stated or not; 48 GFLOP a token by whatever formula, where no formula makes 25.

*Accepted.* What follows from the stated FLOPs a token, within half the last printed digits. Fewer of them than a
formula of parameters makes, since many leave the embedding out; and what a framework prints, whose formula changes with
its version. Where only a formula is named: what follows from any published version of that formula, within half a
percent, since a padded vocabulary and rounded parameter counts move it by that much. A formula that cannot count this
model, for its attention sees a window or a width is not stated, leaves it open. The median of what the steps of a log
print, over an even number of steps: it is not the rate of the median step, and has one digit more than they print. A
receipt that states neither MFU nor TFLOP/s is not asked for anything, and what it states of their terms has to hold. An
accelerator without a published peak has no MFU; there is no default peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from receipts.base.units import counted
from receipts.judging.rule import COMPARABLE, MFU, Case, E, Offense, rule
from receipts.metrics.flops import FORMULAS, MAX_FORMULA_RATIO, counts, eras, geometry_of
from receipts.metrics.stated import STATED, CandidateValue, nearest
from receipts.receipt.accelerators import find_accelerator
from receipts.stats.rounding import Interval

RATIO, TFLOPS, FLOPS, PEAK = (
    f"{STATED}.{name}" for name in ("mfu", "tflops_per_second_per_chip", "flops_per_token", "peak_flops_per_second")
)
DTYPE = f"{STATED}.peak_dtype"
FORMULA = f"{STATED}.formula"
COMPUTED = 0.005  # how far padding and rounded parameter counts move a computed formula
OVER = 1.02  # of a formula that counts what the receipt states: a padded vocabulary, biases, norms


def needs(case: Case) -> Iterable[str]:
    """What an MFU or TFLOP/s follows from, where one is stated."""
    if case.get(RATIO) is None and case.get(TFLOPS) is None:
        return
    if not _flops(case):
        yield FLOPS
    elif not case.launch.numbers.rates:
        yield "measurement.step_durations_seconds|measurement.stated.tokens_per_second"
    if case.get("hardware.chips") is None:
        yield "hardware.chips"
    if case.get(RATIO) is not None and _peak(case) is None:
        yield f"{PEAK}|{DTYPE}" if case.get(DTYPE) is None else PEAK


def _flops(case: Case) -> tuple[CandidateValue, ...]:
    """FLOPs a token: as stated, else by any era of the formula that is named."""
    own = case.launch.numbers.stated_loosely(FLOPS)
    if own is not None:
        return (CandidateValue("the stated FLOPs a token", own),)
    geometry = geometry_of(case.stated)
    named = [(item.id, item.function(geometry).flops) for item in eras(case.get(FORMULA) or "")]
    if not named or named[0][1] is None:
        return ()  # of a formula that cannot count this model, another era is no measure
    return tuple(
        CandidateValue(f"FLOPs a token by {name}", Interval.around(value, COMPUTED * value))
        for name, value in named
        if value
    )


def _peak(case: Case) -> Interval | None:
    """The denominator: as stated, else the registry's dense peak of the type that is named for it."""
    own = case.launch.numbers.stated_loosely(PEAK)
    if own is not None or case.get(DTYPE) is None:
        return own
    machine = find_accelerator(case.get("hardware.accelerator"))
    dense = machine.peak(case.get(DTYPE)) if machine else None
    return Interval.exact(dense) if dense else None


@rule("R102", "mfu_disagrees", E, question=COMPARABLE, taints=(MFU,), needs=needs)
def mfu_disagrees(case: Case) -> Iterator[Offense]:
    """FLOPs a token against their formula; TFLOP/s and MFU against rate, work and peak, and against each other."""
    yield from _overcounted(case)
    if case.get(RATIO) is None and case.get(TFLOPS) is None:
        return
    chips, peak = case.get("hardware.chips"), _peak(case)
    works = _flops(case) if chips is not None else ()  # TFLOP/s and MFU contradict each other on any number of chips
    speeds = tuple(
        CandidateValue(f"{rate.name}, {work.name}, {counted(chips, 'chip')}", rate.value * work.value / (chips * 1e12))
        for rate in (case.launch.numbers.rates if works else ())
        for work in works
    )
    yield from _against(case, TFLOPS, speeds)
    if peak is None or peak.low <= 0:
        return
    yield from _against(case, RATIO, [CandidateValue(item.name, item.value * 1e12 / peak) for item in speeds])
    speed = case.launch.numbers.stated_loosely(TFLOPS)
    if speed is not None:
        yield from _against(case, RATIO, [CandidateValue("the stated TFLOP/s over the peak", speed * 1e12 / peak)])


def _overcounted(case: Case) -> Iterator[Offense]:
    """More FLOPs a token than the named formula makes of the stated parameters, or than any way to count this model."""
    own, named = case.launch.numbers.stated_loosely(FLOPS), case.get(FORMULA)
    if own is None or (named is None and case.get(RATIO) is not None):
        return  # R104 asks for the formula of an MFU
    formula, geometry = FORMULAS.get(named) if named else None, geometry_of(case.stated)
    if formula is not None and not formula.framework:
        most, what = OVER * (formula.function(geometry).flops or 0.0), formula.describe
    else:
        most, what = (
            MAX_FORMULA_RATIO * max(counts(geometry).values(), default=0.0),
            f"{MAX_FORMULA_RATIO:g} times the largest count by any formula",
        )
    if most and own.low > most:
        yield Offense(
            at=FLOPS,
            found=f"{case.get(FLOPS):.4g}",
            expected=f"at most {most:.4g}, {what}",
            do="count the parameters that the formula names, or name the formula that was used",
        )


def _against(case: Case, path: str, computed: Sequence[CandidateValue]) -> Iterator[Offense]:
    own = case.launch.numbers.stated(path)
    if own is None or not computed or any(own.meets(item.value) for item in computed):
        return
    if _mean_of_two(case, path):
        wide = Interval.around(case.get(path), 10 * (own.high - case.get(path)))
        if any(wide.meets(item.value) for item in computed):
            return
    from_stated = [item for item in computed if item.name.startswith("the stated")]  # what a reader can look up
    closest = nearest(case.get(path), from_stated or computed)
    yield Offense(
        at=path,
        found=f"{case.get(path):.6g}",
        expected=f"{closest.value.low:.4g} to {closest.value.high:.4g}, from {closest.name}",
        do="state the FLOPs a token and the peak that it was computed with, or correct it",
    )


def _mean_of_two(case: Case, path: str) -> bool:
    """Whether a number may be the mean of the two middle ones of those printed, which end one digit before its 5."""
    middle = case.get(f"{STATED}.statistic") in (None, "median") and case.get(f"{path}_stated") is None
    return middle and len(case.launch.durations) > 1 and repr(case.get(path)).endswith("5")
