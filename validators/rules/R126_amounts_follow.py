"""# R126 amounts_follow

*Why.* MFU multiplies the rate by a count that somebody typed. `top_k` went from 4 to 2, the count of active parameters
stayed, and the same machine was 5.3 % better used.

*Rejected.* 4.73 billion parameters of which 3.03 are active, with 2 of 16 experts a token: what a token does not visit
is 14 experts in each of 22 blocks, 0.3 billion more than the difference of the two counts. Four billion parameters of a
dense model whose widths and depth make four million. As open: far fewer than they make, since layers may share weights.

*Accepted.* The same counts with 4 of 16 experts. Experts with a gate or without; counts that leave the embedding out;
printed digits, and a twentieth of the active count more or less, since people count shared parts in several ways. A
dense model within twice of what its widths make, or whose widths are not all stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from receipts.judging.rule import MFU, Case, E, I, Offense, rule, runs_model
from receipts.metrics.flops import Geometry, counts, geometry_of
from receipts.receipt.patterns import BlockKind

ACTIVE, TOTAL = "model.parameters_active", "model.parameters_total"
WIDTHS = tuple(f"model.{name}" for name in ("experts", "top_k", "hidden", "expert_ffn"))
SIX = 6.0  # FLOPs a parameter and token, forward and backward
WIDE = 2.0  # times: towers and tables that no width tells
OF_EXPERTS, OF_ACTIVE = 0.03, 0.05  # biases and routers; embeddings, heads and shared parts that one counts or not


def needs(case: Case) -> Iterator[str]:
    """What both counts follow from, where two different ones are stated: some of the parameters are idle."""
    if None not in (case.get(ACTIVE), case.get(TOTAL)) and case.get(ACTIVE) != case.get(TOTAL):
        yield from ("model.pattern", "model.depth", *WIDTHS)


@rule("R126", "amounts_follow", E, taints=(MFU,), needs=needs, applies=runs_model, of_configuration=True)
def amounts_follow(case: Case) -> Iterator[Offense]:
    """The parameters that a token does not visit, by both counts and by the experts that it is not sent to."""
    model = geometry_of(case.stated)
    yield from _of_widths(model)
    blocks = (model.blocks or {}).get(BlockKind.EXPERT, 0)
    widths = (model.experts, model.top_k, model.hidden, model.expert_ffn, model.parameters_total)
    if not blocks or model.parameters_active is None or not all(widths):
        return
    experts, top_k, hidden, width, total = (int(value or 0) for value in widths)
    idle = total - model.parameters_active
    one = (experts - top_k) * hidden * width * blocks
    tables = hidden * (model.vocabulary or 0)
    possible = [one * matrices + tables * left_out for matrices, left_out in product((2, 3), (0, 1, 2))]
    slack = OF_EXPERTS * abs(idle) + OF_ACTIVE * model.parameters_active
    if top_k <= experts and all(abs(idle - value) > slack for value in possible):
        nearest = min(possible, key=lambda value: abs(idle - value))
        yield Offense(
            at=ACTIVE,
            found=f"{model.parameters_active:,} of {total:,}, with {top_k} of {experts} experts a token",
            expected=f"about {total - nearest:,}: a token skips {experts - top_k} experts in each of {blocks} blocks",
            do="count the active parameters of this model again; MFU and FLOPs a token follow from them",
        )


def _of_widths(model: Geometry) -> Iterator[Offense]:
    """All parameters of a dense model against its matrices, where every width is stated."""
    total = model.parameters_total
    if (
        total is None
        or not model.is_dense
        or (whole := counts(replace(model, sequence_length=1)).get("megatron")) is None
    ):
        return
    matrices = whole / SIX
    tables = 2 * (model.hidden or 0) * (model.vocabulary or 0)
    if not matrices / WIDE <= total <= WIDE * (matrices + tables):
        yield Offense(
            at=TOTAL,
            found=f"{total:,}",
            expected=f"about {matrices:,.0f}, which the widths and the depth make",
            do="count the parameters of the model that ran, or state the widths that it has",
            level=I if total < matrices else None,
        )
