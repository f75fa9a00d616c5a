"""# C125 amounts_unmoved

*Why.* One side routes a token to two experts in place of four, and both sides state the same active parameters: either
the setting or the amount is not of this launch. The MFU of that comparison rose by 5.3 %, of nothing.

*Rejected.* `top_k` 4 on A and 2 on B, with one count of active parameters, or the same FLOPs a token. Depth, width or
the width of an expert that moved by a tenth or more, and an amount that did not. On a metric that no such amount enters
the question is open: the amount may be stale, or the setting never changed.

*Accepted.* Amounts that moved with the setting. Amounts that nobody states. More experts with the same active
parameters: a token visits as many.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, MFU, E, I, Offense, PairCase, rule

ACTIVE, TOTAL, FLOPS = "model.parameters_active", "model.parameters_total", "measurement.stated.flops_per_token"
_EVERY = ("model.depth", "model.hidden", "model.expert_ffn")
_MOVES = {ACTIVE: (*_EVERY, "model.top_k"), FLOPS: (*_EVERY, "model.top_k"), TOTAL: (*_EVERY, "model.experts")}
_OF_EXPERTS = ("model.expert_ffn", "model.top_k")
_ENOUGH = 0.1  # share of a setting: less may hide in the printed digits of an amount


@rule("C125", "amounts_unmoved", E, on="pair", question=COMPARABLE)
def amounts_unmoved(pair: PairCase) -> Iterator[Offense]:
    """Derived amounts that stayed where a setting that determines them moved."""
    for path, settings in _MOVES.items():
        a, b = pair.values(path)
        moved = [name for name in settings if _moved(pair, name)] if a is not None and a == b else []
        if moved:
            yield Offense(
                at=path,
                found=f"{a:,} on both sides, and {moved[0]} {' → '.join(map(str, pair.values(moved[0])))}",
                expected="an amount that follows from the settings of its own side",
                do=f"count {path.rpartition('.')[2]} of each side again, or correct {moved[0]}",
                level=E if pair.metric.taint is MFU else I,
            )


def _moved(pair: PairCase, path: str) -> bool:
    a, b = pair.values(path)
    counted = all(isinstance(value, int) and value > 0 for value in (a, b))
    if not counted or (path in _OF_EXPERTS and min(count or 0 for count in pair.values("model.experts")) < 2):
        return False
    return bool(abs(a - b) > _ENOUGH * max(a, b))
