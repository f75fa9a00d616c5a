"""# R312 wrapped_out_of_order

*Why.* `fully_shard` manages what it finds, by hooks on the modules that it finds. A compile around those hooks breaks
its graph at each of them; recomputation around them gathers every shard twice; an adapter that comes later is managed
by nothing. One order, kept, is what lets a planner reason about all launches of a lane.

*Rejected.* "shard, compile" on a lane that promises compile before shard: the question stays open until somebody shows
what ran. "shard, adapters" where no gradient synchronization of the adapters is stated.

*Accepted.* "adapters, recompute, shard". "shard, adapters" with all-reduce hooks (R311). An order that is not stated,
or `none`: nobody promised that it be written down. A lane that promises no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from receipts.judging.rule import PATH, Case, I, Offense, rule
from receipts.receipt.names import parts

_ORDER, _SYNC = "parallelism.wrap_order", "numerics.adapters.gradient_sync"
_WORDS = {
    "pipeline": ("pp", "pipeline"),
    "tensor": ("tp", "tensor"),
    "recompute": ("recompute", "activation_checkpointing", "checkpoint", "ac"),
    "compile": ("compile", "torch_compile"),
    "shard": ("shard", "fsdp", "fsdp2", "fully_shard", "zero3"),
    "expert": ("ep", "expert"),
    "adapters": ("adapters", "lora"),
}


@rule("R312", "wrapped_out_of_order", I, question=PATH, of_configuration=True)
def wrapped_out_of_order(case: Case) -> Iterator[Offense]:
    """The order of wrapping as stated, against the one that the lane promises."""
    promised, text = case.lane.wrap_order, case.get(_ORDER)
    if not promised or text is None:
        return
    stated = _read(str(text))
    wrong = _out_of_order(stated, promised)
    if wrong is None and not parts(case.get(_SYNC) or "none"):
        wrong = _out_of_order(stated, ("adapters", "shard"))
    if wrong is not None:
        inner, outer = wrong
        yield Offense(
            at=_ORDER,
            found=f"{outer} before {inner}: {text}",
            expected=f"{inner} before {outer}, as lane {case.lane.name} wraps: {', '.join(promised)}",
            do="wrap in that order, or state the order that ran",
        )


def _read(text: str) -> list[str]:
    """The known words of an order; `fully_shard` is one word, as is `activation checkpointing`."""
    pieces = re.split(r"\s*(?:,|->|→|>|\+|;|\bthen\b)\s*", text.strip().lower())
    spelled = [re.sub(r"[\s-]+", "_", piece) for piece in pieces]
    return [word for piece in spelled for word, names in _WORDS.items() if piece in names]


def _out_of_order(stated: Sequence[str], promised: Sequence[str]) -> tuple[str, str] | None:
    """The first two that stand the wrong way round: the one that is to be inside, and the other."""
    known = [word for word in stated if word in promised]
    for outer, inner in pairwise(known):
        if promised.index(inner) < promised.index(outer):
            return inner, outer
    return None
