"""# R106 batch_unaccounted

*Why.* Tokens a step are the numerator of every rate. A table that carried a global batch of 16 beside a micro batch of
4 over eight data ranks stated a rate for half the work that its steps did.

*Rejected.* Micro batch 4, data 4, accumulation 4, and a global batch of 32: they make 64. 524,288 tokens a step beside
a global batch of 64 sequences of 4,096: they make 262,144, and the rate would double.

*Accepted.* Micro batch 4 × data 4 × accumulation 4 = 64. Accumulation unstated, where micro batch times data divides
the global batch; data unstated, where it follows from chips and degrees. Tokens that leave out one token of each
sequence, and one more for each MTP depth, because the loss has no target there. Fewer tokens than that of steps that
differ in rows or lengths (`batch.ragged`): they are a mean. A microbenchmark has no batch to account for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import MFU, RATE, Case, E, Offense, Topic, rule, runs_model
from receipts.metrics.degrees import CHIPS, DATA, batch_ways, wanted

MICRO, GLOBAL, ACCUMULATION = "batch.micro_batch", "batch.global_batch", "batch.accumulation"
RAGGED = "batch.ragged"
TOKENS, LENGTH = "measurement.tokens_per_step", "batch.sequence_length"


def needs(case: Case) -> Iterable[str]:
    """Both batches, the data degree or what it follows from, and the length where tokens a step are stated."""
    yield MICRO
    yield GLOBAL
    if case.get(TOKENS) is not None and not case.get(RAGGED):
        yield LENGTH
    if case.get(DATA) is None:
        yield f"{CHIPS}|{DATA}"
        yield from wanted(case.lane)


@rule("R106", "batch_unaccounted", E, taints=(RATE, MFU), needs=needs, applies=runs_model, about=Topic.LAYOUT)
def batch_unaccounted(case: Case) -> Iterator[Offense]:
    """Tokens a step against the global batch, then that against micro batch, data ranks and accumulation."""
    yield from _tokens(case)
    whole, micro, accumulation = case.get(GLOBAL), case.get(MICRO), case.get(ACCUMULATION)
    if whole is None or micro is None:
        return
    ways = batch_ways(case.stated, case.lane)
    if not ways:
        return  # the degrees do not divide the chips, which is R105's to say
    at_once = [micro * share for share in ways]
    if accumulation is None:
        if not any(whole % item == 0 for item in at_once):
            multiples = " or ".join(str(item) for item in at_once)
            yield Offense(
                at=GLOBAL,
                found=f"{whole}, which micro batch {micro} over data {ways[0]} does not divide",
                expected=f"a multiple of {multiples}",
                do="state the batches of this launch",
            )
    elif whole not in [item * accumulation for item in at_once]:
        multiples = " or ".join(str(item * accumulation) for item in at_once)
        yield Offense(
            at=GLOBAL,
            found=f"{whole}",
            expected=f"{multiples}: micro batch {micro} × data {ways[0]} × accumulation {accumulation}",
            do="state the batches of this launch",
        )


def _tokens(case: Case) -> Iterator[Offense]:
    """Tokens a step that are not those of the batch: every rate over the steps is made of them."""
    tokens, whole, length = case.get(TOKENS), case.get(GLOBAL), case.get(LENGTH)
    if tokens is None or whole is None or length is None:
        return
    without_target = 1 + (case.get("model.mtp_depth") or 0)
    least = 0 if case.get(RAGGED) else whole * (length - without_target)
    if not least <= tokens <= whole * length:
        yield Offense(
            at=TOKENS,
            found=f"{tokens:,}",
            expected=f"{whole * length:,}: {whole} sequences of {length}; with targets alone, down to "
            f"{whole * (length - without_target):,}",
            do="state the tokens of all chips in one optimizer step, or the batch that they are of",
        )
