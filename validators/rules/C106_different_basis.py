"""# C106 different_basis

*Why.* MFU is a quotient, and both halves are counted in several ways: 3.03 or 3.13 billion parameters, causal attention
whole or halved, the dense peak or the sparse one. One table switched the parameter count between two rows.

*Rejected.* MFU by `megatron` against MFU by `palm`; or the same formula with the FLOPs a token of another version of
it.

*Accepted.* The same formula id and the same denominator on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words
from receipts.judging.rule import COMPARABLE, E, I, Offense, PairCase, rule


@rule("C106", "different_basis", E, on="pair", question=COMPARABLE)
def different_basis(pair: PairCase) -> Iterator[Offense]:
    """Every part of the metric's basis that differs, or that is not stated on both sides."""
    for name in pair.metric.basis:
        path = f"measurement.stated.{name}"
        a, b = pair.values(path)
        if name == "peak_sparse":
            a, b = bool(a), bool(b)
        if pair.nameless and pair.silent(path):
            continue
        if a is None or b is None:
            missing = " and ".join(side for side, value in (("A", a), ("B", b)) if value is None)
            yield _offense(path, f"not stated on {missing}", I)
        elif a != b:
            yield _offense(path, f"{in_words(a)} on A, {in_words(b)} on B", E)
    if pair.metric.basis and not _geometry_moved(pair):
        a, b = pair.values("measurement.stated.flops_per_token")
        if a is not None and b is not None and a != b:
            yield _offense("measurement.stated.flops_per_token", f"{a:g} on A, {b:g} on B", E)


def _geometry_moved(pair: PairCase) -> bool:
    """Whether a changed axis itself determines the FLOPs a token."""
    moved = ("pattern", "dimensions", "routing", "batch.sequence_length", "model.mtp_depth", "model.attention_kinds")
    return any(axis in pair.difference.axes for axis in moved)


def _offense(path: str, found: str, level: object) -> Offense:
    return Offense(
        at=path,
        found=found,
        expected="one formula and one denominator on both sides",
        do="state both bases, or compare tokens_per_second",
        level=I if level is I else E,
    )
