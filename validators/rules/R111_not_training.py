"""# R111 not_training

*Why.* A step that trains nothing is fast. NaN from the first iteration ran at 301.9 TFLOP/s, above the golden run, and
a gradient norm of zero was a record for two weeks.

*Rejected.* Outcome `ok` with a loss that was not finite, a last gradient norm of 0, a last loss of 71 with 65,536
vocabulary entries (guessing costs 11.09 nats), a rate of 0 tokens/s, or an exit code of 1. One of these is enough,
whatever else is not stated.

*Accepted.* A loss of 4.9 and a gradient norm of 1.1. A launch whose outcome says that it failed: it is kept as a
failure, and no rate is read from it. A profile or microbenchmark, which need not learn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.rule import COMPARABLE, MFU, RATE, Case, E, Offence, rule

LOSS, FINITE = "measurement.loss.last", "measurement.loss.finite"
NORM, NORM_FINITE = "measurement.gradient_norm.last", "measurement.gradient_norm.finite"
EXIT, VOCABULARY, RATES = "run.exit_code", "model.vocabulary", "measurement.stated.tokens_per_second"
DO = "set the outcome to what happened, or mend the run: its rate is of steps that train nothing"
NEEDED = (FINITE, LOSS, NORM_FINITE, NORM, EXIT, VOCABULARY)


def needs(case: Case) -> tuple[str, ...]:
    """All of them to say that it trained; one sign that it did not is enough without the rest."""
    return () if next(signs(case), None) else NEEDED


def applies(case: Case) -> bool:
    """Training that says it went well."""
    return bool(case.receipt.run.kind == "training" and case.receipt.run.outcome == "ok")


@rule(
    "R111",
    "not_training",
    E,
    question=COMPARABLE,
    taints=(RATE, MFU),
    needs=needs,
    applies=applies,
)
def not_training(case: Case) -> Iterator[Offence]:
    """Each sign that an `ok` training run did not train."""
    yield from signs(case)


def signs(case: Case) -> Iterator[Offence]:
    """What is stated and speaks against training."""
    for path, what in ((FINITE, "losses"), (NORM_FINITE, "gradient norms")):
        if case.get(path) is False:
            yield Offence(path, f"some {what} were not finite", f"only finite {what}", DO)
    norm, loss, vocabulary = case.get(NORM), case.get(LOSS), case.get(VOCABULARY)
    if norm is not None and norm <= 0:
        yield Offence(NORM, f"a gradient norm of {norm:g}", "a gradient norm above 0", DO)
    if loss is not None and vocabulary is not None and loss > math.log(vocabulary):
        yield Offence(
            LOSS,
            f"{loss:g} at the end",
            f"at most ln({vocabulary}) = {math.log(vocabulary):.2f}, the loss of guessing",
            DO,
        )
    if case.get(RATES) == 0 or case.get(f"{RATES}_per_chip") == 0:
        yield Offence(RATES, "no tokens", "tokens", DO)
    if case.get(EXIT) not in (None, 0):
        yield Offence(EXIT, f"exit code {case.get(EXIT)} of an outcome ok", "0", DO)
