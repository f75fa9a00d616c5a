"""# C126 other_gradients

*Why.* A launch with frozen layers, or with a loss that skips half of its tokens, reads the same data, starts at the
same loss and is faster. Its gradients are others: they are what all the work of a step is for.

*Rejected.* As open: first gradient norms of 2.31 and 0.4 of launches of one seed, although nothing changed that could
move them. Of two seeds where they differ by more than a half. Traces that show a loss over all tokens of a step on one
side, and over half of them on the other, whatever code did it.

*Accepted.* First norms that agree within a tenth, or within a half where there are two seeds or none is stated. The
precision, the model, the batch, the loss or the code is the changed axis. A norm that one side alone states. Norms of
other steps: of a launch that resumed, or of a log that begins later. A loss over fewer tokens on both sides, or of
another model or other data; a fused loss, whose rows no trace shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, MFU, RATE, I, Offense, PairCase, rule
from receipts.judging.side import FIRST, fewer_rows, first_norms, parted, rows_of_loss
from receipts.metrics import Launch

LOSSES = "measurement.loss.steps"
SEEDS = ("numerics.seed", "data.order_seed")
# What moves the first gradients, or the sums that their norm is made of.
LOSS = ("model.", "pattern", "dimensions", "data", "numerics.", "features.")
MOVES = (
    *("pattern", "dimensions", "routing", "precision", "code", "data", "model.", "numerics.", "optimizer", "adapters"),
    *("batch.global_batch", "batch.sequence_length", "features.", "inputs.", "patches", "wheels"),
    "path.witnessed.gemm",
)


@rule("C126", "other_gradients", I, on="pair", question=COMPARABLE, taints=(RATE, MFU))
def other_gradients(pair: PairCase) -> Iterator[Offense]:
    """First gradient norms, or tokens with a loss, that differ although nothing changed that moves them."""
    if pair.metric.taint not in (RATE, MFU):
        return
    sides = [[launch.parsed for launch in group] for group in (pair.group_a, pair.group_b)]
    shares = fewer_rows(*map(rows_of_loss, sides))
    if shares is not None and not any(axis.startswith(LOSS) for axis in pair.difference.axes):
        yield Offense(
            at="evidence",
            found=f"a loss over {shares[0]:.0%} of the tokens on A, over {shares[1]:.0%} on B",
            expected="a loss over as many",
            do="see what each side's loss leaves out; state it as a setting (features), or train both on all",
        )
    if any(axis.startswith(MOVES) for axis in pair.difference.axes):
        return
    if len({_begin(launch) for launch in (*pair.group_a, *pair.group_b)}) > 1:
        return
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
