"""# C126 other_gradients

*Why.* A launch with frozen layers, or with a loss that skips half of its tokens, reads the same data, starts at the
same loss and is faster. Its gradients are others: they are what all the work of a step is for.

*Rejected.* As open: first gradient norms of 2.31 and 0.4 of launches of one seed, although nothing changed that could
move them. Of two seeds where they differ by more than a half.

*Accepted.* First norms that agree within a tenth, or within a half where there are two seeds or none is stated. The
precision, the model, the batch, the loss or the code is the changed axis. A norm that one side alone states. Norms of
other steps: of a launch that resumed, or of a log that begins later.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, MFU, RATE, I, Offense, PairCase, rule
from receipts.judging.side import FIRST, first_norms, parted
from receipts.metrics import Launch

LOSSES = "measurement.loss.steps"
SEEDS = ("numerics.seed", "data.order_seed")
# What moves the first gradients, or the sums that their norm is made of.
MOVES = (
    *("pattern", "dimensions", "routing", "precision", "code", "data", "model.", "numerics.", "optimizer", "adapters"),
    *("batch.global_batch", "batch.sequence_length", "features.", "inputs.", "patches", "wheels"),
    "path.witnessed.gemm",
)


@rule("C126", "other_gradients", I, on="pair", question=COMPARABLE, taints=(RATE, MFU))
def other_gradients(pair: PairCase) -> Iterator[Offense]:
    """First gradient norms that differ although nothing changed that moves them."""
    if pair.metric.taint not in (RATE, MFU) or any(axis.startswith(MOVES) for axis in pair.difference.axes):
        return
    if len({_begin(launch) for launch in (*pair.group_a, *pair.group_b)}) > 1:
        return
    sides = [[launch.parsed for launch in group] for group in (pair.group_a, pair.group_b)]
    a, b = ({item.stated.get(path) for item in side for path in SEEDS} for side in sides)
    # A seed that nobody stated may be two.
    if (norms := parted(*map(first_norms, sides), one_seed=a == b != {None})) is not None:
        yield Offense(
            at=FIRST,
            found=f"{norms[0]:.4g} on A, {norms[1]:.4g} on B",
            expected="gradients of one size: the same weights, data and loss",
            do="see what each side trains: frozen parameters, a masked loss, another clip; state it as an axis",
        )


def _begin(launch: Launch) -> tuple[object, object, int]:
    """What a launch resumed from, and the step at which its numbers begin."""
    resumed, start, shown = (launch.stated.get(path) for path in ("run.resumed_from", "run.start_step", LOSSES))
    return resumed, start or 0, max(1, shown[0]) if shown else 1  # programs count from 0 or from 1
