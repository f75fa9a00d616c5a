"""# R124 evidence_contradicts

*Why.* Two layers are stated and one is built; the micro batch is doubled, and the tokens with it. The rate doubles, and
nothing in the receipt's arithmetic is wrong. The trace of the same launch shows the shapes that ran.

*Rejected.* An eager trace with shapes, of whole steps, that shows less work than is stated: fewer calls of attention
than layers times micro steps, over fewer tokens; look-ups of 4,096 tokens a step where 8,192 are stated; no micro
batch, sequence, number of heads, width, table or head as large as stated; multiplications of less than one forward
pass. As open: multiplications of less than a forward and two backward passes, where all weights are trained.

*Accepted.* More work than is stated: padding, evaluation, several heads of the loss, activations that are computed
again. What each rank owns: heads over the tensor degree, a part of the sequence, a part of the batch. What no trace
shows is no offense: compiled steps and graphs, other attention, layers of a pipeline's other stages, inputs that are
not looked up, blocks without attention, a model without a stack of layers. Where neither a loss over the vocabulary
shows nor a projection of the tokens to as many classes as the table has rows, its head is none of the multiplications
that are asked for. Steps that differ in tokens (`batch.ragged`): those of a trace may be short ones; as open below half
of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from receipts.judging.rule import ALL, COMPARABLE, Case, E, I, Offense, rule, runs_model
from receipts.metrics.degrees import CHIPS, CONTEXT, DATA, PIPELINE, TENSOR, batch_ways, degree, wanted
from receipts.metrics.flops import geometry_of
from receipts.metrics.flops.matmuls import least_flops_per_token
from receipts.receipt.patterns import BlockKind

MICRO, GLOBAL, ACCUMULATION = "batch.micro_batch", "batch.global_batch", "batch.accumulation"
LENGTH, TOKENS, RAGGED = "batch.sequence_length", "measurement.tokens_per_step", "batch.ragged"
DEPTH, HEADS, WIDTH, HIDDEN = "model.depth", "model.heads", "model.head_dim", "model.hidden"
VOCABULARY, ADAPTERS = "model.vocabulary", "numerics.adapters.kind"
PATTERN = "model.pattern"
STACK = (DEPTH, PATTERN, "model.ffn", "model.experts")
MAX_SHARE = 0.9  # of what is stated: a shifted target, and sequences that end early
MIN_SHARE = 0.5  # of a mean, in the few steps of a trace
PASSES = 3.0  # forward, and backward to activations and to weights
OWN, STEPS = "work.", "work.steps"


class Layout(NamedTuple):
    """What one rank has of a step, at the least: tokens, micro steps, and by how many ranks its tensors are divided."""

    tokens: float
    micro_steps: int
    tensor: int
    context: int
    pipeline: int


def _shown(case: Case) -> Iterator[tuple[str, Mapping[str, int]]]:
    """By place, the work that each listed trace shows."""
    for index, entry in enumerate(case.receipt.evidence or ()):
        numbers = {
            name.removeprefix(OWN): value
            for name, value in (entry.observed or {}).items()
            if name.startswith(OWN) and type(value) is int
        }
        if numbers.get("steps", 0) > 0:
            yield f"evidence[{index}].observed.{STEPS}", numbers


def needs(case: Case) -> Iterable[str]:
    """What a trace shows of a step has its counterpart in these; other rules ask for most of them anyway."""
    shown = {name for _, numbers in _shown(case) for name in numbers}
    if not shown:
        return
    yield from (MICRO, GLOBAL)
    if not case.get(RAGGED):
        yield LENGTH
    # A model of pictures, or without layers alike, has neither; who states a part of a stack states them all.
    if {"attention_calls", "tokens"} <= shown or any(case.get(name) for name in STACK):
        yield from (DEPTH, PATTERN)
    yield from (f"{CHIPS}|{DATA}", *wanted(case.lane))
    if "table_rows" in shown:
        yield VOCABULARY
    # Who states one width of attention states them all.
    if "attention_heads" in shown and (case.get("model.kv_heads") or case.get(WIDTH)) is not None:
        yield HEADS
        yield HIDDEN
        if case.get("model.kv_heads") is not None:
            yield WIDTH
    if "matmul_flops" in shown:
        yield ADAPTERS


def _layout(case: Case) -> Layout | None:
    """None where it is not stated how ranks divide a step."""
    whole, length, micro = case.get(GLOBAL), case.get(LENGTH), case.get(MICRO)
    ways = batch_ways(case.stated, case.lane)
    tensor, context, pipeline = (degree(case.stated, case.lane, name) for name in (TENSOR, CONTEXT, PIPELINE))
    if None in (whole, tensor, context, pipeline) or not ways:
        return None
    tokens = case.get(TOKENS)
    if not case.get(RAGGED) and length:
        tokens = min(whole * length, tokens or math.inf)
    if tokens is None or not (length or case.get(RAGGED)):
        return None
    steps = case.get(ACCUMULATION) or (whole // (micro * max(ways)) if micro else 1)
    return Layout(tokens / (max(ways) * (context or 1)), max(1, int(steps)), tensor or 1, context or 1, pipeline or 1)


@rule("R124", "evidence_contradicts", E, question=COMPARABLE, taints=(ALL,), needs=needs, applies=runs_model)
def evidence_contradicts(case: Case) -> Iterator[Offense]:
    """The work that a kept trace shows against the work that is stated."""
    layout = _layout(case)
    if layout is None:
        return
    for at, shown in _shown(case):
        fewer = [*_tokens(case, layout, shown)]
        if case.get(RAGGED):  # the steps of a trace have other tokens than the mean
            layout = layout._replace(tokens=max(shown.get("tokens", 0), 1) / shown["steps"])
        fewer += [*_depth(case, layout, shown), *_sizes(case, layout, shown)]
        yield from fewer
        if not fewer:
            yield from _multiplied(case, layout, shown, at)


def _less(at: str, found: str, expected: object) -> Offense:
    do = "state what ran; if all of it ran, keep a trace of whole steps in which all of it shows"
    return Offense(at=at, found=f"the trace shows {found}", expected=f"at least {expected}, as stated", do=do)


def _layers(case: Case) -> int:
    """Blocks with attention, by the pattern; 0 where that is not stated."""
    blocks = geometry_of(case.stated).blocks
    return blocks.get(BlockKind.ATTENTION, 0) if blocks is not None else 0


def _tokens(case: Case, layout: Layout, shown: Mapping[str, int]) -> Iterator[Offense]:
    if "tokens" not in shown:
        return
    steps, layers = shown["steps"], _layers(case)
    attended = shown.get("attention_tokens", 0) / layers if layers and layout.pipeline == 1 else 0
    carried = max(shown["tokens"], shown.get("loss_rows", 0), attended) / steps
    if carried < (MIN_SHARE if case.get(RAGGED) else MAX_SHARE) * layout.tokens:
        less = _less(
            TOKENS if case.get(TOKENS) is not None else GLOBAL,
            f"{carried:,.0f} tokens a step on a rank",
            f"{layout.tokens:,.0f}",
        )
        yield less._replace(level=I) if case.get(RAGGED) else less
    if carried < MAX_SHARE * layout.tokens or case.get(RAGGED):
        return
    micro, length = case.get(MICRO), case.get(LENGTH)
    whole = case.get(GLOBAL) * length * MAX_SHARE <= (case.get(TOKENS) or math.inf)
    if (
        micro is not None
        and whole
        and shown.get("micro_tokens", math.inf) * layout.context < MAX_SHARE * micro * length
    ):
        yield _less(MICRO, f"{shown['micro_tokens']:,} tokens in the largest micro batch", f"{micro} × {length:,}")
    elif whole and "sequence" in shown and shown["sequence"] * layout.context < MAX_SHARE * length:
        yield _less(LENGTH, f"sequences of {shown['sequence']:,}", f"{length:,}")


def _depth(case: Case, layout: Layout, shown: Mapping[str, int]) -> Iterator[Offense]:
    layers = _layers(case)
    if not layers or layout.pipeline > 1 or not {"attention_calls", "attention_tokens"} <= shown.keys():
        return
    calls, tokens = shown["attention_calls"] / shown["steps"], shown["attention_tokens"] / shown["steps"]
    # Fewer calls may take more tokens each, and layers of an encoder and a decoder take other tokens.
    if calls < MAX_SHARE * layers * layout.micro_steps and tokens < MAX_SHARE * layers * layout.tokens:
        few = f"{calls:,.4g} calls of attention a step, over {tokens:,.0f} tokens"
        yield _less(DEPTH, few, f"{layers} layers × {layout.micro_steps} micro steps")


def _sizes(case: Case, layout: Layout, shown: Mapping[str, int]) -> Iterator[Offense]:
    """The largest of each size that ran; of what ranks divide each has a part."""
    parts = layout.tensor * layout.context
    heads, width, hidden, micro = (case.get(name) for name in (HEADS, WIDTH, HIDDEN, MICRO))
    table = max(shown.get("table_rows", 0), shown.get("loss_classes", 0)) * layout.tensor
    if "table_rows" in shown and table < (case.get(VOCABULARY) or 0):
        yield _less(VOCABULARY, f"tables and heads of {table:,}", f"{case.get(VOCABULARY):,}")
    if not {"attention_heads", "attention_rows", "attention_width"} <= shown.keys():
        return
    across, count = shown["attention_width"] * parts, shown["attention_heads"] * parts
    if heads and count < heads:
        # Or they are folded into the batch.
        if micro and count * shown["attention_rows"] < heads * micro:
            yield _less(HEADS, f"{count} heads", heads)
    elif heads and width and across < heads * width:
        yield _less(WIDTH, f"heads that are {across // heads} wide on average", width)
    elif hidden and "table_width" in shown and max(shown["table_width"] * layout.tensor, across) < hidden:
        yield _less(HIDDEN, f"embeddings {shown['table_width']:,} wide, and attention {across:,}", f"{hidden:,}")


def _multiplied(case: Case, layout: Layout, shown: Mapping[str, int], at: str) -> Iterator[Offense]:
    """Multiplications of weights against the least that the stated model needs, where one process computed all."""
    if "matmul_flops" not in shown or case.get(CHIPS) != 1:
        return
    geometry = geometry_of(case.stated)
    headed = "loss_classes" in shown or shown.get("head_rows", 0) >= MAX_SHARE * layout.tokens * shown["steps"]
    if not headed and geometry.vocabulary:  # an encoder has no head over its vocabulary
        headless = replace(geometry, vocabulary=0, parameters_total=None, parameters_active=None)
        geometry = headless if shown.get("table_rows", 0) >= geometry.vocabulary else geometry
    flops, least = shown["matmul_flops"] / shown["steps"], least_flops_per_token(geometry)
    passes = flops / (least * layout.tokens) if least else PASSES
    if passes < MAX_SHARE:
        yield _less(at, f"{passes:.0%} of the multiplications of one forward pass", "all of them")
    elif passes < MAX_SHARE * PASSES and case.get(ADAPTERS) == "none" and not case.get("model.experts"):
        found = f"multiplications for {passes:.2f} passes over the stated weights"
        do = "state which weights are not trained (numerics.adapters), or the widths that ran"
        yield _less(at, found, "3, forward and backward")._replace(level=I, do=do)
