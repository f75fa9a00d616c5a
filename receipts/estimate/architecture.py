"""The model's part of a setup: layers from the pattern or the family, widths, and what Mamba leaves to its defaults.

Widths that a plan states and no block of its stack has are reported, or unknown where they may be a block of their
own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from receipts.estimate.inputs import LATENT, OFF, EstimateInputs
from receipts.estimate.setup import Architecture, Layer
from receipts.estimate.weights import parameters_total
from receipts.metrics.flops import Geometry, geometry_of
from receipts.metrics.flops.geometry import (
    INDEXER,
    INDEXER_LOSS,
    LATENT_WIDTHS,
    MIMO,
    MIMO_RANK,
    RECURRENCE,
    indexer_of,
    is_latent,
    is_mamba3,
    latent_of,
    mamba3_of,
    mixes_layers,
    recurrence_of,
    sparse_layers,
)
from receipts.receipt.patterns import ALPHABETS, ATTENDING, MAX_DEPTH, STATEFUL, BlockKind, Pattern, stated_pattern

# Mamba-2's own defaults: Dao and Gu 2024, arXiv:2405.21060; mamba_ssm, modules/mamba2.py (expand 2, headdim 64).
_EXPAND = 2
_HEAD = 64
_STATE = 128
_HEAD_WIDTH = "features.mamba_head_dim"
_COUNTED = re.compile(r"mamba[-_ ]?[23]|mimo|m2rnn|(?<![a-z])rnn|^mamba$")  # variants that are counted as what they are
# The width of a head where nothing tells it: that of most models since Llama (Touvron et al. 2023, arXiv:2302.13971).
_ATTENTION_HEAD = 128


def architecture(facts: EstimateInputs) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture, and what of it has no formula here (it is then counted as the block that it is nearest to)."""
    geometry = geometry_of(facts.stated)
    main, mtp = _layers(facts, geometry)
    kinds = {kind for layer in (*main, *mtp) for kind in layer}
    hidden = facts.need("model.hidden")
    model = Architecture(
        hidden=hidden,
        layers=main,
        vocabulary=facts.need("model.vocabulary"),
        mtp=mtp,
        mtp_depth=_laid_out(facts, "model.mtp_depth", geometry.mtp_depth or 0),
        tied=bool(geometry.tied_embeddings),
    )
    if geometry.tied_embeddings is None:
        facts.assume("model.tied_embeddings", value=False, because="the larger of the two")
    if geometry.mtp_depth is None:
        facts.assume("model.mtp_depth", 0, "a model without stated MTP heads")
    if kinds & ATTENDING:
        model = _with_attention(facts, model)
    if BlockKind.MLP in kinds:
        model = replace(model, ffn=facts.need("model.ffn"))
    if BlockKind.EXPERT in kinds:
        width = facts.stated.get("model.expert_ffn")
        if width is None and facts.stated.get("model.ffn") is not None and facts.stated.get("model.pattern") is None:
            facts.assume(
                "model.expert_ffn", int(facts.stated["model.ffn"]), "the one feed-forward width that is stated"
            )
            width = facts.stated["model.ffn"]
        factor = facts.stated.get("model.capacity_factor")
        if factor is None:
            facts.assume("model.capacity_factor", "none", "dropless routing: no row is padded, none is dropped")
        model = replace(
            model,
            experts=facts.need("model.experts"),
            top_k=facts.need("model.top_k"),
            expert_ffn=int(width) if width is not None else facts.need("model.expert_ffn"),
            shared_ffn=facts.take("model.shared_expert_ffn", 0, "no shared expert is stated"),
            capacity_factor=factor,
        )
    if kinds & STATEFUL:
        model = _with_states(facts, model, kinds)
    if kinds & {BlockKind.MLP, BlockKind.EXPERT}:
        model = replace(model, projections=_projections(facts, model))
    return model, _uncounted(facts, kinds)


def _layers(facts: EstimateInputs, geometry: Geometry) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Layers in order. Without a pattern every layer is attention and a feed-forward, or experts."""
    depth = _laid_out(facts, "model.depth", facts.need("model.depth"))
    pattern = stated_pattern(facts.stated)
    if isinstance(pattern, Pattern):
        table = ALPHABETS[pattern.alphabet].letters
        blocks = [tuple(table[letter] for letter in group) for group in pattern.blocks]
        mtp = tuple(tuple(table[letter] for letter in group) for group in pattern.mtp)
        main = tuple(blocks[index % len(blocks)] for index in range(depth))
        return _selecting(facts, main), mtp or main[-1:]
    if pattern is not None:
        facts.need(f"model.pattern ({pattern[0].what})")
    elif geometry.family in ("hybrid", "ssm"):
        facts.need("model.pattern")
    if geometry.family is None and geometry.experts is None:
        facts.assume("model.family", "dense", "no experts are stated")
    has_experts = geometry.family == "moe" or (geometry.experts or 0) > 1
    layer: Layer = (BlockKind.ATTENTION, BlockKind.EXPERT if has_experts else BlockKind.MLP)
    return _selecting(facts, (layer,) * depth), (layer,)


def _selecting(facts: EstimateInputs, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers with those of sparse attention among them: the plain ones are spread evenly, the first one first."""
    attending = [index for index, layer in enumerate(layers) if BlockKind.ATTENTION in layer]
    sparse = sparse_layers(facts.stated, len(attending))
    plain = len(attending) - sparse
    chosen = {index for rank, index in enumerate(attending) if rank * plain % len(attending) >= plain}
    swap = {BlockKind.ATTENTION: BlockKind.SPARSE_ATTENTION}
    return tuple(
        tuple(swap.get(kind, kind) for kind in layer) if index in chosen else layer
        for index, layer in enumerate(layers)
    )


def _laid_out(facts: EstimateInputs, leaf: str, depth: int) -> int:
    """A depth whose blocks are laid out one by one; a depth is whatever somebody wrote, and 0 where it is absurd."""
    if depth <= MAX_DEPTH:
        return depth
    facts.need(f"{leaf} (no more than {MAX_DEPTH:,} are estimated)")
    return 0


def _with_attention(facts: EstimateInputs, model: Architecture) -> Architecture:
    heads = facts.stated.get("model.heads")
    if heads is None and model.hidden:
        wide = int(facts.stated.get("model.head_dim") or _ATTENTION_HEAD)
        heads = max(1, model.hidden // wide)
        facts.assume("model.heads", heads, f"as many heads of {wide} as the hidden width has room for")
    heads = int(heads or 1)
    if any(BlockKind.SPARSE_ATTENTION in layer for layer in (*model.layers, *model.mtp)):
        indexer = indexer_of(facts.stated)
        if indexer is not None and not facts.word(*INDEXER_LOSS):
            facts.assume(INDEXER_LOSS[0], "trained", "a loss of its own trains an indexer, and what that needs is kept")
        model = replace(model, indexer=indexer)
    if (latent := latent_of(facts.stated)) is not None:
        return replace(model, heads=heads, kv_heads=heads, head_dim=latent.nope + latent.rope, latent=latent)
    kv_heads = facts.take("model.kv_heads", heads, "as many as query heads, the larger cache and projection")
    head_dim = facts.take(
        "model.head_dim", model.hidden // max(1, heads), "hidden width over heads (Vaswani et al. 2017)"
    )
    return replace(model, heads=heads, kv_heads=kv_heads, head_dim=head_dim)


def _with_states(facts: EstimateInputs, model: Architecture, kinds: set[BlockKind]) -> Architecture:
    inner = _EXPAND * model.hidden
    heads = facts.take("model.ssm_heads", max(1, inner // _HEAD), "twice the hidden width in heads of 64, as Mamba-2's")
    if (width := facts.word(_HEAD_WIDTH)).isdigit() and int(width):
        inner = heads * int(width)
    else:
        facts.assume(_HEAD_WIDTH, inner // max(1, heads), "an inner width of twice the hidden one, Mamba-2's default")
    variant = facts.word("model.ssm_variant")
    mamba3 = mamba3_of(facts.stated)
    if mamba3 is not None and "features.mimo_rank" not in facts.stated and str(mamba3.rank) not in variant:
        facts.assume(MIMO_RANK, mamba3.rank, "mamba_ssm's default")
    rnn = recurrence_of(facts.stated) if BlockKind.RECURRENT in kinds else None
    if BlockKind.RECURRENT in kinds and rnn is None:
        facts.assume("model.ssm_variant", f"{variant or 'unstated'}, R as the Mamba block", "NeMo builds it as one")
    if rnn is not None:
        for path, value in zip(RECURRENCE, rnn, strict=True):
            facts.take(path, value, "as the code of M2RNN sizes it from the hidden width")
    return replace(
        model,
        ssm_inner=inner,
        ssm_heads=heads,
        ssm_state=facts.take("model.ssm_state", _STATE, "Mamba-2's default"),
        ssm_groups=facts.take("model.ssm_groups", 1, "Mamba-2's default"),
        mamba3=mamba3,
        recurrence=rnn,
    )


def _projections(facts: EstimateInputs, model: Architecture) -> int:
    """Matrices of a feed-forward. Where they are not stated but the total is, the one that comes nearer to it."""
    stated = facts.stated.get("model.ffn_projections")
    if stated is not None:
        return int(stated)
    total = facts.stated.get("model.parameters_total")
    if total is None or facts.missing:
        facts.assume("model.ffn_projections", 3, "gated feed-forwards (Shazeer 2020, arXiv:2002.05202)")
        return 3
    near = min((2, 3), key=lambda ways: abs(parameters_total(replace(model, projections=ways)) - total))
    facts.assume("model.ffn_projections", near, f"it comes nearest to the {total:,} parameters that are stated")
    return near


def _uncounted(facts: EstimateInputs, kinds: set[BlockKind]) -> tuple[str, ...]:
    uncounted = []
    if is_latent(facts.stated) and latent_of(facts.stated) is None:
        cache = "" if all(facts.word(path).isdigit() for path in LATENT) else " and its cache"
        widths = ", ".join(paths[0] for paths in LATENT_WIDTHS)
        uncounted.append(f"sparse or latent attention{cache} is counted as full attention; state {widths}")
    if BlockKind.SPARSE_ATTENTION in kinds and indexer_of(facts.stated) is None:
        widths = ", ".join(paths[0] for paths in INDEXER)
        uncounted.append(f"sparse attention is counted without its indexer, of keys and scores; state {widths}")
    if BlockKind.DELTA in kinds:
        uncounted.append("a gated delta net is counted as a Mamba block")
    variant = facts.word("model.ssm_variant")
    if kinds & STATEFUL and is_mamba3(facts.stated) and mamba3_of(facts.stated) is None:
        uncounted.append(f"Mamba-3 without MIMO is counted as Mamba-2; state {MIMO[0]} where it has MIMO")
    elif kinds & STATEFUL and variant not in OFF and not _COUNTED.search(variant):
        uncounted.append(f"{variant} is counted as Mamba-2")
    if mixes_layers(facts.stated):
        uncounted.append("dense and expert layers take turns, and every layer is counted as one of experts")
    return tuple(uncounted)


SAME_MODEL = 0.10  # what lanes tolerate of an estimate; biases and learned positions are far less
_EXPERT = frozenset({BlockKind.EXPERT})
# Widths that make parameters of their own, and the kinds of block that have them.
_BANKS: Mapping[str, frozenset[BlockKind]] = MappingProxyType(
    {
        "model.ffn": frozenset({BlockKind.MLP}),
        "model.experts": _EXPERT,
        "model.expert_ffn": _EXPERT,
        "model.shared_expert_ffn": _EXPERT,
    }
)
# What programs print of every model, whatever it is made of.
_PRINTED: Mapping[str, frozenset[BlockKind]] = MappingProxyType(
    {
        "model.heads": ATTENDING,
        "model.kv_heads": ATTENDING,
        "model.head_dim": ATTENDING,
        "model.ssm_heads": STATEFUL,
        "model.ssm_state": STATEFUL,
        "parallelism.expert": _EXPERT,
    }
)

_COUNTS = ("model.experts", "parallelism.expert")  # one of them is none


def idle(facts: EstimateInputs, model: Architecture) -> Iterator[str]:
    """What leaves the answer unknown; what does not is assumed to take no bytes.

    A pattern whose alphabet has a letter for such a block says by its absence that there is none; so does a number of
    parameters that the other widths make. The letters of NAM have None for a feed-forward.
    """
    for path in ("model.kv_heads", "model.head_dim"):
        if model.latent is not None and path in facts.stated:
            facts.assume(path, "no bytes", "latent attention has widths of its own")
    kinds = {kind for layer in (*model.layers, *model.mtp * bool(model.mtp_depth)) for kind in layer}
    pattern = stated_pattern(facts.stated)
    letters = set(ALPHABETS[pattern.alphabet].letters.values()) if isinstance(pattern, Pattern) else set()
    for path, carriers in {**_BANKS, **_PRINTED}.items():
        value = int(facts.stated.get(path) or 0)
        if carriers & kinds or value <= (path in _COUNTS) or (path == "model.ffn" and value == model.expert_ffn):
            continue
        named = " or ".join(sorted(carriers))
        # The pattern's letters could have said such a block; without a pattern, experts take its place.
        left_out = BlockKind.EXPERT in kinds if pattern is None else bool(carriers & letters)
        if path in _PRINTED or left_out:
            facts.assume(path, "no bytes", f"no {named} block is stated")
        elif adds_up(facts, model):
            facts.assume(path, "no bytes", f"the parameters that are stated leave no room for a {named} block")
        else:
            yield (
                f"{path} {value:,} is carried by no block of the stack: state the {named} block (a pattern such as "
                "[*-] or [*E], alphabet nemo), state model.parameters_total, or leave it out"
            )


def adds_up(facts: EstimateInputs, model: Architecture) -> bool:
    """Whether the widths make the number of parameters that is stated."""
    total = facts.stated.get("model.parameters_total")
    return total is not None and not facts.missing and abs(parameters_total(model) / total - 1) <= SAME_MODEL
