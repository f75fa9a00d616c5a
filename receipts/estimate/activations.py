"""Activations of a pipeline stage: what is stored until the backward pass, what one block works with, and the loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from receipts.estimate.recompute import FULL, drops, survives
from receipts.estimate.routing import RoutingScratch
from receipts.estimate.saved_mixers import selection_scratch
from receipts.estimate.saved_tensors import routing_of, saved_tensors, stream_bytes
from receipts.estimate.setup import Layer, Setup
from receipts.receipt.alphabets import BlockKind

# Rows of logits that a chunked cross-entropy makes at once (Liger-Kernel, ops/fused_linear_cross_entropy.py).
_LOSS_CHUNK = 1024
_PRESSED_LOGIT = 4.0  # bytes: one fp32 array, or 16-bit logits and their gradient


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes on a rank. ``stored`` between forward and backward, ``working`` while one block's backward runs.

    ``loss`` while the loss is computed. The same for features (MTP depths) and for routing scratch.
    """

    stored: float = 0.0
    working: float = 0.0
    loss: float = 0.0
    features_stored: float = 0.0
    features_loss: float = 0.0
    routing_stored: float = 0.0
    routing_working: float = 0.0


def in_flight(setup: Setup, stage: int) -> float:
    """Micro batches whose activations a stage holds at once.

    One forward, one backward: the stages behind it and itself (Narayanan et al. 2021, arXiv:2104.04473, section 2.2).
    Interleaved, 2 · (p − stage − 1) + (v − 1) · p chunks of 1/v are forward before the first runs back (Megatron-Core,
    pipeline_parallel/schedules.py): on the first stage 1 + (p − 1) / (p · v) times p (Korthikanti et al. 2022, 4.2.3).
    """
    ways, virtual = setup.layout.pipeline, setup.layout.virtual
    waiting = float(ways - stage)
    if virtual > 1:
        waiting = (2 * (ways - stage - 1) + (virtual - 1) * ways + 1) / virtual
    return min(waiting, float(max(1, setup.batch.accumulation)))


def activations(setup: Setup, which: Sequence[Layer], stage: int, *, last: bool) -> Activations:
    """The activations of one stage.

    Serving keeps one layer's working set of a pass, and the logits of one position a sequence: a prompt longer than a
    pass is computed in chunks (Agrawal et al. 2023, arXiv:2308.16369, section 4.1).
    """
    count = Counter(kind for layer in which for kind in layer)
    at_once = setup.one_pass
    working = max((_working(at_once, kind) for kind in count), default=0.0)
    scratch = routing_of(at_once) if BlockKind.EXPERT in count and setup.model.experts else None
    if setup.serving:
        logits = setup.batch.micro * setup.model.vocabulary / setup.layout.tensor * 4.0
        return Activations(0.0, working, logits if last else 0.0, routing_working=scratch.total if scratch else 0.0)
    flight = in_flight(setup, stage)
    stored = sum(number * survives(setup.recompute, saved_tensors(setup, kind)) for kind, number in count.items())
    if setup.pressed and setup.recompute >= FULL:
        stored = sum(survives(setup.recompute, saved_tensors(setup, layer[0])) for layer in which)
    if last:
        # The final norm's input and output feed the head.
        stored += 2 * stream_bytes(setup) / flight
    loss = _loss(setup) if last else 0.0
    depth, feature = (setup.model.mtp_depth, _feature(setup)) if last else (0, 0.0)
    return Activations(
        stored=stored * flight,
        working=working,
        loss=loss,
        features_stored=depth * feature,
        features_loss=depth * _kept_logits(setup),
        routing_stored=_routing_stored(setup, scratch, count[BlockKind.EXPERT]) * flight,
        routing_working=scratch.total if scratch else 0.0,
    )


def _routing_stored(setup: Setup, scratch: RoutingScratch | None, blocks: int) -> float:
    """Receive buffers are the experts' input and wait for the backward pass; combine buffers are freed."""
    if scratch is None:
        return 0.0
    return blocks * (scratch.counts + (0.0 if drops(setup.recompute, "receive") else scratch.receive))


def _working(setup: Setup, kind: BlockKind) -> float:
    """While a block's backward runs: gradients of the tensors that it kept, and the tensors themselves if recomputed.

    Of the gradients no more than the two widest live together with that of the residual stream.
    """
    saved = saved_tensors(setup, kind)
    chooses = kind is BlockKind.SPARSE_ATTENTION
    scratch = selection_scratch(setup, training=not setup.serving) if chooses else 0.0
    gradients = sum(sorted((item.bytes for item in saved), reverse=True)[:2]) + stream_bytes(setup)
    if setup.serving:
        return sum(item.bytes for item in saved) + scratch
    recomputed = sum(item.bytes for item in saved) - survives(setup.recompute, saved)
    return gradients + scratch + (recomputed if setup.recompute else 0.0)


def _loss(setup: Setup) -> float:
    """Logits at the loss: tokens · vocabulary / tensor, in the compute type, in fp32, and the gradient.

    Vocabulary-parallel cross-entropy keeps its rank's part only (Shoeybi et al. 2019, section 3). A chunked one keeps
    the hidden states' gradient and a chunk of logits (Hsu et al. 2024, Liger Kernel, arXiv:2410.10989, section 3.2).
    """
    width = setup.model.vocabulary / setup.layout.tensor
    logit = _PRESSED_LOGIT if setup.pressed else setup.framework.loss_bytes
    if setup.chunked_loss:
        return min(_LOSS_CHUNK, setup.tokens) * width * logit + stream_bytes(setup)
    return setup.tokens * width * logit


def _kept_logits(setup: Setup) -> float:
    """The fp32 softmax that a further head keeps until its backward."""
    return 0.0 if setup.chunked_loss else setup.tokens * setup.model.vocabulary / setup.layout.tensor * 4.0


def _feature(setup: Setup) -> float:
    """One MTP depth: its layers, its two norms and the joined input of its projection (arXiv:2412.19437, 2.2)."""
    layers = sum(survives(setup.recompute, saved_tensors(setup, kind)) for layer in setup.model.mtp for kind in layer)
    joined = 0.0 if setup.recompute >= FULL else 4 * stream_bytes(setup)
    return layers + joined
