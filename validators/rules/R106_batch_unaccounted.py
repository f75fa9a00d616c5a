"""# R106 batch_unaccounted

*Why.* Tokens a step are the numerator of every rate. A table that carried a global batch of 16 beside a micro batch of
4 over eight data ranks stated a rate for half the work that its steps did.

*Rejected.* Micro batch 4, data 4, accumulation 4, and a global batch of 32: they make 64.

*Accepted.* Micro batch 4 × data 4 × accumulation 4 = 64. Accumulation unstated, where micro batch times data divides
the global batch; data unstated, where it follows from chips and degrees. A microbenchmark has no batch to account for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.metrics.degrees import CHIPS, DATA, batch_ways, wanted
from receipts.rule import COMPARABLE, MFU, RATE, Case, E, Offence, rule

MICRO, GLOBAL, ACCUMULATION = "batch.micro_batch", "batch.global_batch", "batch.accumulation"


def needs(case: Case) -> Iterable[str]:
    """Both batches, and the data degree or what it follows from."""
    yield MICRO
    yield GLOBAL
    if case.get(DATA) is None:
        yield f"{CHIPS}|{DATA}"
        yield from wanted(case.lane)


def applies(case: Case) -> bool:
    """A microbenchmark takes no optimiser step."""
    return bool(case.receipt.run.kind != "microbench")


@rule("R106", "batch_unaccounted", E, question=COMPARABLE, taints=(RATE, MFU), needs=needs, applies=applies)
def batch_unaccounted(case: Case) -> Iterator[Offence]:
    """Global batch against micro batch, data ranks and accumulation."""
    whole, micro, accumulation = case.get(GLOBAL), case.get(MICRO), case.get(ACCUMULATION)
    if whole is None or micro is None:
        return
    ways = batch_ways(case.stated, case.lane)
    if not ways:
        return  # the degrees do not divide the chips, which is R105's to say
    at_once = [micro * share for share in ways]
    if accumulation is None:
        if not any(whole % item == 0 for item in at_once):
            made = " or ".join(str(item) for item in at_once)
            yield Offence(
                at=GLOBAL,
                found=f"{whole}, which micro batch {micro} over data {ways[0]} does not divide",
                expected=f"a multiple of {made}",
                do="state the batches of this launch",
            )
    elif whole not in [item * accumulation for item in at_once]:
        made = " or ".join(str(item * accumulation) for item in at_once)
        yield Offence(
            at=GLOBAL,
            found=f"{whole}",
            expected=f"{made}: micro batch {micro} × data {ways[0]} × accumulation {accumulation}",
            do="state the batches of this launch",
        )
