"""The train step: forward over scanned periods, loss, gradients over micro steps, and the optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from receipts.estimate.activations import FULL, drops
from receipts.estimate.setup import Layer, Setup
from receipts.plugins.aot import blocks, mixers
from receipts.plugins.aot.parameters import ParameterSpec, period_of, tree
from receipts.receipt.patterns import STATEFUL, BlockKind

Array = Any  # as in blocks
_BLOCKS: Mapping[BlockKind, blocks.Block] = {
    BlockKind.ATTENTION: blocks.attention,
    BlockKind.SPARSE_ATTENTION: mixers.selecting,
    BlockKind.MLP: blocks.mlp,
    BlockKind.EXPERT: blocks.experts,
    BlockKind.MAMBA: blocks.mamba,
    BlockKind.DELTA: blocks.mamba,
    BlockKind.RECURRENT: blocks.mamba,
}


def _block_of(setup: Setup, kind: BlockKind) -> blocks.Block:
    """The function of a kind of block, by what this model makes of it."""
    model = setup.model
    if kind is BlockKind.ATTENTION and model.latent is not None:
        return mixers.latent
    if kind is BlockKind.RECURRENT and model.recurrence is not None:
        return mixers.matrix_recurrence
    return mixers.mamba3 if kind in STATEFUL and model.mamba3 is not None else _BLOCKS[kind]


NAMES = (
    "block input", "norm output", "query, key, value", "attention output", "row sums", "scores", "mlp hidden",
    "mlp activation", "router scores", "receive", "expert hidden", "expert activation", "shared expert hidden",
    "shared expert activation", "projections", "scan output", "gated output", "latent vectors",
    "index queries and keys",
)  # fmt: skip
CHUNK_TOKENS = 1024
TYPES = {4.0: jnp.float32, 2.0: jnp.bfloat16}


def _is_leaf(value: object) -> bool:
    return isinstance(value, ParameterSpec)


class TrainingStep:
    """The step of one setup on one mesh: its arguments as shapes with shardings, and the function."""

    def __init__(self, setup: Setup, mesh: Mesh) -> None:
        self.setup, self.mesh = setup, mesh
        self.tree = tree(setup)
        self._dtype = TYPES[setup.types.compute]

    def arguments(self) -> tuple[Any, Any, Any]:
        """Parameters, optimizer states and tokens."""
        setup = self.setup
        parameters = self._shapes(TYPES[setup.types.parameter], 3)
        states = jax.tree.map(self._states, self.tree, is_leaf=_is_leaf)
        batch = self._ranks() * setup.batch.micro
        tokens = jax.ShapeDtypeStruct(
            (setup.batch.accumulation, batch, setup.batch.length + 1),
            jnp.int32,
            sharding=NamedSharding(self.mesh, PartitionSpec(None, blocks.BATCH, None)),
        )
        return parameters, states, tokens

    def _ranks(self) -> int:
        return int(self.mesh.shape["data"] * self.mesh.shape["expert"])

    def _sharding(self, leaf: ParameterSpec, stage: int) -> NamedSharding:
        return NamedSharding(self.mesh, leaf.spec(self.setup, stage))

    def _shapes(self, dtype: Any, stage: int) -> Any:
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=self._sharding(leaf, stage)),
            self.tree,
            is_leaf=_is_leaf,
        )

    def _states(self, leaf: ParameterSpec) -> dict[str, Any]:
        setup = self.setup
        kind = setup.matrix_optimizer if leaf.matrix or not setup.matrix_optimizer.matrices_only else None
        kind = kind or setup.other_optimizer
        make = partial(jax.ShapeDtypeStruct, leaf.shape, sharding=self._sharding(leaf, 1))
        states = {f"m{index}": make(TYPES[float(kind.state_bytes)]) for index in range(kind.states)}
        if setup.types.master:
            states["master"] = make(jnp.float32)
        return states

    # --- forward ---------------------------------------------------------------------------------------------

    def _policy(self) -> Callable[..., bool] | None:
        recompute = self.setup.recompute
        if recompute == FULL:
            return None
        kept = [name for name in NAMES if not drops(recompute, name)]
        policy: Callable[..., bool] = jax.checkpoint_policies.save_only_these_names(*kept)
        return policy

    def _stream(self, x: Array) -> Array:
        sequence = "tensor" if self.setup.layout.sequence_parallel else None
        spec = PartitionSpec(blocks.BATCH, sequence, None)
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def _block(self, kind: BlockKind, parameters: Any, x: Array) -> Array:
        cast = jax.tree.map(lambda value: value.astype(self._dtype) if value.ndim > 1 else value, parameters)
        return self._stream(_block_of(self.setup, kind)(self.setup, self.mesh, cast, x))

    def _run(self, layers: tuple[Layer, ...], parameters: Any, x: Array) -> Array:
        kinds = [kind for layer in layers for kind in layer]
        policy = self._policy()
        for kind, own in zip(kinds, parameters, strict=True):
            x = jax.checkpoint(partial(self._block, kind), policy=policy)(own, self._stream(x))
        return x

    def _stack(self, parameters: Any, ids: Array) -> Array:
        layers = self.setup.model.layers
        period = period_of(layers)
        x = self._stream(jnp.take(parameters["embedding"].astype(self._dtype), ids, axis=0))
        x, _ = jax.lax.scan(lambda carry, own: (self._run(period, own, carry), None), x, parameters["periods"])
        if parameters["rest"]:
            rest = layers[len(layers) // len(period) * len(period) :]
            x = self._run(rest, jax.tree.map(lambda value: value[0], parameters["rest"]), x)
        return x

    def _head(self, parameters: Any) -> Array:
        table = parameters["embedding"].T if self.setup.model.tied else parameters["head"]
        return table.astype(self._dtype)

    def _cross_entropy(self, head: Array, x: Array, wanted: Array) -> Array:
        """Mean cross-entropy; chunked over tokens where the setup says so."""

        def part(x: Array, wanted: Array) -> Array:
            logits = jnp.einsum("bsh,hv->bsv", x, head).astype(jnp.float32)
            chosen = jnp.take_along_axis(logits, wanted[..., None], axis=-1)[..., 0]
            return jnp.sum(jax.nn.logsumexp(logits, axis=-1) - chosen)

        if not self.setup.chunked_loss:
            return part(x, wanted)
        size = max(1, CHUNK_TOKENS * self._ranks() // x.shape[0])
        cut = [jnp.moveaxis(t.reshape(t.shape[0], -1, size, *t.shape[2:]), 1, 0) for t in (x, wanted)]
        total, _ = jax.lax.scan(lambda sum_, xs: (sum_ + jax.checkpoint(part)(*xs), None), 0.0, (cut[0], cut[1]))
        return total

    def loss(self, parameters: Any, tokens: Array) -> Array:
        """Mean loss of one micro batch, MTP depths included."""
        ids, wanted = tokens[:, :-1], tokens[:, 1:]
        x = self._stack(parameters, ids)
        head = self._head(parameters)
        total = self._cross_entropy(head, blocks.norm(x, parameters["final_norm"]), wanted)
        for own in parameters.get("mtp", ()):
            wanted = jnp.roll(wanted, -1, axis=1)
            following = jnp.take(parameters["embedding"].astype(self._dtype), wanted, axis=0)
            joined = jnp.stack([blocks.norm(x, own["norms"][0]), blocks.norm(following, own["norms"][1])])
            joined = checkpoint_name(joined, "norm output")
            x = self._stream(jnp.einsum("abst,ath->bsh", joined, own["join"].astype(self._dtype)))
            x = self._run(self.setup.model.mtp, jax.tree.map(lambda value: value[0], own["blocks"]), x)
            total = total + self._cross_entropy(head, blocks.norm(x, parameters["final_norm"]), wanted)
        return total / (wanted.size * (1 + self.setup.model.mtp_depth))

    # --- backward and update -----------------------------------------------------------------------------------

    def _placed(self, gradients: Any) -> Any:
        return jax.tree.map(
            lambda leaf, value: jax.lax.with_sharding_constraint(value, self._sharding(leaf, 2)),
            self.tree,
            gradients,
            is_leaf=_is_leaf,
        )

    def __call__(self, parameters: Any, states: Any, tokens: Array) -> tuple[Any, Any, Array]:
        """Parameters and states after the step, and the loss."""
        value = jax.value_and_grad(self.loss)
        if self.setup.batch.accumulation == 1:
            loss, gradients = value(parameters, tokens[0])
            gradients = self._placed(gradients)
        else:
            start = self._placed(jax.tree.map(jnp.zeros_like, parameters))

            def micro(carry: Any, own: Array) -> tuple[Any, Array]:
                loss, gradients = value(parameters, own)
                return self._placed(jax.tree.map(jnp.add, carry, gradients)), loss

            gradients, losses = jax.lax.scan(micro, start, tokens)
            loss = losses.mean()
        pairs = jax.tree.map(
            self._update, self.tree, parameters, gradients, states, is_leaf=_is_leaf
        )  # fmt: skip
        is_pair = lambda item: isinstance(item, tuple)  # noqa: E731 — named for the two lines below
        return (
            jax.tree.map(lambda p: p[0], pairs, is_leaf=is_pair),
            jax.tree.map(lambda p: p[1], pairs, is_leaf=is_pair),
            loss,
        )

    def _update(self, leaf: ParameterSpec, parameter: Array, gradient: Array, state: Any) -> tuple[Array, Any]:
        setup = self.setup
        muon = setup.matrix_optimizer.matrices_only and leaf.matrix
        wide = gradient.astype(jnp.float32)
        updated = dict(state)
        if muon:
            momentum = 0.95 * state["m0"].astype(jnp.float32) + wide
            updated["m0"] = momentum.astype(state["m0"].dtype)
            update = _orthogonal(momentum, leaf)
        elif "m1" in state:
            first = 0.9 * state["m0"].astype(jnp.float32) + 0.1 * wide
            second = 0.95 * state["m1"].astype(jnp.float32) + 0.05 * wide * wide
            updated["m0"], updated["m1"] = first.astype(state["m0"].dtype), second.astype(state["m1"].dtype)
            update = first / (jnp.sqrt(second) + 1e-8)
        else:
            momentum = 0.9 * state["m0"].astype(jnp.float32) + wide if "m0" in state else wide
            if "m0" in state:
                updated["m0"] = momentum.astype(state["m0"].dtype)
            update = jnp.sign(momentum)
        base = state["master"] if "master" in state else parameter.astype(jnp.float32)
        new = base - 1e-3 * update
        if "master" in state:
            updated["master"] = new
        return jax.lax.with_sharding_constraint(new.astype(parameter.dtype), self._sharding(leaf, 3)), updated


def _orthogonal(momentum: Array, leaf: ParameterSpec) -> Array:
    """Five Newton–Schulz steps a matrix, one layer of a stack after the other (Jordan et al. 2024, Muon)."""

    def one(matrix: Array) -> Array:
        shape = matrix.shape
        x = matrix.reshape(shape[0], -1).astype(jnp.bfloat16)
        wide = x.shape[0] > x.shape[1]
        x = x.T if wide else x
        x = x / (jnp.linalg.norm(x.astype(jnp.float32)) + 1e-7).astype(jnp.bfloat16)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return (x.T if wide else x).reshape(shape).astype(jnp.float32)

    return jax.lax.map(
        one, momentum.reshape(-1, *momentum.shape[-2:]) if momentum.ndim == 4 and leaf.axes[1] == "expert" else momentum
    ).reshape(momentum.shape)
