"""Parameters, gradients and optimizer states of a rank, after tensor, pipeline, state and expert sharding in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from receipts.estimate.setup import Setup
from receipts.estimate.weights import Owner, Tensor


@dataclass(frozen=True, slots=True)
class States:
    """Bytes on a rank. ``parameters`` by owner; ``gathered`` are unsharded parameters of the rank, in elements."""

    replicated: float
    tensor: float
    expert: float
    gradients: float
    matrix_optimizer: float
    other_optimizer: float
    workspace: float
    elements: float


def sharded(elements: float, setup: Setup, owner: Owner, stage: int) -> float:
    """Elements that a rank keeps of a tensor once states of ``stage`` are sharded.

    Stage 1 shards optimizer states, 2 gradients too, 3 parameters too: Rajbhandari et al. 2020, arXiv:1910.02054,
    section 5. An expert's replicas are fewer, so its states are cut fewer ways (Megatron-Core, dist_optimizer.md).
    """
    if setup.layout.zero < stage:
        return elements
    return elements / (setup.layout.expert_shard if owner is Owner.EXPERT else setup.layout.shard)


def stored_bytes(tensor: Tensor, setup: Setup) -> float:
    """Bytes that a rank keeps of a parameter, with its FP8 copies where a matmul takes them."""
    types = setup.types
    copied = tensor.matrix and (types.fp8 == "all" or (types.fp8 == "experts" and tensor.owner is Owner.EXPERT))
    each = (0.0 if "parameters" in setup.offload else types.parameter) + (types.copy if copied else 0.0)
    return sharded(tensor.elements, setup, tensor.owner, 3) * each


def states(setup: Setup, tensors: Iterable[Tensor]) -> States:
    """The states of these tensors.

    Parameters in their stored type; gradients in theirs; optimizer by tensor type (Muon takes hidden matrices, AdamW
    the rest), with an fp32 master copy where the framework keeps one: Micikevicius et al. 2018, arXiv:1710.03740,
    section 3.1, and 2 + 2 + 12 bytes of ZeRO's section 3.1. States in host memory count nothing (Ren et al. 2021,
    ZeRO-Offload, arXiv:2101.06840).
    """
    held = dict.fromkeys(Owner, 0.0)
    gradients = matrix = other = elements = largest = 0.0
    types = setup.types
    for tensor in tensors:
        elements += tensor.elements
        held[tensor.owner] += stored_bytes(tensor, setup)
        if setup.serving:
            continue
        gradients += sharded(tensor.elements, setup, tensor.owner, 2) * types.gradient
        mine = sharded(tensor.elements, setup, tensor.owner, 1)
        takes = tensor.matrix or not setup.matrix_optimizer.matrices_only
        kind = setup.matrix_optimizer if takes else setup.other_optimizer
        bytes_ = 0.0 if "optimizer" in setup.offload else mine * (kind.bytes_per_element + types.master)
        if takes and setup.matrix_optimizer.matrices_only:
            matrix += bytes_
            largest = max(largest, kind.workspace * 2.0 * tensor.elements)
        else:
            other += bytes_
    return States(
        held[Owner.REPLICATED], held[Owner.TENSOR], held[Owner.EXPERT],
        gradients, matrix, other, largest, elements,
    )  # fmt: skip
