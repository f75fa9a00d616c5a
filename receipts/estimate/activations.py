"""Activations of a pipeline stage: what is stored until the backward pass, what one block works with, and the loss.

A recompute policy, read from what people write, decides which saved tensors a block keeps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from receipts.estimate.saved_tensors import (
    SavedTensor,
    routing_of,
    saved_tensors,
    selection_scratch,
    stream_bytes,
)
from receipts.estimate.setup import Layer, Setup
from receipts.receipt.patterns import BlockKind

NONE: frozenset[str] = frozenset()
FULL = frozenset({"full"})
# Every block input lies in host memory between forward and backward.
INPUT_OFFLOADED = "input offloaded"
_INPUTS = {"decoder_layer_input", "layer_input", "block_input"}
# Modules of Megatron-Core's `recompute_modules`, MaxText's policies and everyday words, and the tensors they drop.
# core_attn: section 5 of arXiv:2205.05198 (the scores). moe_act, mlp, layernorm: transformer_config.py.
_DROPS: dict[str, tuple[str, ...]] = {
    # Sparse attention chooses its keys in there.
    "core_attn": ("scores", "chosen keys", "index queries and keys"),
    "mla_up_proj": ("query, key, value",),
    "layernorm": ("norm output",),
    "moe_act": ("expert activation",),
    "shared_experts": ("shared expert hidden", "shared expert activation"),
    "moe": ("expert hidden", "expert activation", "shared expert hidden", "shared expert activation", "receive"),
    "mlp": ("mlp hidden", "mlp activation"),
    "mamba": ("projections", "rotary angles", "forget gate", "scan output", "gated output", "states"),
    "activations": (
        "norm output", "mlp activation", "expert activation", "shared expert activation", "gated output",
    ),
}  # fmt: skip
_WORDS = {
    "core_attention": "core_attn",
    "attention": "core_attn",
    "core attention": "core_attn",
    "layer_norm": "layernorm",
    "norm": "layernorm",
    "mlp_act": "activations",
    "activation": "activations",
    "minimal": "activations",
    "save_dots": "activations",
    "shared_expert": "shared_experts",
}


def policy_of(text: str) -> frozenset[str] | None:
    """The policy that a text means: ``none``, ``full``, ``selective: moe_act mlp``; None if it cannot be told.

    ``selective`` alone is the paper's: the scores of attention. ``grad checkpoint`` is full. Tensors that a policy
    offloads to the host take no memory of the chip: ``custom, offload decoder_layer_input query_proj`` and
    ``minimal_offloaded`` keep what ``full`` keeps, and without ``decoder_layer_input`` its input (MaxText,
    configs/base.yml, remat_policy).
    """
    lowered = text.strip().lower()
    if lowered in ("none", "no", "off", "false"):
        return NONE
    words = [word for word in re.split(r"[^a-z_]+", lowered.replace("layer norm", "layernorm")) if word]
    if any("offload" in word for word in words):
        return FULL | ({INPUT_OFFLOADED} if _INPUTS & set(words) else set())
    modules = {_WORDS.get(word, word) for word in words}
    named = frozenset(modules & _DROPS.keys())
    if named:
        return named
    if {"full", "uniform", "checkpoint", "checkpointing"} & modules:
        return FULL
    # Of torchtitan, `selective: op` and `selective: 2` keep every second product, or layer.
    return frozenset({"core_attn"}) if lowered == "selective" else None


def survives(policy: frozenset[str], saved: Iterable[SavedTensor]) -> float:
    """Bytes that a block keeps under a policy. A fully recomputed block keeps its input (arXiv:2205.05198, 5)."""
    if policy >= FULL:
        kept = () if INPUT_OFFLOADED in policy else ("block input",)
        return sum(item.bytes for item in saved if item.name in kept)
    dropped = {name for module in policy for name in _DROPS.get(module, ())}
    return sum(item.bytes for item in saved if item.name not in dropped)


def drops(policy: frozenset[str], name: str) -> bool:
    """Whether a policy recomputes the tensor of that name."""
    return policy >= FULL or any(name in _DROPS.get(module, ()) for module in policy)


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
    depth = setup.model.mtp_depth if last else 0
    # An MTP depth: its layers, its two norms and the joined input of its projection (arXiv:2412.19437, 2.2).
    mtp = sum(survives(setup.recompute, saved_tensors(setup, kind)) for layer in setup.model.mtp for kind in layer)
    feature = mtp + (0.0 if setup.recompute >= FULL else 4 * stream_bytes(setup))
    # Receive buffers are the experts' input and wait for the backward pass; combine buffers are freed.
    routed = 0.0
    if scratch is not None:
        receive = 0.0 if drops(setup.recompute, "receive") else scratch.receive
        routed = count[BlockKind.EXPERT] * (scratch.counts + receive)
    # The fp32 softmax that a further head keeps until its backward.
    return Activations(
        stored=stored * flight,
        working=working,
        loss=loss,
        features_stored=depth * feature,
        features_loss=depth
        * (0.0 if setup.chunked_loss else setup.tokens * setup.model.vocabulary / setup.layout.tensor * 4.0),
        routing_stored=routed * flight,
        routing_working=scratch.total if scratch else 0.0,
    )


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
