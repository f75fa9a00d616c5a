"""Widths that a plan states and no block of its stack has: said, or unknown where they may be a block of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from receipts.estimate.inputs import EstimateInputs
from receipts.estimate.setup import Architecture
from receipts.estimate.weights import parameters_total
from receipts.receipt.alphabets import ALPHABETS, ATTENDING, STATEFUL, BlockKind
from receipts.receipt.patterns import Pattern, read

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

_OF_HEADS = ("model.kv_heads", "model.head_dim")
_COUNTS = ("model.experts", "parallelism.expert")  # one of them is none


def idle(facts: EstimateInputs, model: Architecture) -> Iterator[str]:
    """What leaves the answer unknown; what does not is assumed to take no bytes.

    A pattern whose alphabet has a letter for such a block says by its absence that there is none; so does a number of
    parameters that the other widths make. The letters of NAM have none for a feed-forward.
    """
    for path in _OF_HEADS if model.latent is not None else ():
        if path in facts.stated:
            facts.assume(path, "no bytes", "latent attention has widths of its own")
    kinds = {kind for layer in (*model.layers, *model.mtp * bool(model.mtp_depth)) for kind in layer}
    for path, carriers in {**_BANKS, **_PRINTED}.items():
        value = int(facts.stated.get(path) or 0)
        if carriers & kinds or value <= (path in _COUNTS) or (path == "model.ffn" and value == model.expert_ffn):
            continue
        named = " or ".join(sorted(carriers))
        if path in _PRINTED or _left_out(facts, kinds, carriers):
            facts.assume(path, "no bytes", f"no {named} block is stated")
        elif adds_up(facts, model):
            facts.assume(path, "no bytes", f"the parameters that are stated leave no room for a {named} block")
        else:
            yield (
                f"{path} {value:,} is carried by no block of the stack: state the {named} block (a pattern such as "
                "[*-] or [*E], alphabet nemo), state model.parameters_total, or leave it out"
            )


def _left_out(facts: EstimateInputs, kinds: set[BlockKind], carriers: frozenset[BlockKind]) -> bool:
    """Whether the pattern's letters could have said such a block; without a pattern, whether experts take its place."""
    text = facts.stated.get("model.pattern")
    if text is None:
        return BlockKind.EXPERT in kinds
    pattern = read(str(text), facts.stated.get("model.alphabet"))
    return isinstance(pattern, Pattern) and bool(carriers & set(ALPHABETS[pattern.alphabet].letters.values()))


def adds_up(facts: EstimateInputs, model: Architecture) -> bool:
    """Whether the widths make the number of parameters that is stated."""
    total = facts.stated.get("model.parameters_total")
    return total is not None and not facts.missing and abs(parameters_total(model) / total - 1) <= SAME_MODEL
