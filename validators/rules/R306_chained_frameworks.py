"""# R306 chained_frameworks

*Why.* Each host framework owns sharding, checkpoints and overlap. Two in one run own them twice, and the number is
nobody's. Wrappers of one framework (NeMo, Megatron-Bridge around Megatron-Core) are listed by the lane as one host,
and a receipt names the one that drives the loop.

*Rejected.* DeepSpeed's engine around Megatron-Core's DDP; torchtitan seen in the Megatron lane.

*Accepted.* One host framework was seen, and it is the lane's.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import ALL, PATH, Case, E, Offense, rule
from receipts.receipt.names import anything_witnessed

_ONE, _EVERY = "path.witnessed.framework", "path.witnessed.frameworks"


def _needs(case: Case) -> Iterator[str]:
    yield _EVERY
    if anything_witnessed(case.parsed):
        yield _ONE


@rule("R306", "chained_frameworks", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def chained_frameworks(case: Case) -> Iterator[Offense]:
    """More than one host framework seen, or one that is not the lane's."""
    seen = sorted({*(case.get(_EVERY) or ()), case.get(_ONE)} - {None})
    if len(seen) > 1:
        yield Offense(
            at=_EVERY,
            found=f"{len(seen)} host frameworks: {', '.join(seen)}",
            expected="one host framework a run",
            do="let one of them host, and adapt the rest to it",
        )
    elif seen and case.lane.frameworks and seen[0] not in case.lane.frameworks:
        yield Offense(
            at=_ONE,
            found=seen[0],
            expected=f"{' or '.join(case.lane.frameworks)}, the host of lane {case.lane.name}",
            do="name the lane of the framework that ran",
        )
