"""# C103 different_work

*Why.* A step of 65,536 tokens is shorter than one of 262,144, and that teaches nothing.

*Rejected.* Step time of 131,072 tokens a step against 262,144, when recompute is the changed axis.

*Accepted.* Equal tokens a step; or the changed axis is itself the global batch or the sequence length, which determines
them; or the metric is tokens per second, which needs no equal work.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, E, I, Offense, PairCase, rule

_DETERMINES = {"measurement.tokens_per_step": ("batch.global_batch", "batch.sequence_length")}


def _unstated(pair: PairCase, path: str) -> Iterator[str]:
    """What is not stated of a leaf, and of the leaves that determine it."""
    return (item for item in (path, *_DETERMINES.get(path, ())) if pair.values(item) == (None, None))


@rule("C103", "different_work", E, on="pair", question=COMPARABLE)
def different_work(pair: PairCase) -> Iterator[Offense]:
    """What the metric calls equal work, where it differs or is unstated."""
    for path in pair.metric.equal_work:
        if any(axis in pair.counted for axis in _DETERMINES.get(path, ())):
            continue
        a, b = pair.a.launch.tokens_per_step, pair.b.launch.tokens_per_step
        if a is not None and b is not None and a != b:
            yield Offense(
                at=path,
                found=f"{a:,} on A, {b:,} on B",
                expected=f"equal work a step for {pair.metric.name}",
                do="compare tokens_per_second, or run both at one batch and sequence length",
            )
        elif (a is None or b is None) and not (a is b and pair.holds(*_unstated(pair, path))):
            missing = " and ".join(name for name, value in (("A", a), ("B", b)) if value is None)
            yield Offense(
                at=path,
                found=f"not stated on {missing}",
                expected=f"equal work a step for {pair.metric.name}",
                do="state tokens_per_step, or global_batch and sequence_length",
                level=I,
            )
