"""Sections ``memory`` and ``failure``: bytes by physical chip and phase, and what ended a launch early."""

from typing import Final, Literal

from receipts.receipt.leaf import Bytes, Count, Name, Section, Text, ending, note, observed, section

MemoryPhase = Literal["post_init", "post_compile", "post_step0", "steady"]
FailurePhase = Literal["startup", "compile", "first_window", "steady", "unknown"]
FailureClass = Literal[
    "compile_hbm",
    "compile_vmem",
    "compile_smem",
    "program_load",
    "runtime_alloc",
    "fragmentation",
    "oversized_request",
    "foreign_process",
    "outside_allocator",
    "capacity",
    "host",
    "not_oom",
]
# What ends a launch before a step has shown anything, and what steps alone can show.
BEFORE_STEPS: Final = ("startup", "compile", "first_window")
SEEN_IN_STEPS: Final = (
    *("path.witnessed", "evidence", "numerics.recompute_applied", "measurement", "memory"),
    "compile.compiles_after_warmup",
)


class ChipMemory(Section):
    """One physical chip in one phase."""

    chip: Count = note("Physical chip, by the runtime's ordinal over all hosts.", required=True)
    phase: MemoryPhase = note("When it was read.", required=True)
    bytes_used: Bytes | None = observed("In use at that time.", unit="bytes")
    bytes_limit: Bytes | None = observed("Memory that the runtime may use.", unit="bytes")
    peak_bytes: Bytes | None = observed("Highest live allocation.", unit="bytes")
    peak_reserved_bytes: Bytes | None = observed("Highest pool, live or not.", unit="bytes")
    step: Count | None = observed("Step at which the peak was reached.")


class AggregateMemory(Section):
    """One figure where there should be one per chip; kept as stated and never treated as a chip's own."""

    bytes: Bytes = note("The figure.", required=True)
    over: Literal["max", "mean", "sum", "rank0", "unstated"] = note("Aggregation over chips.", required=True)
    kind: Literal["live", "reserved", "process", "unstated"] = note("Which kind of memory.", required=True)
    stated: Name | None = note("Source text.")


class PredictedMemory(Section):
    """Predicted bytes per chip on one surface of the memory geometry."""

    surface: Name = note("Surface: parameters, optimizer, activations, ….", required=True)
    bytes: Bytes = note("Bytes per chip.", required=True)


class Memory(Section):
    """Memory by chip and phase."""

    chips: tuple[ChipMemory, ...] | None = observed("Rows by physical chip and phase.")
    aggregate: AggregateMemory | None = section("One figure for several chips, as stated.")
    predicted: tuple[PredictedMemory, ...] | None = observed("Predicted bytes per chip, by surface.")


class LadderAttempt(Section):
    """One rung tried after a failure."""

    launch: Name = note("Launch of the attempt.", required=True)
    rung: Name = note("Rung of the lane's ladder.", required=True)
    reason: Text | None = note("Reason for this rung, if one was skipped.")
    rank: Count | None = observed("The rank that was degraded alone, without the rest of its mesh.")


class Failure(Section):
    """Why the launch did not end well."""

    phase: FailurePhase | None = ending("When it failed.")
    class_: FailureClass | None = ending("What kind of failure.", alias="class")
    requested_bytes: Bytes | None = observed("The one request that failed.", unit="bytes")
    used_bytes: Bytes | None = observed("Memory in use, or the total that a plan needs.", unit="bytes")
    free_bytes: Bytes | None = observed("Free memory.", unit="bytes")
    limit_bytes: Bytes | None = observed("The limit.", unit="bytes")
    operator: Name | None = observed("Operator or site.")
    message: Text | None = observed("The message, shortened.")
    chip: Count | None = observed("Physical chip, where the failure has one.")
    rank: Count | None = observed("Rank, where the failure has one.")
    step: Count | None = observed("Step at which it failed.")
    ladder: tuple[LadderAttempt, ...] | None = observed("Later attempts, in order.")
