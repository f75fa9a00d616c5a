"""Section ``measurement``: every step's duration, the numbers that were stated, and the health of the run."""

from typing import Annotated, Literal

from pydantic import Field

from receipts.receipt.leaf import (
    Amount,
    Count,
    Name,
    Positive,
    Seconds,
    Section,
    Share,
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
    """Numbers as the source printed them, each with its basis. A claim to be checked, not a measurement."""

    statistic: Statistic | None = observed("Which statistic over the steps the rates and times are.")
    tokens_per_second: Amount | None = observed("Tokens a second over all chips.", unit="tokens/s")
    tokens_per_second_stated: Name | None = note("Source text of `tokens_per_second`.")
    tokens_per_second_per_chip: Amount | None = observed("Tokens a second a chip.", unit="tokens/s/chip")
    tokens_per_second_per_chip_stated: Name | None = note("Source text of `tokens_per_second_per_chip`.")
    step_seconds: Amount | None = observed("Time of a step, or of a call in a microbenchmark.", unit="seconds")
    step_seconds_stated: Name | None = note("Source text of `step_seconds`, in its own unit.")
    tflops_per_second_per_chip: Amount | None = observed("TFLOP/s a chip.", unit="TFLOP/s/chip")
    tflops_per_second_per_chip_stated: Name | None = note("Source text of `tflops_per_second_per_chip`.")
    mfu: Amount | None = observed("Model FLOPs utilization, as a fraction.")
    mfu_stated: Name | None = note("Source text of `mfu`.")
    formula: Name | None = observed("Id of the FLOPs formula behind MFU and TFLOP/s.")
    flops_per_token: Amount | None = observed("FLOPs a token, forward and backward.", unit="FLOPs/token")
    flops_per_token_stated: Name | None = note("Source text of `flops_per_token`.")
    peak_flops_per_second: Amount | None = observed("The peak that MFU divides by, a chip.", unit="FLOP/s")
    peak_dtype: Name | None = observed("Type whose peak that is.")
    peak_sparse: bool | None = observed("Whether that peak is the sparse figure.")


class Loss(Section):
    """Loss in nats a token."""

    first: float | None = observed("Loss of the first step.", unit="nats/token")
    last: float | None = observed("Loss of the last step.", unit="nats/token")
    finite: bool | None = observed("Whether every loss was finite.")
    steps: tuple[Count, ...] | None = observed("Steps at which `values` were taken.")
    values: tuple[float, ...] | None = observed("Losses at `steps`.", unit="nats/token")
    validation: float | None = observed("Validation loss.", unit="nats/token")
    bits_per_byte: Amount | None = observed("Validation bits a byte.", unit="bits/byte")


class GradientNorm(Section):
    """Global gradient norm."""

    first: float | None = observed("Norm of the first step.")
    last: float | None = observed("Norm of the last step.")
    largest: float | None = observed("Largest norm.")
    finite: bool | None = observed("Whether every norm was finite.")


class PathCounter(Section):
    """How often a kernel or route ran, beside how often it must: steps times layers, or zero for a fallback."""

    name: Name = note("The counter.", required=True)
    count: Count = note("What it stood at.", required=True)
    expected: Count | None = observed("What it must stand at.")
    steps: Count | None = observed("Steps that it covers.")
    layers: Count | None = observed("Layers that count.")


class Goodput(Section):
    """Wall time by what it was spent on."""

    step_seconds: Seconds | None = observed("In steps.", unit="seconds")
    compile_seconds: Seconds | None = observed("Compiling.", unit="seconds")
    checkpoint_seconds: Seconds | None = observed("In checkpoints.", unit="seconds")
    eval_seconds: Seconds | None = observed("In evaluation.", unit="seconds")
    data_seconds: Seconds | None = observed("Waiting for data.", unit="seconds")
    idle_seconds: Seconds | None = observed("The rest.", unit="seconds")


class Routing(Section):
    """What the router did."""

    dropped_share: Share | None = observed("Share of tokens dropped.")
    load_ratio: Amount | None = observed("Largest expert load over the mean.")
    padded_to_capacity: bool | None = observed("Whether experts were padded to capacity.")


class Health(Section):
    """Clocks, power and heat over the window."""

    clock_mhz: Amount | None = observed("Median SM or core clock.", unit="MHz")
    power_watts: Amount | None = observed("Median power a chip.", unit="watts")
    temperature_celsius: float | None = observed("Highest temperature.", unit="°C")
    throttle_reasons: tuple[Name, ...] | None = observed("Throttle reasons raised; an empty list is none.")
    clock_spread: Share | None = observed("Spread of clocks over chips, (largest − smallest) / largest.")
    rank_skew: Share | None = observed("Median over steps of (slowest − fastest rank) / slowest.")


class Measurement(Section):
    """What was measured, and how."""

    step_durations_seconds: Annotated[tuple[Duration, ...], Field(max_length=MAX_STEPS)] | None = observed(
        "Every step's duration in order; with many ranks the per-step maximum.", unit="seconds"
    )
    interval_steps: tuple[Positive, ...] | None = observed(
        "Steps that each of `step_durations_seconds` is the mean of, where a log prints means over intervals."
    )
    step_flags: dict[StepFlag, tuple[Count, ...]] | None = observed(
        "Positions in the list of steps that are not ordinary, by reason."
    )
    steps: Positive | None = observed("Steps run, where their durations are not kept.")
    window: Window | None = section("The measured window.")
    timer: Name | None = regime("Clock: perf_counter, cuda_event, framework log.")
    synchronisation: Name | None = regime("What the timer waits for: device, none, loss read.")
    region: Name | None = regime("What is timed: step, forward, forward+backward, kernel.")
    tokens_per_step: Positive | None = work("Tokens a step over all chips.", unit="tokens")
    stated: Stated | None = section("Numbers as the source printed them.")
    loss: Loss | None = section("Loss.")
    gradient_norm: GradientNorm | None = section("Gradient norm.")
    path_counters: tuple[PathCounter, ...] | None = observed("Kernel and route counters with what they must be.")
    goodput: Goodput | None = section("Wall time by category.")
    routing: Routing | None = section("Routing.")
    exposed_communication_seconds: Seconds | None = observed("Communication a step that nothing hides.", unit="seconds")
    health: Health | None = section("Clocks, power, heat, skew.")
