"""The TPU compiler beside the estimate: its bytes a chip, or its refusal as the product's own reader reads it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from receipts.axes.lane import Lane
from receipts.base.errors import UsageError
from receipts.questions.fit.estimate import MemoryEstimate, predicted, setup_of
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.estimate.aot import CompiledStep
    from receipts.ingest.evidence.reading import AllocationFailure

ACCELERATOR = "tpu-v6e"


@dataclass(frozen=True, slots=True)
class CompilerAnswer:
    """What the compiler said, the failure in it (None where it compiled), and the estimated bytes beside it."""

    compiled: CompiledStep
    failure: AllocationFailure | None
    estimated: float

    @property
    def error(self) -> float | None:
        """(estimated − compiled) / compiled; None where the compiler refused."""
        total = self.compiled.total
        return self.estimated / total - 1 if total else None


def ask_compiler(parsed: Parsed, lane: Lane, estimate: MemoryEstimate) -> CompilerAnswer:
    """Compile the described train step for v6e. Raises UsageError where that cannot be done, with the reason."""
    from receipts.receipt.accelerators import find

    setup = setup_of(parsed, lane)
    if setup is None:
        raise UsageError(f"--aot: too little is stated to compile; state {', '.join(estimate.missing)}")
    chip = find(parsed.stated.get("hardware.accelerator"))
    if chip is not None and chip.key != ACCELERATOR:
        raise UsageError(f"--aot compiles for {ACCELERATOR}, and hardware.accelerator is {chip.key}")
    from receipts.estimate.aot import compile_step

    compiled = compile_step(setup, options(parsed))
    return CompilerAnswer(compiled, _failure(compiled.message), estimate.total_bytes or 0.0)


def options(parsed: Parsed) -> dict[str, str]:
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
    from receipts.ingest.evidence.memory.xla_oom import failures

    failure = failures(" ".join(message.split()))
    return failure[0] if failure else None


def as_json(answer: CompilerAnswer) -> dict[str, Any]:
    """The answer as data: bytes a chip, None where the compiler gave none."""
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
    product's decoder was compiled, on a host without a TPU. So it is `quoted`, which predicts and is no known failure.
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
    tree["memory"] = {**tree.get("memory", {}), "predicted": predicted(estimate)}
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
