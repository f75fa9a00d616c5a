"""Metrics declare themselves here, one place each, beside what one value of a metric is and which offenses spoil it.

Unit, better direction, what may move without counting, which regimes and which equal work a metric depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from receipts.base.errors import NotFound, near
from receipts.base.units import GIB


class Taint(StrEnum):
    """Which metrics an offense spoils."""

    ALL = "all"
    RATE = "rate"  # tokens per second and step time
    MFU = "mfu"
    MEMORY = "memory"
    LOSS = "loss"  # losses and gradient norms
    GOODPUT = "goodput"  # wall time by category
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MetricReading:
    """A metric's value on one side: ``launches`` values, one a launch, and their location.

    ``text`` says what the number is, or how its source printed it. An `unsteady` number is shown, but is not a sample.
    """

    value: float | None
    launches: int
    source: Literal["steps", "unsteady", "stated", "derived", "memory", "none"]
    text: str | None = None


Better = Literal["higher", "lower", "neither"]


class Indifference(NamedTuple):
    """An axis that cannot move the metric, with the reason, while the axes of ``unchanged`` stand still."""

    axis: str
    because: str
    unchanged: tuple[str, ...] = ()


class Metric(NamedTuple):
    """One number that people compare.

    ``summary`` names the launch summary that it is read from: `step` (the typical step: the median steady
    one), `rate` (tokens over the wall time of the same steps, stalls included), `memory`, `compile`, `goodput`, `loss`,
    `outcome`, `total` (the time of all steps, by the loop's own clock), `energy`, `cost`.
    ``regimes`` and ``equal_work`` are leaf paths.
    """

    name: str
    title: str
    unit: str
    better: Better
    taint: Taint
    summary: Literal["step", "rate", "memory", "compile", "goodput", "loss", "outcome", "total", "energy", "cost"]
    exact: bool = False
    regimes: tuple[str, ...] = ()
    equal_work: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    indifferent: tuple[Indifference, ...] = ()
    scale: float = 1.0
    shown_unit: str = ""


_STEADY = ("measurement.region", "measurement.timer", "measurement.synchronisation")
_GLOBAL_BATCH = Indifference(
    "batch.global_batch",
    "a chip holds one micro batch at a time, whatever the number of accumulation steps",
    unchanged=("batch.micro_batch",),
)
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("tokens_per_second", "tokens/s", "tokens/s", "higher", Taint.RATE, "rate", regimes=_STEADY),
        Metric(
            "tokens_per_second_per_chip",
            "tokens/s/chip",
            "tokens/s/chip",
            "higher",
            Taint.RATE,
            "rate",
            regimes=_STEADY,
        ),
        Metric(
            "step_seconds",
            "step time",
            "seconds",
            "lower",
            Taint.RATE,
            "step",
            regimes=_STEADY,
            equal_work=("measurement.tokens_per_step",),
            scale=1e3,
            shown_unit="ms",
        ),
        Metric(
            "tflops_per_second_per_chip",
            "TFLOP/s/chip",
            "TFLOP/s",
            "higher",
            Taint.MFU,
            "rate",
            regimes=_STEADY,
            basis=("formula",),
        ),
        Metric(
            "mfu",
            "MFU",
            "fraction",
            "higher",
            Taint.MFU,
            "rate",
            regimes=_STEADY,
            basis=("formula", "peak_flops_per_second", "peak_dtype", "peak_sparse"),
            scale=100,
            shown_unit="%",
        ),
        *(
            Metric(
                name,
                label,
                "bytes",
                "lower",
                Taint.MEMORY,
                "memory",
                indifferent=(_GLOBAL_BATCH,),
                scale=1 / GIB,
                shown_unit="GiB",
            )
            for name, label in (("peak_bytes", "peak per chip"), ("peak_reserved_bytes", "peak pool per chip"))
        ),
        Metric(
            "compile_seconds",
            "compile",
            "seconds",
            "lower",
            Taint.NONE,
            "compile",
            regimes=("compile.cache_state",),
            shown_unit="s",
        ),
        # To a target that the loop stops at: what a record of speed runs counts, whatever its steps.
        Metric(
            "training_seconds",
            "training time",
            "seconds",
            "lower",
            Taint.GOODPUT,
            "total",
            regimes=("measurement.timer",),
            equal_work=("measurement.loss.validation",),
            shown_unit="s",
        ),
        Metric(
            "goodput",
            "goodput",
            "fraction",
            "higher",
            Taint.GOODPUT,
            "goodput",
            regimes=("compile.cache_state",),
            scale=100,
            shown_unit="%",
        ),
        Metric(
            "joules_per_token",
            "joules/token",
            "J/token",
            "lower",
            Taint.RATE,
            "energy",
            regimes=(*_STEADY, "measurement.energy.meter"),
        ),
        Metric(
            "cost_per_token",
            "cost/Mtoken",
            "/token",
            "lower",
            Taint.RATE,
            "cost",
            regimes=_STEADY,
            scale=1e6,
            shown_unit="/Mtoken",
        ),
        Metric("outcome", "outcome", "", "neither", Taint.NONE, "outcome", True, indifferent=(_GLOBAL_BATCH,)),
        # No number: it asks only whether two launches are one experiment.
        Metric("experiment", "one experiment", "", "neither", Taint.NONE, "outcome", True),
        *(
            Metric(name, label, unit, "lower", Taint.LOSS, "loss", equal_work=("measurement.steps",))
            for name, label, unit in (
                ("loss_last", "last loss", "nats/token"),
                ("validation_loss", "validation loss", "nats/token"),
                ("bits_per_byte", "validation bits/byte", "bits/byte"),
            )
        ),
        Metric("gradient_norm", "gradient norm", "", "neither", Taint.LOSS, "loss"),
    )
}
DEFAULT = "tokens_per_second"
SHOWN = (
    "tokens_per_second",
    "step_seconds",
    "tflops_per_second_per_chip",
    "mfu",
    "peak_bytes",
    "compile_seconds",
)


def get(name: str) -> Metric:
    """The metric of that name. Raises NotFound with the known names."""
    metric = METRICS.get(name)
    if metric is None:
        raise NotFound(f"there is no metric {name!r}; known: {', '.join(METRICS)}{near(name, METRICS)}")
    return metric


def effect_word(metric: Metric, kind: str) -> str:
    """An effect's kind in a word that fits the metric: memory is lower or higher, and not slow."""
    if metric.summary in ("step", "rate"):
        return kind
    lower = metric.better == "lower"
    return {"faster": "lower" if lower else "higher", "slower": "higher" if lower else "lower"}.get(kind, kind)


def shown(metric: Metric, value: float, more: int = 0) -> str:
    """A value with its unit, for people; with so many digits more than are usual."""
    scaled = value * metric.scale
    unit = metric.shown_unit or metric.unit
    if unit == "%":
        return f"{scaled:.{2 + more}f} %"
    digits = f"{scaled:,.{more}f}" if abs(scaled) >= 1_000 else f"{scaled:.{4 + more}g}"
    return f"{digits} {unit}".rstrip()
