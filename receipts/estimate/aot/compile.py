"""Compiling a step for a v6e topology on a host without TPUs, and the compiler's own account of its bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from receipts.base.errors import UsageError
from receipts.estimate.setup import Setup
from receipts.receipt.alphabets import BlockKind

EXTRA = "pip install 'frontier-receipts[aot]'"
# Google Cloud TPU documentation, page TPU v6e: the slices there are.
TOPOLOGIES = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
_HOST_BOUNDS = {1: (1, 1, 1), 4: (2, 2, 1)}


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """What the compiler answered, bytes a chip; sizes are None and ``message`` is its error where it refused.

    ``peak`` is the compiler's own highest sum of live buffers in HBM, arguments among them. ``temp`` counts buffers of
    the on-chip memory too, and space that others use at another time, so the parts add up to more than the peak.
    """

    peak: int | None = None
    argument: int | None = None
    output: int | None = None
    temp: int | None = None
    alias: int | None = None
    code: int | None = None
    seconds: float = 0.0
    message: str = ""
    versions: str = ""

    @property
    def total(self) -> int | None:
        """Bytes of HBM that the step needs: its peak and its code."""
        return None if self.peak is None or self.code is None else self.peak + self.code


def refusals(setup: Setup) -> tuple[str, ...]:
    """Why this setup cannot be compiled here; empty where it can."""
    return tuple(_refusals(setup))


def _refusals(setup: Setup) -> Iterator[str]:
    layout, model = setup.layout, setup.model
    chips = layout.tensor * layout.expert * _data(setup)
    if setup.serving:
        yield "only a train step is compiled, and run.kind is serving"
    if layout.pipeline > 1 or layout.context > 1:
        yield "pipeline and context parallelism are not compiled: the step is one SPMD program; set both to 1"
    if chips not in TOPOLOGIES:
        yield f"{chips} chips are no v6e slice; there are {', '.join(map(str, TOPOLOGIES))}"
    if layout.zero == 2:
        yield "state sharding of stage 2 is not compiled; XLA shards gradients with the parameters, or not at all"
    if any(BlockKind.SPARSE_ATTENTION in layer for layer in model.layers) and model.indexer is None:
        yield "the widths of the indexer of sparse attention are not stated"
    if not setup.fused_selection:
        yield "attention over chosen keys is compiled in blocks that store no scores; set model.sparse_attention"
    if setup.types.compute not in (2.0, 4.0) or setup.types.parameter not in (2.0, 4.0):
        yield "only 16 and 32 bit types are compiled"
    if model.latent is None and model.kv_heads and model.kv_heads % layout.tensor:
        yield f"{model.kv_heads} key-value heads are not divided by tensor {layout.tensor}"
    for optimizer in (setup.matrix_optimizer, setup.other_optimizer):
        if optimizer.states and optimizer.state_bytes not in (2.0, 4.0):
            yield f"{optimizer.name} with states of {optimizer.state_bytes:g} bytes is not compiled"
    if model.recurrence is not None and model.recurrence.heads % layout.tensor:
        yield f"{model.recurrence.heads} heads of M2RNN are not divided by tensor {layout.tensor}"
    stateful = {BlockKind.MAMBA, BlockKind.RECURRENT, BlockKind.DELTA} & {
        kind for layer in model.layers for kind in layer
    }
    if stateful and model.ssm_inner % model.ssm_heads:
        yield "the inner width is not divided by model.ssm_heads"


def _data(setup: Setup) -> int:
    return setup.layout.shard


def compile_step(setup: Setup, options: Mapping[str, str] = MappingProxyType({})) -> CompiledStep:
    """Compile the step for v6e, with compiler options by name (``xla_tpu_scoped_vmem_limit_kib``).

    Raises UsageError where jax or libtpu is absent, or `refusals` has a reason.

    An out-of-memory answer of the compiler is an answer, with its message; other errors of the compiler are raised.
    """
    reasons = refusals(setup)
    if reasons:
        raise UsageError("--aot: " + "; ".join(reasons))
    _environment()
    try:
        import jax
        import jaxlib
        import libtpu
    except ImportError as error:
        raise UsageError(f"--aot needs jax and libtpu ({error.name} is not installed): {EXTRA}") from None
    from receipts.estimate.aot.step import TrainingStep

    versions = f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, libtpu {getattr(libtpu, '__version__', 'unknown')}"
    step = TrainingStep(setup, _mesh(setup))
    started = time.monotonic()
    try:
        done = jax.jit(step, donate_argnums=(0, 1)).lower(*step.arguments()).compile(dict(options))
    except jax.errors.JaxRuntimeError as error:
        text = str(error)
        if "RESOURCE_EXHAUSTED" not in text and "out of memory" not in text.lower():
            raise
        return CompiledStep(seconds=time.monotonic() - started, message=text, versions=versions)
    analysis = done.memory_analysis()
    return CompiledStep(
        peak=analysis.peak_memory_in_bytes,
        argument=analysis.argument_size_in_bytes,
        output=analysis.output_size_in_bytes,
        temp=analysis.temp_size_in_bytes,
        alias=analysis.alias_size_in_bytes,
        code=analysis.generated_code_size_in_bytes,
        seconds=time.monotonic() - started,
        versions=versions,
    )


def _environment() -> None:
    """libtpu must not look for a metadata server, and jax must not look for a TPU."""
    for name, value in (
        ("TPU_SKIP_MDS_QUERY", "1"),
        ("JAX_PLATFORMS", "cpu"),
        ("TPU_ACCELERATOR_TYPE", "v6e-4"),
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        # No chip is used, so that two compiles may run beside one another.
        ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
    ):
        os.environ.setdefault(name, value)


def _mesh(setup: Setup):  # type: ignore[no-untyped-def]  # jax.sharding.Mesh, which is imported in the body only
    import numpy
    from jax.experimental import topologies
    from jax.sharding import Mesh

    layout = setup.layout
    shape = (_data(setup), layout.expert, layout.tensor)
    chips = int(numpy.prod(shape))
    topology = topologies.get_topology_desc(
        platform="tpu",
        topology_name=f"v6e:{TOPOLOGIES[chips]}",
        chips_per_host_bounds=_HOST_BOUNDS.get(chips, (2, 2, 1)),
        num_slices=1,
    )
    return Mesh(numpy.array(topology.devices).reshape(shape), ("data", "expert", "tensor"))
