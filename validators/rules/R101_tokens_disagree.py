"""# R101 tokens_disagree

*Why.* A rate that does not follow from its own step time belongs to another run, another window or another batch.
1,963 ms a step once stood beside 112,152 tokens/s for months: the one makes 133,543 of the other.

*Rejected.* 112,152 tokens/s beside 1,963 ms a step of 64 × 4,096 tokens. A stated step time that is not a statistic
over the steps that were kept. 14,027 tokens/s a chip beside 90,000 on eight chips.

*Accepted.* 112,152 tokens/s beside 2,337 ms: the two agree within half the last printed digit of each. Where the steps
were kept: the rate by the median, mean, last or best step, or the mean of rates, over the window or over all steps.

Where the steps were not kept, rate and step time may be two statistics over the same steps. A difference is then only
shown (W), and does not reject, in three cases: up to half a percent, where nothing says that both are the same
statistic; any difference, where the rate is stated as a mean of rates (3,072 and 2,730.7 tokens/s were once the two
of one run); and a rate up to 6 percent too high beside a step time that is stated as a mean. The mean of rates is
never below the rate of the mean step, and exceeds it by about the square of the steps' relative spread: 6 percent
is a spread of a quarter of the mean.

A round number without its source text is open (I) within its last digit that is not zero. A microbenchmark that states
no rate is not asked for tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, W, rule
from receipts.metrics.stated import EACH, STEP, TOTAL, CandidateValue, gap, nearest

# Median and mean of steady steps, and the mean of rates, lie within what the steady segment's thirds may differ by.
TWO_STATISTICS = 0.005
# By Jensen a mean of rates lies above the rate of the mean step, to second order by the squared relative spread of the
# steps: a quarter of their mean, beyond which nobody would call them one steady run.
MEAN_OF_RATES = 0.25**2
SHARED = ("median", "last", "best", "single_step", "total")


def needs(case: Case) -> Iterable[str]:
    """Tokens a step and a time, where a rate is stated at all."""
    if case.get(TOTAL) is None and case.get(EACH) is None:
        return
    if case.launch.rates:
        return  # as the log prints them: nothing is to follow from the batch
    if case.get("measurement.tokens_per_step") is None:
        yield "batch.global_batch"
        yield "batch.sequence_length"
    yield f"measurement.step_durations_seconds|{STEP}"
    if case.get(EACH) is not None:
        yield "hardware.chips"


@rule("R101", "tokens_disagree", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs)
def tokens_disagree(case: Case) -> Iterator[Offense]:
    """Each stated rate, and the stated step time, against what it must follow from."""
    launch, chips = case.launch, case.get("hardware.chips")
    computed = launch.numbers.rate_statistics or launch.numbers.rate_from_step_time
    yield from _against(case, TOTAL, computed)
    if launch.durations:
        yield from _against(case, STEP, launch.numbers.step_statistics)
    if chips is None:
        return
    yield from _against(case, EACH, computed, float(chips))
    total = launch.numbers.stated_loosely(TOTAL)
    if total is not None:
        yield from _against(case, EACH, (CandidateValue("the stated tokens/s of all chips", total),), float(chips))


def _against(case: Case, path: str, computed: Iterable[CandidateValue], times: float = 1.0) -> Iterator[Offense]:
    strict, loose = case.launch.numbers.stated(path), case.launch.numbers.stated_loosely(path)
    if strict is None or loose is None or not computed:
        return
    strict *= times
    if any(strict.meets(item.value) for item in computed):
        return
    value = case.get(path) * times
    closest = nearest(value, computed)
    level, do = None, "find the run each number is of"
    if any((loose * times).meets(item.value) for item in computed):
        level, do = I, "state the source text of both numbers"
    elif _two_statistics(case) and (
        _mean_of_rates(case) or gap(value, computed) <= TWO_STATISTICS or _may_be_mean_of_rates(case, value, closest)
    ):
        level, do = W, "state the statistic of both numbers"
    meant = _of_its_statistic(case, value, computed) or closest
    yield Offense(
        at=path,
        found=f"{case.get(path):,.6g}" + (f" on {times:g} chips" if times != 1.0 else ""),
        expected=f"{meant.value.low / times:,.6g} to {meant.value.high / times:,.6g}, {meant.name}",
        do=do,
        level=level,
    )


def _of_its_statistic(case: Case, value: float, computed: Iterable[CandidateValue]) -> CandidateValue | None:
    """What the number should have been by the statistic that it claims to be."""
    statistic = f"{case.get('measurement.stated.statistic')} step"
    alike = [item for item in computed if statistic in item.name]
    return nearest(value, alike) if alike else None


def _two_statistics(case: Case) -> bool:
    """Whether rate and step time may be two statistics over steps that were not kept: then neither refutes the other.

    Such a launch is summary-only (R205) and carries no effect, so that what is shown here cannot be accepted there.
    """
    return not case.launch.durations and case.get("measurement.stated.statistic") not in SHARED


def _mean_of_rates(case: Case) -> bool:
    """Whether the rate is a mean of rates: without the steps nothing bounds how far that lies from any step time."""
    return bool(case.get("measurement.stated.statistic") == "mean_of_rates")


def _may_be_mean_of_rates(case: Case, value: float, of_mean: CandidateValue) -> bool:
    """Whether a rate whose own statistic is not named may be the mean of rates over the steps of a stated mean."""
    above = value / of_mean.value.high - 1.0
    return case.get("measurement.stated.statistic") == "mean" and 0.0 < above <= MEAN_OF_RATES
