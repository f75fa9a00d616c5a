"""Buffers that exist for collectives alone: gathered parameters, gradient buckets, gathered sequences."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.estimate.saved_tensors import stream_bytes
from receipts.estimate.setup import Layer, Setup
from receipts.estimate.weights import Owner, block

# Parameters of this many layers are whole at once: the one that computes and the one that is fetched for the next
# (torch.distributed.fsdp: limit_all_gathers keeps two; XLA's latency hiding scheduler overlaps one gather).
_WHOLE = 2


def communication(setup: Setup, which: Sequence[Layer]) -> float:
    """Bytes on a rank.

    State sharding of parameters: two layers gathered in the compute type and one layer's gradients before they are
    scattered (Zhao et al. 2023, PyTorch FSDP, arXiv:2304.11277, section 3.2). Where parameters stay gathered, all of a
    stage; and in a pipeline its gradients too, which are scattered after the last micro batch (torch.distributed.fsdp,
    `reshard_after_forward` and `set_requires_gradient_sync`; torchtitan asks for both). Sequence parallelism: the
    gathered stream, kept as one reused buffer (Megatron-Core, GlobalMemoryBuffer in utils.py). A stated bucket counts
    twice, for the one that fills and the one on the wire (torch DistributedDataParallel, bucket_cap_mb).
    """
    total = 0.0
    if setup.layout.zero >= 3 and not setup.serving:
        if setup.pressed:
            return max((_matrix(setup, layer) for layer in set(which)), default=0.0) * 2 * setup.types.compute
        if setup.layout.gathered:
            accumulated = setup.types.gradient if setup.layout.pipeline > 1 else 0.0
            total += sum(_elements(setup, layer) for layer in which) * (setup.types.compute + accumulated)
        widest = max((_elements(setup, layer) for layer in set(which)), default=0.0)
        total += widest * (_WHOLE * (not setup.layout.gathered) + 1) * setup.types.compute
    if setup.layout.sequence_parallel and setup.layout.tensor > 1:
        total += stream_bytes(setup.one_pass) * setup.layout.tensor
    if setup.layout.bucket_bytes is not None and not setup.framework.persistent_gradients and not setup.serving:
        total += 2.0 * setup.layout.bucket_bytes
    return total


def _elements(setup: Setup, layer: Layer) -> float:
    """Elements that gathering a layer over the state ranks makes; an expert that one rank alone holds is not cut."""
    total = 0.0
    for kind in layer:
        for tensor in block(setup.model, setup.layout, kind):
            ways = setup.layout.expert_shard if tensor.owner is Owner.EXPERT else setup.layout.shard
            total += tensor.elements if ways > 1 else 0.0
    return total


def _matrix(setup: Setup, layer: Layer) -> float:
    """Elements of the widest matrix of a layer; a feed-forward is several of one size."""
    return max(
        tensor.elements / (setup.model.projections if tensor.name in ("mlp", "experts", "shared expert") else 1)
        for kind in layer
        for tensor in block(setup.model, setup.layout, kind)
    )
