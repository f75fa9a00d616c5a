"""The estimate: every surface on the fullest rank, at each moment of a step, the moment that decides, and a breakdown.

Beside parameters, states and activations a rank holds buffers for collectives alone (gathered parameters, gradient
buckets, gathered sequences), what serving holds (the KV cache of attending layers, the states of recurrent ones), and
a tail beyond arithmetic: the compiled program, the runtime's reserve and what the allocator wastes. The breakdown
shows parameters by family of tensors, and the routing scratch of one expert block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from receipts.base.units import MIB
from receipts.estimate import weights
from receipts.estimate.activations import FULL, Activations, activations
from receipts.estimate.saved_tensors import RoutingScratch, routing_of, stream_bytes
from receipts.estimate.setup import Layer, Setup
from receipts.estimate.surface import OUTSIDE, Surface, SurfaceName
from receipts.estimate.weights import CONVOLUTION, Owner, States, block, heads_a_rank, sharded, states, stored_bytes
from receipts.receipt.patterns import ATTENDING, STATEFUL, BlockKind

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
            # Two of the widest matrix; a feed-forward is several of one size.
            matrices = {"mlp", "experts", "shared expert"}
            sizes = (
                tensor.elements / (setup.model.projections if tensor.name in matrices else 1)
                for kind in {kind for layer in which for kind in layer}
                for tensor in block(setup.model, setup.layout, kind)
            )
            return max(sizes, default=0.0) * 2 * setup.types.compute
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


def attention_map(which: Sequence[Layer]) -> tuple[int, ...]:
    """Positions of the layers that own a cache: those that attend, and no others."""
    return tuple(index for index, layer in enumerate(which) if ATTENDING & set(layer))


def kv_cache(setup: Setup, which: Sequence[Layer]) -> float:
    """2 · sequences · tokens · key-value heads · head width · bytes for each layer of the attention map.

    Shazeer 2019, arXiv:1911.02150, section 2.4 (keys and values of every earlier token); Ainslie et al. 2023,
    arXiv:2305.13245 (only the key-value heads). Kwon et al. 2023, arXiv:2309.06180, section 4 for the paged form,
    whose last block is the only waste. Latent attention holds one vector and one key with positions instead, whole on
    every tensor rank (DeepSeek-V2 2024, arXiv:2405.04434, section 2.1.4). An indexer has a key of its own in one byte
    and a scale in fp32 for 128 of them (DeepSeek-V3.2-Exp, inference/model.py). Mamba blocks hold none of it.
    """
    if not setup.serving:
        return 0.0
    model = setup.model
    _, heads = heads_a_rank(model.heads, model.kv_heads, setup.layout.tensor)
    tokens = -(-setup.length // setup.kv_block) * setup.kv_block
    token = setup.kv_latent or 2 * heads * model.head_dim
    one = token * (setup.kv_bytes or setup.types.compute)
    choosing = sum(BlockKind.SPARSE_ATTENTION in layer for layer in which) if model.indexer is not None else 0
    key = model.indexer.width * (1 + 4 / 128) if model.indexer is not None else 0.0
    return setup.batch.micro * tokens * (len(attention_map(which)) * one + choosing * key)


def state_pool(setup: Setup, which: Sequence[Layer]) -> float:
    """One fp32 state and one convolution window a sequence for each recurrent layer, whatever the context's length.

    Gu and Dao 2023, arXiv:2312.00752, section 3.3.2 (the state is inner width · state width); vLLM,
    model_executor/layers/mamba: a pool of states beside the cache. Mamba-3 has no window: it keeps the last keys of
    every rank, the last input and the angles (mamba_ssm, modules/mamba3.py, `allocate_inference_cache`). M2RNN keeps
    its matrix in the compute type (lm-engine, `ConstantCache`).
    """
    if not setup.serving:
        return 0.0
    kinds = [kind for layer in which for kind in layer if kind in STATEFUL]
    return setup.batch.micro * sum(_state(setup, kind) for kind in kinds) / setup.layout.tensor


def _state(setup: Setup, kind: BlockKind) -> float:
    """Bytes of one sequence in one block, over all tensor ranks."""
    model, size = setup.model, setup.types.compute
    rnn, mamba3 = model.recurrence, model.mamba3
    if kind is BlockKind.RECURRENT and rnn is not None:
        return (rnn.heads * rnn.key * rnn.value + (CONVOLUTION - 1) * rnn.convolved) * size
    state = model.ssm_inner * model.ssm_state * 4.0
    if mamba3 is not None:
        last = mamba3.rank * model.ssm_heads * model.ssm_state + model.ssm_inner
        return state + last * size + model.ssm_heads * mamba3.angles * 4.0
    return state + (model.ssm_inner + 2 * model.ssm_groups * model.ssm_state) * (CONVOLUTION - 1) * size


# Machine code of a compiled step a distinct kind of block, and of the rest (libtpu 0.0.42 for v6e, measured).
_CODE_A_KIND = 4 * MIB
_CODE = 8 * MIB


def compile_peak(setup: Setup, which: Sequence[Layer], elements: float) -> float:
    """Bytes that a compiled step takes beside the arrays that it was given; 0 where nothing is compiled ahead.

    Its code: XLA loads the program into HBM (CompiledMemoryStats.generated_code_size_in_bytes), and a scanned stack is
    compiled once a kind of block, however deep it is. And the parameters of the stack in the compute type, where they
    are stored in a wider one: the cast does not depend on the loop over layers, so XLA moves it out of the loop and
    keeps the copy from forward to backward (WhileLoopInvariantCodeMotion; seen in the buffer assignments of libtpu
    0.0.42). ``elements`` are the stack's on this rank, as they are kept.
    """
    if not setup.framework.static:
        return 0.0
    code = _CODE + _CODE_A_KIND * len({kind for layer in which for kind in layer})
    narrower = setup.types.compute < setup.types.parameter and not setup.serving and not setup.pressed
    return code + (elements * setup.types.compute if narrower else 0.0)


_FAMILIES: Final = (
    ("norms", ("norm",)),
    ("routers", ("router",)),
    ("embedding and head", ("embedding", "head")),
    ("attention", ("qkv", "attention out", "indexer")),
    ("experts", ("experts",)),
    ("feed-forward", ("mlp", "shared expert")),
    ("mixers", ("mixer", "convolution", "transition")),
    ("multi-token prediction", ("mtp",)),
)


@dataclass(frozen=True, slots=True)
class ParameterFamily:
    """Parameters of one kind on a rank: ``bytes`` as stored, ``ways`` that tensor or expert degrees cut them.

    ``shard`` is the number of ranks that share what is left, 1 without state sharding of stage 3.
    """

    name: str
    owner: Owner
    bytes: float
    ways: int
    shard: int

    @property
    def cut(self) -> str:
        """How these parameters are cut."""
        degrees = f"cut {self.ways} ways" if self.ways > 1 else "whole on every rank"
        if self.shard > 1:
            return f"{degrees}, stored in {self.shard} shards" if self.ways > 1 else f"stored in {self.shard} shards"
        return degrees


def parameter_families(setup: Setup, stage: int) -> tuple[ParameterFamily, ...]:
    """Stored parameters of a pipeline stage by family, replicated families first."""
    layout = setup.layout
    tensors = (
        *weights.layers(setup.model, layout, setup.layers_of(stage)),
        *weights.ends(setup.model, layout, first=stage == 0, last=stage == layout.pipeline - 1),
    )
    held: dict[tuple[str, Owner], float] = {}
    for tensor in tensors:
        family = next(name for name, words in _FAMILIES if any(word in tensor.name for word in words))
        held[family, tensor.owner] = held.get((family, tensor.owner), 0.0) + stored_bytes(tensor, setup)
    order = [name for name, _ in _FAMILIES]
    cut = {
        Owner.REPLICATED: (1, layout.shard),
        Owner.TENSOR: (layout.tensor, layout.shard),
        Owner.EXPERT: (layout.expert * layout.expert_tensor, layout.expert_shard),
    }
    return tuple(
        ParameterFamily(name, owner, size, cut[owner][0], cut[owner][1] if layout.zero >= 3 else 1)
        for (name, owner), size in sorted(held.items(), key=lambda item: order.index(item[0][0]))
    )


def routing_block(setup: Setup, stage: int) -> RoutingScratch | None:
    """The routing scratch of one expert block; None on a stage without experts."""
    has_experts = any(BlockKind.EXPERT in layer for layer in setup.layers_of(stage))
    return routing_of(setup) if has_experts and setup.model.experts else None


Moment = Mapping[SurfaceName, float]

SCALES: Mapping[SurfaceName, str] = {
    SurfaceName.REPLICATED: "width, router width; not tensor or expert degree",
    SurfaceName.TENSOR: "width, depth, vocabulary; tensor, pipeline and state degrees",
    SurfaceName.EXPERT: "experts, expert width; expert, expert tensor, pipeline and state degrees",
    SurfaceName.GRADIENTS: "parameters and their type; state degree from stage 2",
    SurfaceName.MATRIX_OPTIMIZER: "hidden matrices and the type of the state; state degree from stage 1",
    SurfaceName.OTHER_OPTIMIZER: "the other parameters and the type of the state; state degree from stage 1",
    SurfaceName.ACTIVATIONS: "micro batch, sequence length, recompute; sequence and context parallelism",
    SurfaceName.ROUTING: "routed tokens, top-k, capacity factor, hidden width; expert ranks that send, expert blocks",
    SurfaceName.COMMUNICATION: "widest layer, buckets, gathered sequences",
    SurfaceName.COMPILE: "the compiled program, or the largest matrix update",
    SurfaceName.RECURRENT: "sequences served, recurrent layers, state width",
    SurfaceName.KV_CACHE: "sequences served, context length, attending layers, key-value heads",
    SurfaceName.FEATURES: "MTP depth, micro batch, sequence length, vocabulary",
    SurfaceName.RESERVE: "the runtime; no degree",
    SurfaceName.OVERHEAD: "bytes that come and go; the allocator",
}


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """One pipeline stage. ``moments`` are surfaces by moment; the largest of them decides."""

    stage: int
    moments: Mapping[str, Moment]

    @property
    def peak(self) -> str:
        """The moment with the most bytes."""
        return max(self.moments, key=lambda name: sum(self.moments[name].values()))

    @property
    def total(self) -> float:
        """Bytes at the peak, reserve and overhead included."""
        return sum(self.moments[self.peak].values())

    @property
    def live(self) -> float:
        """Bytes that an allocator would call live at the peak."""
        return sum(value for name, value in self.moments[self.peak].items() if name not in OUTSIDE)

    def surfaces(self) -> tuple[Surface, ...]:
        """Every surface with its own largest, and with what it holds at the peak."""
        at = self.moments[self.peak]
        return tuple(
            Surface(name, max(moment[name] for moment in self.moments.values()), at[name], SCALES[name])
            for name in SurfaceName
        )


def by_stage(setup: Setup) -> tuple[StageEstimate, ...]:
    """An estimate for each pipeline stage, in order."""
    return tuple(_stage(setup, number) for number in range(max(1, len(setup.layout.stages))))


def fullest(setup: Setup) -> StageEstimate:
    """The stage with the most bytes: every rank must fit, so it decides."""
    return max(by_stage(setup), key=lambda item: item.total)


def least(setup: Setup) -> float:
    """Bytes of the fullest stage by the least that a plan may mean: full recompute where it names no policy.

    A compiler that plans every buffer and is short of memory gathers one matrix at a time, keeps no 16-bit copy of the
    stack, fuses the loss to 4 bytes a logit, and full recompute keeps one input a layer and not one a block. Published
    MaxText runs on v6e held shapes whose plain estimate is up to 1.6 times the chip (AI-Hypercomputer/tpu-recipes,
    training/trillium).
    """
    recompute = FULL if "numerics.recompute" in setup.unstated and not setup.serving else setup.recompute
    return fullest(replace(setup, pressed=setup.framework.static, recompute=recompute)).total


def most(setup: Setup) -> float:
    """Bytes of the fullest stage by the most that a plan may mean: nothing sharded where it names no strategy."""
    zero = 0 if "parallelism.strategy" in setup.unstated else setup.layout.zero
    return fullest(replace(setup, layout=replace(setup.layout, zero=zero))).total


def _stage(setup: Setup, number: int) -> StageEstimate:
    which = setup.layers_of(number)
    first, last = number == 0, number == setup.layout.pipeline - 1
    stack = tuple(weights.layers(setup.model, setup.layout, which))
    held = states(setup, (*stack, *weights.ends(setup.model, setup.layout, first=first, last=last)))
    kept = sum(sharded(item.elements, setup, item.owner, 3) for item in stack)
    active = activations(setup, which, number, last=last)
    fixed = {
        SurfaceName.REPLICATED: held.replicated,
        SurfaceName.TENSOR: held.tensor,
        SurfaceName.EXPERT: held.expert,
        SurfaceName.MATRIX_OPTIMIZER: held.matrix_optimizer,
        SurfaceName.OTHER_OPTIMIZER: held.other_optimizer,
        SurfaceName.COMMUNICATION: communication(setup, which),
        SurfaceName.COMPILE: compile_peak(setup, which, kept),
        SurfaceName.RECURRENT: state_pool(setup, which),
        SurfaceName.KV_CACHE: kv_cache(setup, which),
        # What the runtime takes outside the allocator: driver context, collective channels, workspaces.
        SurfaceName.RESERVE: float(setup.framework.reserve_bytes),
    }
    moments = {}
    for moment, moving in _moments(setup, held, active):
        at = dict.fromkeys(SurfaceName, 0.0) | fixed
        for name, value in moving.items():
            at[name] += value
        # The share of coming and going bytes that the allocator holds beyond what is live; a static plan has none.
        coming = sum(value for name, value in moving.items() if name is not SurfaceName.GRADIENTS)
        share = setup.framework.allocator_share
        at[SurfaceName.OVERHEAD] = share * (coming + fixed[SurfaceName.COMMUNICATION])
        moments[moment] = at
    return StageEstimate(number, moments)


def _moments(setup: Setup, held: States, active: Activations) -> Iterator[tuple[str, Moment]]:
    """Surfaces that come and go, by moment.

    Gradients that a framework keeps in a buffer, and those of earlier micro steps, exist from the start. A compiled
    loop over layers makes its gradient arrays when it begins, beside every activation; eager autograd makes each when
    its block is done, when that block's activations are freed.
    """
    if setup.serving:
        yield (
            "prefill",
            {
                SurfaceName.ACTIVATIONS: active.working + active.loss,
                SurfaceName.ROUTING: active.routing_working,
            },
        )
        return
    early = setup.framework.persistent_gradients or setup.batch.accumulation > 1
    stored = {
        SurfaceName.ACTIVATIONS: active.stored,
        SurfaceName.FEATURES: active.features_stored,
        SurfaceName.ROUTING: active.routing_stored,
    }
    yield (
        "loss",
        {
            SurfaceName.ACTIVATIONS: active.stored + active.loss,
            SurfaceName.FEATURES: active.features_stored + active.features_loss,
            SurfaceName.ROUTING: active.routing_stored,
            SurfaceName.GRADIENTS: held.gradients if early else 0.0,
        },
    )
    yield (
        "backward",
        stored
        | {
            SurfaceName.ACTIVATIONS: active.stored + active.working,
            SurfaceName.ROUTING: active.routing_stored + active.routing_working,
            SurfaceName.GRADIENTS: held.gradients if early or setup.framework.static else 0.0,
        },
    )
    if not early and not setup.framework.static:
        yield "end of backward", {SurfaceName.ACTIVATIONS: active.working, SurfaceName.GRADIENTS: held.gradients}
    yield "optimizer", {SurfaceName.GRADIENTS: held.gradients, SurfaceName.COMPILE: held.workspace}
