"""# R114 strange_start

*Why.* An untrained model guesses, and guessing costs ln(vocabulary). A first loss far from it is a checkpoint that was
loaded without saying so, another vocabulary, labels that are shifted, or a broken initialization.

*Rejected.* A first loss of 14.79 where ln(131,072) is 11.78; one of 3.2 in a launch that resumes nothing.

*Accepted.* 11.19 where ln(65,536) is 11.09. A resumed launch. A launch without a first loss, or whose log begins
at step 1,000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule

# Share of ln(vocabulary). The spread of untrained logits adds a little; a seventh more or less is something else.
MAX_OFF = 0.15
EARLY = 10  # steps; a log that begins later shows no start
FIRST, VOCABULARY = "measurement.loss.first", "model.vocabulary"


def applies(case: Case) -> bool:
    """Training alone starts from guessing."""
    return bool(case.receipt.run.kind == "training")


@rule("R114", "strange_start", W, question=NONE, applies=applies)
def strange_start(case: Case) -> Iterator[Offense]:
    """The first loss against ln(vocabulary)."""
    first, vocabulary = case.get(FIRST), case.get(VOCABULARY)
    resumed = case.get("run.resumed_from") is not None or (case.get("run.start_step") or 0) > 0
    begins = next(iter(case.get("measurement.loss.steps") or ()), 0)
    if first is None or vocabulary is None or vocabulary < 2 or resumed or begins > EARLY:
        return
    guessing = math.log(vocabulary)
    if abs(first - guessing) > MAX_OFF * guessing:
        yield Offense(
            at=FIRST,
            found=f"{first:g}",
            expected=f"about ln({vocabulary}) = {guessing:.2f}",
            do="state what it was resumed from, or check vocabulary, labels and initialization",
        )
