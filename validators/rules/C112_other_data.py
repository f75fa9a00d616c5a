"""# C112 other_data

*Why.* A missing tokenizer path fell back to a null tokenizer and mock data. Throughput looked plausible; the first
loss did not.

*Rejected.* The same dataset name with different digests. Real data on one side and synthetic data on the other. First
losses that differ by more than the lane's `loss_parity` although nothing changed that could move them; another micro
batch divides the same global batch differently, and its loss is the same. As open: first losses of 10.2 and 11.2 of two
seeds. Another seed draws other weights and other tokens, which moves the loss of guessing by a hundredth or two.

A digest, a kind or a first loss that only one side states leaves the question open: what is missing neither contradicts
nor proves anything. So do first losses that differ, where one side alone states a seed. A missing first loss is only
shown (W) where both sides name one dataset and one tokenizer and the number carries no effect: an outcome, or a rate
without its steps.

*Accepted.* The dataset or the tokenizer is itself the changed axis. Identities and first losses agree. Both sides drew
synthetic tokens without a seed: their first losses may differ. First losses of two seeds within 5 %. An outcome, where
one side failed before its first window closed and has no loss to show."""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words
from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, PairCase, W, rule
from receipts.judging.verdict import Level

_DATA = ("data.dataset", "data.tokenizer")
_SEEDS = ("numerics.seed", "data.order_seed")
_BY_SEED = 0.05  # share of the loss: what another draw of weights and tokens may move it by, with room
_MOVES_FIRST_LOSS = (
    "pattern",
    "dimensions",
    "routing",
    "precision",
    "code",
    "model.mtp_depth",
    "model.mtp_wiring",
    "model.tied_embeddings",
    "batch.global_batch",
    "batch.sequence_length",
    "numerics.parameter_dtype",
)


@rule("C112", "other_data", E, on="pair", question=COMPARABLE)
def other_data(pair: PairCase) -> Iterator[Offense]:
    """Data that differ although no data axis changed."""
    if any(axis in pair.difference.axes for axis in _DATA):
        return
    for path in ("data.dataset_digest", "data.kind"):
        a, b = pair.values(path)
        if a is not None and b is not None and a != b:
            yield _offense(path, f"{in_words(a)} on A, {in_words(b)} on B")
        elif (a is None) != (b is None):
            yield _one_sided(path, "A" if a is None else "B")
    a, b = pair.values("measurement.loss.first")
    if any(axis in pair.difference.axes for axis in _MOVES_FIRST_LOSS):
        return
    seeds = [pair.values(path) for path in _SEEDS]
    other_seed = any(one != other and None not in (one, other) for one, other in seeds)
    seed_a, seed_b = seeds[0]
    if pair.values("data.kind") == ("synthetic", "synthetic") and seed_a is None and seed_b is None:
        return  # made-up tokens without a seed are drawn anew: their first losses tell nothing of the data's name
    if any(value is not None for value in pair.values("run.resumed_from")):
        return
    parity = max(pair.lane.loss_parity, _BY_SEED) if other_seed else pair.lane.loss_parity
    if a is None or b is None:
        if other_seed:
            return
        silent = pair.a if a is None else pair.b
        outcome = pair.metric.summary == "outcome"
        if a is not b and not (outcome and _ended_before_a_loss(silent)):
            # Without an effect nothing is accepted, so that no loss is worth dropping.
            idle = outcome or (pair.metric.taint in (RATE, MFU) and not silent.launch.durations)
            named = all(None not in pair.values(path) for path in _DATA)
            yield _one_sided("measurement.loss.first", "A" if a is None else "B", W if idle and named else I)
    elif abs(a - b) > parity * max(abs(a), abs(b)):
        # Another seed moves the loss, and one that one side alone states may be another.
        unsure = any(one != other for one, other in seeds)
        yield _offense("measurement.loss.first", f"{a:g} on A, {b:g} on B", I if unsure else E)


def _ended_before_a_loss(side: Case) -> bool:
    return side.get("run.outcome") != "ok" and side.get("failure.phase") in ("startup", "compile", "first_window")


def _offense(path: str, found: str, level: Level = E) -> Offense:
    return Offense(
        at=path,
        found=found,
        expected="the same data on both sides",
        do="state the dataset, its digest and the tokenizer of both; a null tokenizer is a silent fallback",
        level=level,
    )


def _one_sided(path: str, side: str, level: Level = I) -> Offense:
    return Offense(
        at=path,
        found=f"not stated on {side}",
        expected="the same data on both sides, shown alike",
        do=f"state {path} on {side}",
        level=level,
    )
