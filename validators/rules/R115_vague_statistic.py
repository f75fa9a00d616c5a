"""# R115 vague_statistic

*Why.* One step, the best step, the mean of rates and the total are four numbers of one run: 3,072 and 2,730.7 tokens/s,
or 393.5 and 310.7. A rate that does not say which it is cannot be repeated.

*Rejected.* A stated rate without a statistic; one of a single step; a mean of rates, which slow steps hardly move.

*Accepted.* A rate over the median or mean step, or of the total. A receipt that states no rate and keeps its steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule

STATISTIC = "measurement.stated.statistic"
RATES = ("measurement.stated.tokens_per_second", "measurement.stated.tokens_per_second_per_chip")
VAGUE = {
    None: "a rate that does not say which statistic it is",
    "single_step": "the rate of one step",
    "last": "the rate of the last step",
    "best": "the rate of the best step",
    "mean_of_rates": "a mean of rates",
}


@rule("R115", "vague_statistic", W, question=NONE)
def vague_statistic(case: Case) -> Iterator[Offense]:
    """The statistic of a stated rate."""
    if all(case.get(path) is None for path in RATES) or case.get(STATISTIC) not in VAGUE:
        return
    yield Offense(
        at=STATISTIC,
        found=VAGUE[case.get(STATISTIC)],
        expected="median, mean or total over steps after warm-up",
        do="keep the steps, or state the rate over the median step",
    )
