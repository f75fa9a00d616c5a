"""How many ways a launch divides its work, by the convention of its framework, and what one rank then owns.

Megatron-Core, torchtitan and DeepSpeed fold expert parallelism into data parallelism; for MaxText and nanotron it is
a degree of its own. A lane without a convention may mean either, and then only what fits neither is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from receipts.axes.lane import Lane
from receipts.receipt.accelerators import find_accelerator

CHIPS, DATA = "hardware.chips", "parallelism.data"
TENSOR, PIPELINE, CONTEXT = "parallelism.tensor", "parallelism.pipeline", "parallelism.context"
EXPERT, EXPERT_TENSOR = "parallelism.expert", "parallelism.expert_tensor"
SHARD, REPLICATE = "parallelism.shard", "parallelism.replicate"
MESH = "parallelism.mesh_axes"
# What frameworks call the mesh axes of a degree; `data` and `model` mean another degree in each.
MESH_AXES: Final[Mapping[str, frozenset[str]]] = {
    TENSOR: frozenset({"tensor", "tp", "tensor_transpose", "tensor_sequence"}),
    PIPELINE: frozenset({"stage", "pipeline", "pp"}),
    CONTEXT: frozenset({"context", "context_usp_ulysses", "cp"}),
    EXPERT: frozenset({"expert", "ep"}),
    SHARD: frozenset({"fsdp", "fsdp_transpose", "dp_shard"}),
    REPLICATE: frozenset({"dp_replicate"}),
}


def degree(stated: Mapping[str, Any], lane: Lane, path: str) -> int | None:
    """A degree; 1 where the lane has none of it, None if it is not stated."""
    value = stated.get(path)
    if value is not None:
        return int(value)
    return None if lane.applies(path) else 1


def wanted(lane: Lane) -> tuple[str, ...]:
    """Degrees, beside data, that a receipt of this lane must state to account for its chips."""
    fixed = (TENSOR, PIPELINE, CONTEXT)
    return fixed if lane.convention == "expert_in_data" else (*fixed, EXPERT)


def model_ways(stated: Mapping[str, Any], lane: Lane) -> tuple[int, ...]:
    """Chips that hold one replica, as each convention counts them; empty if a degree is not stated."""
    values = [degree(stated, lane, path) for path in (TENSOR, PIPELINE, CONTEXT)]
    product = 1
    for value in values:
        if value is None:
            return ()
        product *= value
    expert = degree(stated, lane, EXPERT)
    if lane.convention == "expert_in_data":
        return (product,)
    if expert is None:
        return ()
    return (product * expert,) if lane.convention == "expert_in_world" else _distinct(product, product * expert)


def data_ways(stated: Mapping[str, Any]) -> tuple[int, ...]:
    """The data degree as stated, alone and with the shard and replicate axes beside it; empty if it is unstated.

    Some frameworks call the whole of it data parallel, others only what is left beside their shard axis.
    """
    data = stated.get(DATA)
    if data is None:
        return ()
    shard, replicate = stated.get(SHARD) or 1, stated.get(REPLICATE) or 1
    return _distinct(data, data * shard, data * shard * replicate)


def rank_counts(stated: Mapping[str, Any]) -> tuple[int, ...]:
    """How many ranks the degrees may multiply to: the chips, and the devices where a chip is several of them."""
    chips, named = stated.get(CHIPS), stated.get("hardware.accelerator")
    if chips is None:
        return ()
    chip = find_accelerator(str(named)) if named is not None else None
    return _distinct(chips, chips * (chip.devices_per_chip if chip is not None else 1))


def batch_ways(stated: Mapping[str, Any], lane: Lane) -> tuple[int, ...]:
    """Ranks that read sequences of their own: the data degree, and the expert degree where it is a mesh axis beside it.

    Where data is not stated, what the chips leave over the other degrees.
    """
    expert = 1 if lane.convention == "expert_in_data" else degree(stated, lane, EXPERT) or 1
    if stated.get(DATA) is not None:
        return _distinct(*(ways * factor for ways in data_ways(stated) for factor in (1, expert)))
    left = [count // ways for count in rank_counts(stated) for ways in model_ways(stated, lane) if count % ways == 0]
    return _distinct(*(ways * factor for ways in left for factor in (1, expert)))


def _distinct(*values: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values))


# What is divided, its leaf, and the degree that divides it.
_DIVIDED: Final = (
    ("attention head", "model.heads", TENSOR),
    ("kv head", "model.kv_heads", TENSOR),
    ("SSM head", "model.ssm_heads", TENSOR),
    ("expert", "model.experts", EXPERT),
    ("layer", "model.depth", PIPELINE),
    ("token", "batch.sequence_length", CONTEXT),
)
_ALL: Final = (TENSOR, EXPERT, EXPERT_TENSOR, PIPELINE, CONTEXT)


def owned(stated: Mapping[str, Any]) -> str:
    """What a rank owns, in words; empty if no degree above one is stated.

    Whole numbers are exact; a degree that does not divide its number leaves a fraction, which R107, R108 and R118
    judge. Layers are counted on an even pipeline.
    """
    if not any((stated.get(path) or 1) > 1 for path in _ALL):
        return ""
    parts = []
    for name, leaf, path in _DIVIDED:
        count, ways = stated.get(leaf), stated.get(path)
        if count and ways and ways > 1:
            share = count / ways
            number = f"{share:,.4g}" if share % 1 else f"{int(share):,}"
            parts.append(f"{number} {name}{'' if share == 1 else 's'} of {count:,}")
    tensor = stated.get(EXPERT_TENSOR)
    if stated.get("model.experts") and tensor is not None and tensor > 1:
        parts.append(f"1/{tensor} of each expert's width")
    if stated.get("parallelism.sequence") and (stated.get(TENSOR) or 1) > 1:
        parts.append(f"1/{stated[TENSOR]} of the tokens outside the tensor-parallel matrices")
    return ", ".join(parts)
