"""# C107 different_metric

*Why.* A median against a last iteration, a rate against a time, a number against nothing: there is no difference to
speak of.

*Rejected.* Peak memory where only one side measured it.

*Accepted.* The metric can be read from both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import COMPARABLE, E, Offence, Pair, rule


@rule("C107", "different_metric", E, on="pair", question=COMPARABLE)
def different_metric(pair: Pair) -> Iterator[Offence]:
    """The side, or sides, that do not carry the metric."""
    if pair.metric.summary == "outcome":
        return
    missing = []
    for side, group in (("A", pair.group_a), ("B", pair.group_b)):
        if any(launch.read(pair.metric).value is None for launch in group):
            missing.append(side)
    if missing:
        yield Offence(
            at="measurement",
            found=f"no {pair.metric.name} on {' and '.join(missing)}",
            expected="the metric on both sides",
            do="measure it on both, or compare on a metric that both have: receipts show A",
        )
