"""# C102 unknown_axis

*Why.* Missing is not equal. A row that does not say whether CUDA graphs were on was compared with one that says
they were; the 13 % belonged to the graphs.

*Rejected.* `parallelism.tensor` stated on A and not on B. Or on neither, and the two name no common `run.context`.

A parameter count that differs while nothing changed that makes parameters: some setting is not what was stated.

*Accepted.* Neither states it and both name the same context (held by context, and shown); or the lane says that the
axis does not exist for it; or the lane lets the axis be waived, and a reason is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.metrics.rates import stated
from receipts.rule import COMPARABLE, I, Offence, Pair, rule

_COUNTS = ("model.parameters_total", "model.parameters_active")
_MAKES_PARAMETERS = ("code", "pattern", "dimensions", "routing", "adapters", "wheels")


@rule("C102", "unknown_axis", I, on="pair", question=COMPARABLE)
def unknown_axis(pair: Pair) -> Iterator[Offence]:
    """Every axis that is not stated as it must be, with the side that lacks it."""
    indifferent = {
        item.axis
        for item in pair.metric.indifferent
        if not any(
            axis in pair.difference.axes or any(axis == gap.axis for gap in pair.difference.unknown)
            for axis in item.unchanged
        )
    }
    for gap in pair.difference.unknown:
        if gap.axis in pair.waived or gap.axis in indifferent:
            continue
        paths = ", ".join(item.path for item in gap.members)
        where = {"a": "not stated on A", "b": "not stated on B", "both": "not stated"}[gap.missing]
        yield Offence(
            at=gap.axis,
            found=f"{paths}: {where}",
            expected="stated on both sides, or on neither within one run.context",
            do=f"state {paths}, or name the run.context that both launches share",
        )
    yield from _parameters(pair)


def _parameters(pair: Pair) -> Iterator[Offence]:
    """Exact counts that differ beyond their printed digits: an axis moved that the receipts do not carry."""
    if any(axis in _MAKES_PARAMETERS or axis.startswith(("model.", "patches.", "features.")) for axis in _open(pair)):
        return
    for path in _COUNTS:
        a, b = stated(pair.a.launch, path), stated(pair.b.launch, path)
        if a is not None and b is not None and not a.meets(b):
            va, vb = pair.values(path)
            yield Offence(
                at=path,
                found=f"{va:,} on A, {vb:,} on B, and nothing changed that makes parameters",
                expected="one count for one architecture",
                do="state the setting of the model that differs, or correct the count",
            )


def _open(pair: Pair) -> tuple[str, ...]:
    """Axes that changed, or that may have."""
    return (*pair.difference.axes, *(gap.axis for gap in pair.difference.unknown))
