"""The TPU compiler beside the estimate: a step compiled for v6e on a host without TPUs, and its bytes a chip.

The answer is the compiler's own account of its bytes, or its refusal as the product's own reader reads it. Needs jax
and libtpu (the extra ``aot``), and no TPU. Only `compile_step` imports them, when it is called.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from receipts.axes.lane import Lane
from receipts.base.errors import UsageError
from receipts.base.units import signed_percent
from receipts.estimate.setup import Setup
from receipts.publish.page import Section, table_of
from receipts.publish.text import amount
from receipts.questions.fit import MemoryEstimate, predicted_rows, setup_of
from receipts.receipt import Parsed
from receipts.receipt.patterns import BlockKind

if TYPE_CHECKING:
    from receipts.ingest.reading import AllocationFailure


MAX_MESSAGE = 600  # characters of a refusal that the page shows
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
    """Why this setup cannot be compiled here; empty if it can."""
    return tuple(_refusals(setup))


def _refusals(setup: Setup) -> Iterator[str]:
    layout, model = setup.layout, setup.model
    chips = layout.tensor * layout.expert * _data(setup)
    if setup.serving:
        yield "only a train step is compiled, and run.kind is serving"
    if layout.pipeline > 1 or layout.context > 1:
        yield "pipeline and context parallelism are not compiled: the step is one SPMD program; set both to 1"
    if chips not in TOPOLOGIES:
        yield f"{chips} chips are not a v6e slice; there are {', '.join(map(str, TOPOLOGIES))}"
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

    Raises UsageError if jax or libtpu is absent, or `refusals` has a reason.

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
    from receipts.plugins.aot.step import TrainingStep

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


ACCELERATOR = "tpu-v6e"


@dataclass(frozen=True, slots=True)
class CompilerAnswer:
    """What the compiler said, the failure in it (None if it compiled), and the estimated bytes beside it."""

    compiled: CompiledStep
    failure: AllocationFailure | None
    estimated: float

    @property
    def error(self) -> float | None:
        """(estimated − compiled) / compiled; None if the compiler refused."""
        total = self.compiled.total
        return self.estimated / total - 1 if total else None


def ask_compiler(parsed: Parsed, lane: Lane, estimate: MemoryEstimate) -> CompilerAnswer:
    """Compile the described train step for v6e. Raises UsageError if that cannot be done, with the reason."""
    from receipts.receipt.accelerators import find_accelerator

    setup = setup_of(parsed, lane)
    if setup is None:
        raise UsageError(f"--aot: too little is stated to compile; state {', '.join(estimate.missing)}")
    chip = find_accelerator(parsed.stated.get("hardware.accelerator"))
    if chip is not None and chip.key != ACCELERATOR:
        raise UsageError(f"--aot compiles for {ACCELERATOR}, and hardware.accelerator is {chip.key}")

    compiled = compile_step(setup, compiler_options(parsed))
    return CompilerAnswer(compiled, _failure(compiled.message), estimate.total_bytes or 0.0)


def compiler_options(parsed: Parsed) -> dict[str, str]:
    """Compiler options that the plan sets, as MaxText's users do, through ``LIBTPU_INIT_ARGS``."""
    chosen = {}
    for path, value in parsed.stated.items():
        name = path.removeprefix("flags.").removeprefix("LIBTPU_INIT_ARGS.").removesuffix(".value")
        if path.startswith("flags.LIBTPU_INIT_ARGS.") and "." not in name:
            chosen[name.lstrip("-")] = str(value).lower() if isinstance(value, bool) else str(value)
    return chosen


def _failure(message: str) -> AllocationFailure | None:
    if not message:
        return None
    from receipts.ingest.ending import failure_in

    return failure_in(" ".join(message.split()).encode())


def answer_json(answer: CompilerAnswer) -> dict[str, Any]:
    """The answer as data: bytes a chip, None if the compiler gave none."""
    compiled, failure = answer.compiled, answer.failure
    return {
        "total_bytes": compiled.total,
        "peak_bytes": compiled.peak,
        "argument_bytes": compiled.argument,
        "output_bytes": compiled.output,
        "temp_bytes": compiled.temp,
        "alias_bytes": compiled.alias,
        "code_bytes": compiled.code,
        "seconds": round(compiled.seconds, 1),
        "versions": compiled.versions,
        "error": answer.error,
        "failure": failure and _leaves(failure) | {"message": compiled.message[:1000]},
    }


def _leaves(failure: AllocationFailure) -> dict[str, Any]:
    leaves = {
        "phase": "compile",
        "class": failure.class_,
        "requested_bytes": failure.requested_bytes,
        "used_bytes": failure.used_bytes,
        "free_bytes": failure.free_bytes,
        "limit_bytes": failure.limit_bytes,
        "operator": failure.operator,
    }
    return {name: value for name, value in leaves.items() if value is not None}


def oom_receipt(parsed: Parsed, estimate: MemoryEstimate, answer: CompilerAnswer) -> dict[str, Any]:
    """A receipt of the refusal: the plan, its predicted geometry, and what the compiler said. UsageError without one.

    It has the plan's signature, so that `preflight` finds it. But no launch of the plan's framework failed: this
    product's decoder was compiled, on a host without a TPU. So it is `quoted`, a prediction and not a known failure.
    """
    if answer.failure is None:
        raise UsageError("the compiler took this plan: there is no failure to write down")
    tree: dict[str, Any] = json.loads(parsed.raw)
    words = dict(part.split(" ", 1) for part in answer.compiled.versions.split(", "))
    known = {name: version for name, version in words.items() if version != "unknown"}
    launch = hashlib.sha256(parsed.raw + answer.compiled.message.encode()).hexdigest()[:32]
    tree["run"] = {
        **{name: value for name, value in tree.get("run", {}).items() if value is not None},
        "launch": launch,
        "kind": "training",
        "outcome": "oom",
        "provenance": "quoted",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "receipts fit PLAN --aot",
    }
    tree["memory"] = {**tree.get("memory", {}), "predicted": predicted_rows(estimate)}
    tree["failure"] = _leaves(answer.failure) | {"message": answer.compiled.message[:1000]}
    tree["wheels"] = {**tree.get("wheels", {}), **known}
    tree["notes"] = {
        **tree.get("notes", {}),
        "aot": (
            "the described step as a JAX decoder, compiled ahead of time for TPU v6e on a host without a TPU "
            f"({answer.compiled.seconds:.1f} s); nothing ran on a chip"
        ),
    }
    return tree


def section(answered: CompilerAnswer) -> Section:
    """The compiler's answer as a section of the estimate's page."""
    compiled = answered.compiled
    title = f"The compiler, {compiled.versions}, {compiled.seconds:.0f} s"
    if compiled.total is None:
        failure = answered.failure
        what = f"{failure.class_}: " if failure is not None else ""
        note = f"refuses it, {what}{' '.join(compiled.message.split())[:MAX_MESSAGE]}"
        return Section("compiler", title, (note,))
    sizes = (
        ("arguments", compiled.argument),
        ("outputs", compiled.output),
        ("outputs that are arguments", compiled.alias),
        ("temporaries", compiled.temp),
        ("code", compiled.code),
        ("peak and code", compiled.total),
    )
    after = (f"estimated {amount(answered.estimated)}, {signed_percent(answered.error or 0.0)}",)
    table = table_of("", "a chip | #bytes", ((name, amount(value)) for name, value in sizes), after)
    return Section("compiler", title, tables=(table,))
