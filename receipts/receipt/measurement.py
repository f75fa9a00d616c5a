"""Sections of a receipt that a run produces: ``measurement``, ``memory`` and ``failure``.

They hold every step's duration, the numbers that were stated, the health of the run, bytes by physical chip and
phase, and what ended a launch early. Annotations are evaluated here (no ``annotations`` of ``__future__``): pydantic
would compile their text at every start.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from receipts.receipt.leaf import (
    Amount,
    Bytes,
    Count,
    Name,
    Positive,
    Seconds,
    Section,
    Share,
    Text,
    ending,
    note,
    observed,
    regime,
    section,
    work,
)

StepFlag = Literal["warmup", "compile", "recompile", "checkpoint", "eval", "profile", "data"]
Statistic = Literal["median", "mean", "mean_of_rates", "last", "best", "single_step", "total"]
Duration = Annotated[float, Field(ge=-1e12, le=1e12)]
MAX_STEPS = 100_000


class Window(Section):
    """The measured window, as positions in the list of steps (first inclusive, last exclusive)."""

    start: Count | None = regime("First step of the window.")
    stop: Count | None = regime("Step after the last of the window.")
    reason: Name | None = note("Why the window stops before the last step.")
    warmup_steps: Count | None = regime("Steps run before the window.")
    stated: Name | None = regime("The window in the source's own words.")


class Stated(Section):
    """Numbers as the source printed them, each with its basis. They are claims to check, not measurements."""

    statistic: Statistic | None = observed("Statistic over the steps that the rates and times report.")
    tokens_per_second: Amount | None = observed("Tokens per second over all chips.", unit="tokens/s")
    tokens_per_second_stated: Name | None = note("Source text of `tokens_per_second`.")
    tokens_per_second_per_chip: Amount | None = observed("Tokens per second per chip.", unit="tokens/s/chip")
    tokens_per_second_per_chip_stated: Name | None = note("Source text of `tokens_per_second_per_chip`.")
    step_seconds: Amount | None = observed("Time of a step, or of a call in a microbenchmark.", unit="seconds")
    step_seconds_stated: Name | None = note("Source text of `step_seconds`, in its own unit.")
    tflops_per_second_per_chip: Amount | None = observed("TFLOP/s per chip.", unit="TFLOP/s/chip")
    tflops_per_second_per_chip_stated: Name | None = note("Source text of `tflops_per_second_per_chip`.")
    mfu: Amount | None = observed("Model FLOPs utilization, as a fraction.")
    mfu_stated: Name | None = note("Source text of `mfu`.")
    formula: Name | None = observed("Id of the FLOPs formula behind MFU and TFLOP/s.")
    flops_per_token: Amount | None = observed("FLOPs per token, forward and backward.", unit="FLOPs/token")
    flops_per_token_stated: Name | None = note("Source text of `flops_per_token`.")
    peak_flops_per_second: Amount | None = observed("The peak per chip that MFU divides by.", unit="FLOP/s")
    peak_dtype: Name | None = observed("Data type of that peak.")
    peak_sparse: bool | None = observed("Whether that peak is the figure for sparse matrices.")


class Loss(Section):
    """Loss in nats per token."""

    first: float | None = observed("Loss of the first step.", unit="nats/token", ranks="first", group="loss")
    last: float | None = observed("Loss of the last step.", unit="nats/token", ranks="first", group="loss")
    finite: bool | None = observed("Whether every loss was finite.", ranks="all")
    steps: tuple[Count, ...] | None = observed("Steps at which `values` were taken.", ranks="first", group="loss")
    values: tuple[float, ...] | None = observed("Losses at `steps`.", unit="nats/token", ranks="first", group="loss")
    validation: float | None = observed("Validation loss.", unit="nats/token", ranks="first")
    bits_per_byte: Amount | None = observed("Validation bits per byte.", unit="bits/byte", ranks="first")


class GradientNorm(Section):
    """Global gradient norm."""

    first: float | None = observed("Norm of the first step.", ranks="first")
    last: float | None = observed("Norm of the last step.", ranks="first")
    largest: float | None = observed("Largest norm.", ranks="max")
    finite: bool | None = observed("Whether every norm was finite.", ranks="all")


class PathCounter(Section):
    """How often a kernel or route ran, and how often it should have run: steps times layers, or zero for a fallback."""

    name: Name = note("The counter.", required=True)
    count: Count = note("Observed value.", required=True)
    expected: Count | None = observed("Expected value.")
    steps: Count | None = observed("Steps that it covers.")
    layers: Count | None = observed("Layers that count.")


class Goodput(Section):
    """Wall time by activity."""

    step_seconds: Seconds | None = observed("In steps.", unit="seconds", ranks="mean")
    compile_seconds: Seconds | None = observed("Compiling.", unit="seconds", ranks="mean")
    checkpoint_seconds: Seconds | None = observed("In checkpoints.", unit="seconds", ranks="mean")
    eval_seconds: Seconds | None = observed("In evaluation.", unit="seconds", ranks="mean")
    data_seconds: Seconds | None = observed("Waiting for data.", unit="seconds", ranks="mean")
    idle_seconds: Seconds | None = observed("The rest.", unit="seconds", ranks="mean")


class Routing(Section):
    """What the router did."""

    dropped_share: Share | None = observed("Share of tokens dropped.", ranks="max")
    load_ratio: Amount | None = observed("Largest expert load over the mean.", ranks="max")
    capacity_used: Share | None = observed(
        "Share of the experts' capacity that held tokens.", since="1.1", ranks="mean"
    )
    padded_to_capacity: bool | None = observed("Whether expert batches were padded to capacity.")


class Health(Section):
    """Clocks, power and heat over the window."""

    clock_mhz: Amount | None = observed("Median SM or core clock.", unit="MHz", ranks="median", files="median")
    power_watts: Amount | None = observed("Median power per chip.", unit="watts", ranks="median", files="median")
    temperature_celsius: float | None = observed("Highest temperature.", unit="°C", ranks="max", files="max")
    throttle_reasons: tuple[Name, ...] | None = observed(
        "Throttle reasons; an empty list means none.", ranks="union", files="union"
    )
    clock_spread: Share | None = observed(
        "Spread of clocks over chips, (largest − smallest) / largest.", ranks="max", files="max"
    )
    rank_skew: Share | None = observed("Median over steps of (slowest − fastest rank) / slowest.")


class Energy(Section):
    """Power over the measured window, by meters that were read again and again."""

    watts_per_chip: Amount | None = observed("Mean power per chip.", unit="watts", since="1.1", ranks="mean")
    seconds: Seconds | None = observed("Time that it is the mean over.", unit="seconds", since="1.1", ranks="min")
    samples: Count | None = observed("Readings of the meter with the fewest.", since="1.1", ranks="min")
    meter: Literal["chip", "node"] | None = regime(
        "What is metered: the chip, or the node with all that it holds.", since="1.1"
    )


class Measurement(Section):
    """What was measured, and how."""

    step_durations_seconds: Annotated[tuple[Duration, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Every step's duration in order; with many ranks the per-step maximum.", unit="seconds", ranks="code"
    )
    interval_means_seconds: Annotated[tuple[Duration, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Mean step time of each interval in order, if the log prints means and no single steps.", unit="seconds"
    )
    interval_steps: Annotated[tuple[Positive, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Number of steps that each of `interval_means_seconds` is over."
    )
    step_wall_seconds: Annotated[tuple[Duration, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Wall time from the end of the step before to the end of each step, in order, without evaluations, "
        "checkpoints, compiles and profiles in between; of intervals the mean over their steps.",
        unit="seconds",
        since="1.1",
        ranks="code",
    )
    step_tokens_per_second: Annotated[tuple[Duration, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Tokens per second over all chips of each step, in order, if nothing tells how many tokens a step has.",
        unit="tokens/s",
        since="1.1",
    )
    step_flags: dict[StepFlag, tuple[Count, ...]] | None = observed(
        "Positions in the list of steps that are not ordinary, by reason.", ranks="code"
    )
    steps: Positive | None = observed("Number of steps, if their durations are not kept.")
    window: Window | None = section("The measured window.")
    timer: Name | None = regime("Clock: perf_counter, cuda_event, framework log.")
    synchronisation: Name | None = regime("What the timer waits for: device, none, loss read.")
    region: Name | None = regime("What is timed: step, forward, forward+backward, kernel.")
    tokens_per_step: Positive | None = work("Tokens per step over all chips.", unit="tokens")
    stated: Stated | None = section("Numbers as the source printed them.")
    loss: Loss | None = section("Loss.")
    gradient_norm: GradientNorm | None = section("Gradient norm.")
    path_counters: tuple[PathCounter, ...] | None = observed("Kernel and route counters with their expected values.")
    goodput: Goodput | None = section("Wall time by category.")
    routing: Routing | None = section("Routing.")
    exposed_communication_seconds: Seconds | None = observed(
        "Communication per step that does not overlap with computation.", unit="seconds", ranks="max", files="max"
    )
    health: Health | None = section("Clocks, power, heat, skew.")
    energy: Energy | None = section("Power over the window.")
    outer_clock_ratio: Amount | None = observed(
        "How fast the clock of the steps ran, by that of the process that launched the job: 1 is right.", since="1.1"
    )
    outer_seconds_per_step: Seconds | None = observed(
        "Wall time of a step by the clock of the process that launched the job.", unit="seconds", since="1.1"
    )
    outer_cpu_seconds: Seconds | None = observed(
        "Processor time of the job and of its children, as the kernel told the process that launched it.",
        unit="seconds",
        since="1.1",
    )
    job_clock_ratio: Amount | None = observed(
        "How fast a clock ran that the job put into Python's module `time`, by the interpreter's own: 1 is right.",
        since="1.1",
        ranks="median",
    )
    cpu_wait_share: Amount | None = observed(
        "Share of the recorded time in which the main thread was ready and another program had its processor.",
        since="1.1",
        ranks="max",
    )
    kernel_clock_ratio: Amount | None = observed(
        "How fast the clock of the steps ran, by the kernel's ticks between both ends of the run: 1 is right.",
        since="1.1",
        ranks="median",
    )


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
    reserved_bytes: Bytes | None = note("Highest pool, where the figure is of live memory.")
    limit_bytes: Bytes | None = note("Memory that the runtime may use, of the same devices.")
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

    phase: FailurePhase | None = ending("When it failed.", ranks="code")
    class_: FailureClass | None = ending("What kind of failure.", alias="class", ranks="code")
    requested_bytes: Bytes | None = observed("The one request that failed.", unit="bytes", ranks="code")
    used_bytes: Bytes | None = observed("Memory in use, or the total that a plan needs.", unit="bytes", ranks="code")
    free_bytes: Bytes | None = observed("Free memory.", unit="bytes", ranks="code")
    limit_bytes: Bytes | None = observed("The limit.", unit="bytes", ranks="code")
    operator: Name | None = observed("Operator or site.", ranks="code")
    message: Text | None = observed("The message, shortened.", ranks="code")
    chip: Count | None = observed("Physical chip, where the failure has one.", ranks="code")
    rank: Count | None = observed("Rank, where the failure has one.", ranks="code")
    step: Count | None = observed("Step at which it failed.", ranks="code")
    ladder: tuple[LadderAttempt, ...] | None = observed("Later attempts, in order.")
