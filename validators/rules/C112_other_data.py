"""# C112 other_data

*Why.* A missing tokenizer path fell back to a null tokenizer and mock data. Throughput looked plausible; the first
loss did not.

*Rejected.* The same dataset name with different digests. Real data on one side and synthetic data on the other. First
losses of launches of one seed that differ by more than the lane's `loss_parity` although nothing changed that could
move them; another micro batch divides the same global batch differently, and its loss is the same. As open, where no
two launches share a seed: first losses of 10.2 and 11.2 of two seeds. Another seed draws other weights and other
tokens, which moves the loss of guessing by a hundredth or two.

Shown (W): first losses of one stated seed that are within that parity and yet not the same. One set of weights on one
set of tokens gives one first loss, up to the rounding of its type: another one is the fingerprint of other weights or
tokens. Tolerance: 1e-4 of the loss in fp32 and fp64, 1e-3 in sixteen bits and TF32, 5e-3 in fewer, and the digits that
are printed. Another layout draws its random numbers on other ranks, and is not held to it.

A digest, a kind or a first loss that only one side states leaves the question open: what is missing neither contradicts
nor proves anything. So do first losses that differ, where one side alone states a seed. A missing first loss is only
shown (W) where both sides name one dataset and one tokenizer and the number carries no effect: an outcome, or a rate
without its steps.

*Accepted.* The dataset or the tokenizer is itself the changed axis. Identities and first losses agree, of every two
launches of one seed, in whatever order they were named. Losses of other steps: an excerpt that begins at step 1,000
shows no first loss, and one of step 1 is never held against it. Both sides drew synthetic tokens without a seed: their
first losses may differ. First losses of two seeds within 5 %. An outcome, where one side failed before its first window
closed and has no loss to show."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from receipts.axes import in_words
from receipts.judging.rule import COMPARABLE, MFU, RATE, Case, E, I, Offense, PairCase, W, rule
from receipts.judging.verdict import Level
from receipts.metrics import Launch
from receipts.receipt.document import UNFAILED
from receipts.stats.rounding import half_of

_DATA = ("data.dataset", "data.tokenizer")
_IDENTITY = ("data.dataset", "data.dataset_digest", "data.tokenizer")
_FIRST = "measurement.loss.first"
_SEEDS = ("numerics.seed", "data.order_seed")
_BY_SEED = 0.05  # share of the loss: what another draw of weights and tokens may move it by, with room
_FIRST_STEPS = 10  # until here a loss is that of the data; where a setting of the training changed, at the first alone
_SAME = MappingProxyType({"fp64": 1e-4, "fp32": 1e-4, "tf32": 1e-3, "bf16": 1e-3, "fp16": 1e-3})
_SAME_IN_FEWER_BITS = 5e-3
_MOVES_LATER = ("optimizer", "adapters", "numerics.")
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


# What draws the random numbers of weights and tokens elsewhere.
_DRAWN_ELSEWHERE = ("topology", "parallelism.", "batch.", "hardware.", "platform.", "wheels")


class FirstLosses(NamedTuple):
    """The losses of a launch's first steps, and the seeds under which it drew weights and tokens."""

    seeds: tuple[Any, ...]
    at: dict[int, float]


class TwoLosses(NamedTuple):
    """The losses of one step of a launch of A and one of B, and both values of each seed."""

    a: float
    b: float
    step: int
    seeds: tuple[tuple[Any, Any], ...]

    @property
    def apart(self) -> float:
        """How far apart they are, as a share of the larger."""
        return abs(self.a - self.b) / max(abs(self.a), abs(self.b)) if self.a != self.b else 0.0


@rule("C112", "other_data", E, on="pair", question=COMPARABLE)
def other_data(pair: PairCase) -> Iterator[Offense]:
    """Data that differ although no data axis changed."""
    if any(axis in pair.difference.axes for axis in _DATA):
        return
    for path in ("data.dataset_digest", "data.kind"):
        a, b = pair.values(path)
        if a is not None and b is not None and a != b:
            yield _offense(pair, path, f"{in_words(a)} on A, {in_words(b)} on B")
        elif (a is None) != (b is None):
            yield _one_sided(path, "A" if a is None else "B")
    if any(axis in _MOVES_FIRST_LOSS or axis.startswith("inputs.") for axis in pair.difference.axes):
        return
    if any(value is not None for value in pair.values("run.resumed_from")):
        return
    last = 1 if any(axis.startswith(_MOVES_LATER) for axis in pair.difference.axes) else _FIRST_STEPS
    sides = pair.group_a or (pair.a.launch,), pair.group_b or (pair.b.launch,)
    a, b = ([item for launch in side if (item := _first_losses(launch, last)).at] for side in sides)
    if pair.values("data.kind") == ("synthetic", "synthetic") and all(item.seeds[0] is None for item in (*a, *b)):
        return  # made-up tokens without a seed are drawn anew: their first losses tell nothing of the data's name
    if a and b:
        yield from _contradiction(pair, a, b)
    elif a or b:
        yield from _silent(pair, "B" if a else "A")


def _contradiction(pair: PairCase, a: list[FirstLosses], b: list[FirstLosses]) -> Iterator[Offense]:
    """Losses of one step that differ: of launches of one seed each two, else their means over all launches."""
    every = [
        TwoLosses(one.at[step], other.at[step], step, tuple(zip(one.seeds, other.seeds, strict=True)))
        for one, other in product(a, b)
        if (step := min(one.at.keys() & other.at, default=0))
    ]
    if not every:
        yield _one_sided(_FIRST, "the steps that the other side shows")
        return
    compared = [item for item in every if all(one == other for one, other in item.seeds)]
    level, parity, of = E, pair.lane.loss_parity, " at step {} of one seed"
    if not compared:
        level, of = I, ", and no two launches share a seed"
        if not any((one is None) != (other is None) for item in every for one, other in item.seeds):
            parity = max(parity, _BY_SEED)
        compared = [TwoLosses(fmean(item.a for item in every), fmean(item.b for item in every), 0, ())]
    worst = max(compared, key=lambda item: (item.apart, item[:3]))
    if worst.apart > parity:
        yield _offense(pair, _FIRST, f"{worst.a:g} on A, {worst.b:g} on B{of.format(worst.step)}", level)
    elif level == E and not any(axis.startswith(_DRAWN_ELSEWHERE) for axis in pair.difference.axes):
        yield from _fingerprint(pair, [item for item in compared if item.step == 1 and item.seeds[0][0] is not None])


def _fingerprint(pair: PairCase, compared: list[TwoLosses]) -> Iterator[Offense]:
    """First losses of one stated seed that are near each other, and not the same."""
    dtypes = {dtype for dtype in pair.values("numerics.compute_dtype") if dtype is not None}
    share = max((_SAME.get(dtype, _SAME_IN_FEWER_BITS) for dtype in dtypes), default=_SAME_IN_FEWER_BITS)
    apart = [
        item
        for item in compared
        if abs(item.a - item.b) > share * max(abs(item.a), abs(item.b)) + half_of(item.a) + half_of(item.b)
    ]
    if apart:
        worst = max(apart, key=lambda item: (item.apart, item[:2]))
        yield Offense(
            at=_FIRST,
            found=f"{worst.a:g} on A, {worst.b:g} on B at step 1 of one seed",
            expected=f"one first loss, within {share:.2%}: the same weights on the same tokens",
            do="see what each side drew: another initialization, another order of the data, another tokenizer",
            level=W,
        )


def _first_losses(launch: Launch, last: int) -> FirstLosses:
    """The losses of the first steps, counted from 1; none of a log that begins later, and none is made up."""
    stated = launch.stated
    steps, values = stated.get("measurement.loss.steps") or (), stated.get("measurement.loss.values") or ()
    whole = len(steps) == len(values)  # of a series that lost an entry, nobody knows which
    begins = steps[0] if steps and whole else stated.get("run.start_step") or 0
    shift = 1 if begins == 0 else 0  # programs count from 0 or from 1
    at = {step + shift: value for step, value in zip(steps, values, strict=True)} if whole else {}
    if (first := stated.get(_FIRST)) is not None:
        at[begins + shift] = first
    seeds = tuple(stated.get(path) for path in _SEEDS)
    return FirstLosses(seeds, {step: value for step, value in at.items() if step <= last})


def _silent(pair: PairCase, side: str) -> Iterator[Offense]:
    """A first loss that one side does not show."""
    seeds = [pair.values(path) for path in _SEEDS]
    if any(one != other and None not in (one, other) for one, other in seeds):
        return
    silent = pair.a if side == "A" else pair.b
    outcome = pair.metric.summary == "outcome"
    if outcome and _ended_before_a_loss(silent):
        return
    # Without an effect nothing is accepted, so that no loss is worth dropping.
    idle = outcome or (pair.metric.taint in (RATE, MFU) and not silent.launch.durations)
    named = all(None not in pair.values(path) for path in _DATA)
    yield _one_sided(_FIRST, side, W if idle and named else I)


def _ended_before_a_loss(side: Case) -> bool:
    early = side.get("failure.phase") in ("startup", "compile", "first_window")
    return early and side.get("run.outcome") not in UNFAILED


def _offense(pair: PairCase, path: str, found: str, level: Level = E) -> Offense:
    unstated = [item for item in _IDENTITY if None in pair.values(item)]
    return Offense(
        at=path,
        found=found,
        expected="the same data on both sides",
        do=f"state {' and '.join(unstated)} of both; a null tokenizer is a silent fallback"
        if unstated
        else "see what each side really read: a null tokenizer, or mock data, is a silent fallback",
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
