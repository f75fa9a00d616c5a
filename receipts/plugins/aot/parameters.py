"""Shapes and shardings of the decoder's parameters, stacked over the periods of the layer pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jax.sharding import PartitionSpec

from receipts.estimate.setup import Layer, Setup
from receipts.estimate.weights import CONVOLUTION
from receipts.metrics.flops.geometry import Indexer, LatentAttention, Mamba3, MatrixRecurrence
from receipts.receipt.patterns import ATTENDING, BlockKind

T, E = "tensor", "expert"


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter: its shape, the mesh axis of each dimension, and whether an optimizer for matrices takes it."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    matrix: bool = True

    def stacked(self, count: int) -> ParameterSpec:
        """With a leading dimension of layers."""
        return ParameterSpec((count, *self.shape), (None, *self.axes), self.matrix)

    def spec(self, setup: Setup, stage: int) -> PartitionSpec:
        """Where it lies when states of ``stage`` are sharded: the widest free dimension is cut over `data`.

        The whole of a state is cut only where it divides; otherwise it is replicated, as GSPMD would pad it.
        """
        axes: list[Any] = list(self.axes)
        ways = setup.layout.shard
        if setup.layout.zero >= stage and ways > 1 and len(self.shape) > 1:
            free = [index for index, axis in enumerate(axes) if axis is None and self.shape[index] % ways == 0]
            if free:
                axes[max(free, key=lambda index: self.shape[index] if index or len(axes) < 3 else 0)] = "data"
        return PartitionSpec(*axes)


def block(setup: Setup, kind: BlockKind) -> dict[str, ParameterSpec]:
    """The parameters of one block."""
    model = setup.model
    h = model.hidden
    parameters = {"norm": ParameterSpec((h,), (None,), matrix=False)}
    if kind in ATTENDING:
        own = _attention(setup) if model.latent is None else _latent(setup, model.latent)
        return parameters | own | (_indexer(setup, model.indexer) if kind is BlockKind.SPARSE_ATTENTION else {})
    if kind is BlockKind.MLP:
        return parameters | _feed_forward(setup, model.ffn)
    if kind is BlockKind.EXPERT:
        bank = {name: ParameterSpec((model.experts, *leaf.shape), (E, *leaf.axes))
                for name, leaf in _feed_forward(setup, model.expert_ffn).items()}  # fmt: skip
        parameters |= bank | {"router": ParameterSpec((h, model.experts), (None, None), matrix=False)}
        if model.shared_ffn:
            parameters |= {f"shared_{name}": leaf for name, leaf in _feed_forward(setup, model.shared_ffn).items()}
        return parameters
    if kind is BlockKind.RECURRENT and model.recurrence is not None:
        return parameters | _matrix_recurrence(h, model.recurrence)
    return parameters | (_state_space(setup) if model.mamba3 is None else _mamba3(setup, model.mamba3))


def _attention(setup: Setup) -> dict[str, ParameterSpec]:
    h, n, k, d = setup.model.hidden, setup.model.heads, setup.model.kv_heads, setup.model.head_dim
    return {
        "q": ParameterSpec((h, n, d), (None, T, None)),
        "k": ParameterSpec((h, k, d), (None, T, None)),
        "v": ParameterSpec((h, k, d), (None, T, None)),
        "out": ParameterSpec((n, d, h), (T, None, None)),
    }


def _latent(setup: Setup, latent: LatentAttention) -> dict[str, ParameterSpec]:
    h, n, rank = setup.model.hidden, setup.model.heads, latent.key_value
    query = {
        "q_down": ParameterSpec((h, latent.query), (None, None)),
        "q_norm": ParameterSpec((latent.query,), (None,), matrix=False),
    }
    return (query if latent.query else {}) | {
        "q_up": ParameterSpec((latent.query or h, n, latent.nope + latent.rope), (None, T, None)),
        "kv_down": ParameterSpec((h, rank + latent.rope), (None, None)),
        "kv_norm": ParameterSpec((rank,), (None,), matrix=False),
        "k_up": ParameterSpec((n, latent.nope, rank), (T, None, None)),
        "v_up": ParameterSpec((n, rank, latent.value), (T, None, None)),
        "out": ParameterSpec((n, latent.value, h), (T, None, None)),
    }


def _indexer(setup: Setup, indexer: Indexer | None) -> dict[str, ParameterSpec]:
    if indexer is None:
        return {}
    h, latent = setup.model.hidden, setup.model.latent
    return {
        "index_q": ParameterSpec(
            ((latent.query if latent is not None else 0) or h, indexer.heads, indexer.width), (None, None, None)
        ),
        "index_k": ParameterSpec((h, indexer.width), (None, None)),
        "index_norm": ParameterSpec((indexer.width,), (None,), matrix=False),
        "index_w": ParameterSpec((h, indexer.heads), (None, None)),
    }


def _feed_forward(setup: Setup, width: int) -> dict[str, ParameterSpec]:
    h = setup.model.hidden
    parameters = {"up": ParameterSpec((h, width), (None, T)), "down": ParameterSpec((width, h), (T, None))}
    return parameters | ({"gate": ParameterSpec((h, width), (None, T))} if setup.model.projections == 3 else {})


def _state_space(setup: Setup) -> dict[str, ParameterSpec]:
    model = setup.model
    h, n, g, s = model.hidden, model.ssm_heads, model.ssm_groups, model.ssm_state
    width = model.ssm_inner // n
    groups = T if g % setup.layout.tensor == 0 else None
    return {
        "value": ParameterSpec((h, n, width), (None, T, None)),
        "gate": ParameterSpec((h, n, width), (None, T, None)),
        "keys": ParameterSpec((h, g, s), (None, groups, None)),
        "queries": ParameterSpec((h, g, s), (None, groups, None)),
        "step": ParameterSpec((h, n), (None, T)),
        "gate_norm": ParameterSpec((n, width), (T, None), matrix=False),
        "out": ParameterSpec((n, width, h), (T, None, None)),
        "bias": ParameterSpec((n,), (T,), matrix=False),
        "decay": ParameterSpec((n,), (T,), matrix=False),
        "skip": ParameterSpec((n,), (T,), matrix=False),
        "conv_v": ParameterSpec((CONVOLUTION, n, width), (None, T, None), matrix=False),
        "conv_k": ParameterSpec((CONVOLUTION, g, s), (None, groups, None), matrix=False),
        "conv_q": ParameterSpec((CONVOLUTION, g, s), (None, groups, None), matrix=False),
    }


def _mamba3(setup: Setup, kind: Mamba3) -> dict[str, ParameterSpec]:
    model = setup.model
    h, n, g, s, r = model.hidden, model.ssm_heads, model.ssm_groups, model.ssm_state, kind.rank
    width = model.ssm_inner // n
    groups = T if g % setup.layout.tensor == 0 else None
    ranked = {name: ParameterSpec((h, r, g, s), (None, None, groups, None)) for name in ("keys", "queries")}
    bias = {name: ParameterSpec((n, r, s), (T, None, None), matrix=False) for name in ("key_bias", "query_bias")}
    mimo = {
        name: ParameterSpec((n, r, width), (T, None, None), matrix=False) for name in ("mimo_x", "mimo_z", "mimo_o")
    }
    norms = {name: ParameterSpec((s,), (None,), matrix=False) for name in ("key_norm", "query_norm")}
    cut = {name: ParameterSpec((h, n, width), (None, T, None)) for name in ("value", "gate")}
    scalars = {name: ParameterSpec((h, n), (None, T)) for name in ("step", "decay", "trap")}
    return ranked | bias | mimo | norms | cut | scalars | {
        "angle": ParameterSpec((h, kind.angles), (None, None)),
        "skip": ParameterSpec((n,), (T,), matrix=False),
        "out": ParameterSpec((n, width, h), (T, None, None)),
    }  # fmt: skip


def _matrix_recurrence(h: int, rnn: MatrixRecurrence) -> dict[str, ParameterSpec]:
    n, k, v = rnn.heads, rnn.key, rnn.value
    cut = {name: ParameterSpec((h, n, v), (None, T, None)) for name in ("value", "gate")}
    shared = {name: ParameterSpec((h, 1, k), (None, None, None)) for name in ("query", "key")}
    taps = {name: ParameterSpec((CONVOLUTION, 1, k), (None, None, None), matrix=False) for name in ("conv_q", "conv_k")}
    scalars = {name: ParameterSpec((n,), (T,), matrix=False) for name in ("decay", "bias")}
    rows = {name: ParameterSpec((n, v), (T, None), matrix=False) for name in ("skip", "gate_norm")}
    return cut | shared | taps | scalars | rows | {
        "conv_v": ParameterSpec((CONVOLUTION, n, v), (None, T, None), matrix=False),
        "forget": ParameterSpec((h, n), (None, T)),
        "transition": ParameterSpec((n, v, v), (T, None, None), matrix=False),
        "out": ParameterSpec((n, v, h), (T, None, None)),
    }  # fmt: skip


def period_of(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The shortest run of layers that the stack repeats; what is left over at its end stands for itself."""
    for length in range(1, len(layers) + 1):
        if all(layer == layers[index % length] for index, layer in enumerate(layers)):
            return layers[:length]
    return layers


def tree(setup: Setup) -> dict[str, Any]:
    """All parameters: embedding, periods as stacks, the layers left over, final norm, head, MTP depths."""
    model = setup.model
    period = period_of(model.layers)
    count, rest = divmod(len(model.layers), len(period))
    parameters: dict[str, Any] = {
        "embedding": ParameterSpec((model.vocabulary, model.hidden), (T, None), matrix=False),
        "periods": _blocks(setup, period, count),
        "rest": _blocks(setup, period[:rest], 1),
        "final_norm": ParameterSpec((model.hidden,), (None,), matrix=False),
    }
    if not model.tied:
        parameters["head"] = ParameterSpec((model.hidden, model.vocabulary), (None, T), matrix=False)
    if model.mtp_depth:
        h = model.hidden
        parameters["mtp"] = [
            {
                "norms": ParameterSpec((2, h), (None, None), matrix=False),
                "join": ParameterSpec((2, h, h), (None, None, T)),
                "blocks": _blocks(setup, model.mtp, 1),
            }
            for _ in range(model.mtp_depth)
        ]
    return parameters


def _blocks(setup: Setup, layers: tuple[Layer, ...], count: int) -> list[dict[str, ParameterSpec]]:
    return [
        {name: leaf.stacked(count) for name, leaf in block(setup, kind).items()} for layer in layers for kind in layer
    ]


def elements(parameter: Any) -> int:
    """Parameters in a tree of leaves."""
    if isinstance(parameter, ParameterSpec):
        return math.prod(parameter.shape)
    values = parameter.values() if isinstance(parameter, Mapping) else parameter
    return sum(elements(value) for value in values)
