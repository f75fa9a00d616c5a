"""How each kind of metric is read from a launch, with where the number came from; and what compiling cost the launch.

A typical step is the median of the steady steps, a rate their tokens over their wall time; without them the stated
number is given as *stated*, and a rate that merely follows from a stated time is *derived*. The cost of compiling is
given in seconds, as a share of the wall time, and as the number of steps after which it is one percent.

Flags say of slow steps that they were something else. A reader flags what a log says of its steps. A job flags what it
likes: the seconds of its evaluations, checkpoints and waits stand in spans, which a recorder times, and whatever
neither a span, a trace nor the warm-up explains was a step that somebody paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from receipts.axes.lane import KILOWATT_HOUR
from receipts.metrics.arithmetic import steps_to_share
from receipts.metrics.chips import highest
from receipts.metrics.registry import MetricReading
from receipts.receipt.accelerators import find_accelerator
from receipts.stats.distributions import median

if TYPE_CHECKING:
    from receipts.metrics.launch import Launch
    from receipts.metrics.registry import Metric
    from receipts.receipt import Parsed


SHARE: Final = 0.01
_GOODPUT: Final = "measurement.goodput."
_CATEGORIES: Final = ("step", "compile", "checkpoint", "eval", "data", "idle")


@dataclass(frozen=True, slots=True)
class Amortization:
    """``seconds`` of compiling; ``share`` of the wall time, None if that is not known.

    After ``steps`` steady steps compiling is `SHARE` of both together; None without a steady step.
    """

    seconds: float
    share: float | None
    steps: int | None

    def __str__(self) -> str:
        if self.seconds == 0.0:
            return "0 s of compiling"
        seconds = f"{self.seconds:,.0f}" if self.seconds >= 100.0 else f"{self.seconds:.3g}"
        parts = [f"{seconds} s of compiling"]
        if self.share is not None:
            parts.append(f"{100 * self.share:.1f} % of the wall time")
        if self.steps is not None:
            parts.append(f"{100 * SHARE:.0f} % after {self.steps:,} step{'' if self.steps == 1 else 's'}")
        return ", ".join(parts)


def amortization(launch: Launch) -> Amortization | None:
    """What compiling cost a launch; None if it does not state its compile time."""
    stated = launch.stated.get("compile.compile_seconds", launch.stated.get(f"{_GOODPUT}compile_seconds"))
    if stated is None:
        return None
    seconds, step = float(stated), launch.step_seconds
    spans = wall_time(launch)
    wall = math.fsum(spans.values()) if spans else None
    if wall is None and launch.durations:  # every kept step, and compiling where no step contains it
        wall = math.fsum(launch.durations) + (0.0 if "compile" in launch.flagged else seconds)
    share = seconds / wall if wall is not None and 0.0 <= seconds <= wall and wall > 0.0 else None
    return Amortization(seconds, share, steps_to_share(seconds, step, SHARE) if step else None)


def wall_time(launch: Launch) -> Mapping[str, float]:
    """Seconds by category of goodput, each once; empty if steps and another are not both stated.

    What a launch compiled outside its spans of compiling, as lazy backends do, lies in what its steps took beyond as
    many steady ones, and the rest in idle time. Where no steps are kept, what idle time cannot hold lies in steps.
    """
    stated = {name: launch.stated.get(f"{_GOODPUT}{name}_seconds") for name in _CATEGORIES}
    seconds = {name: float(value) for name, value in stated.items() if value is not None}
    if "step" not in seconds or len(seconds) == 1 or math.fsum(seconds.values()) == 0.0:
        return {}
    step, compiled, idle = (seconds.get(name, 0.0) for name in ("step", "compile", "idle"))
    hidden = float(launch.stated.get("compile.compile_seconds", 0.0)) - compiled
    if hidden > 0.0:
        steps = sum(launch.interval_steps) or len(launch.durations)
        beyond = step - launch.level * steps if launch.level else hidden - idle
        in_steps = min(max(beyond, 0.0), hidden, step)
        outside = min(hidden - in_steps, idle)
        seconds |= {"step": step - in_steps, "idle": idle - outside, "compile": compiled + in_steps + outside}
    return seconds


def goodput(launch: Launch) -> float | None:
    """The share of the wall time that went into steps; None if the wall time is not stated by category."""
    seconds = wall_time(launch)
    return seconds["step"] / math.fsum(seconds.values()) if seconds else None


def goodput_shown(launch: Launch) -> str | None:
    """Goodput, and the shares of what else took time, the largest first."""
    seconds = wall_time(launch)
    if not seconds:
        return None
    total = math.fsum(seconds.values())
    rest = sorted(((value, name) for name, value in seconds.items() if name != "step" and value > 0.0), reverse=True)
    others = ", ".join(f"{name} {100 * (value / total):.1f} %" for value, name in rest)
    return f"goodput {100 * (seconds['step'] / total):.1f} %" + (f" ({others})" if others else "")


# Where a metric is read that no steps give, by its name or its summary.
_LEAVES = {
    "memory": "memory.chips",
    "compile": "compile.compile_seconds",
    "goodput": "measurement.goodput.step_seconds",
    "total": "measurement.goodput.step_seconds",
    "energy": "measurement.energy.watts_per_chip",
    "cost": "a price in [prices] of receipts.toml",
    "loss_last": "measurement.loss.last",
    "validation_loss": "measurement.loss.validation",
    "bits_per_byte": "measurement.loss.bits_per_byte",
    "gradient_norm": "measurement.gradient_norm.last",
}
NOTHING = MetricReading(None, 0, "none")


def _stated(launch: Launch, path: str) -> float | None:
    value = launch.stated.get(path)
    return float(value) if value is not None else None


def _step(launch: Launch, _metric: Metric) -> MetricReading:
    if launch.step_seconds is not None:
        return MetricReading(launch.step_seconds, 1, "steps", launch.of_steps)
    stated = _stated(launch, "measurement.stated.step_seconds")
    text = launch.stated.get("measurement.stated.step_seconds_stated")
    return MetricReading(stated, 1, "stated", text) if stated is not None else NOTHING


def _rate(launch: Launch, metric: Metric) -> MetricReading:
    path = f"measurement.stated.{metric.name}"
    stated, text = _stated(launch, path), launch.stated.get(f"{path}_stated")
    if not launch.steady and stated is not None:
        return MetricReading(stated, 1, "stated", text)
    total, source = _tokens_per_second(launch)
    value = rate_from_total(launch, metric.name, total)
    if value is not None and source != "steps":
        return MetricReading(value, 1, "derived")
    if value is not None:
        computed = metric.name == "mfu" and launch.stated.get("measurement.stated.mfu") is None
        return MetricReading(value, 1, "steps", f"{launch.of_rate}; {launch.basis}" if computed else launch.of_rate)
    return MetricReading(stated, 1, "stated", text) if stated is not None else NOTHING


def _tokens_per_second(launch: Launch) -> tuple[float | None, str]:
    tokens, chips = launch.tokens_per_step, _stated(launch, "hardware.chips")
    if launch.steady and launch.rate is not None:
        return launch.rate, "steps"
    stated = _stated(launch, "measurement.stated.tokens_per_second")
    if stated is not None:
        return stated, "stated"
    each = _stated(launch, "measurement.stated.tokens_per_second_per_chip")
    if each is not None and chips is not None:
        return each * chips, "derived"
    seconds = _stated(launch, "measurement.stated.step_seconds")
    if seconds and tokens is not None:
        return tokens / seconds, "derived"
    return None, "none"


def rate_from_total(launch: Launch, name: str, total: float | None) -> float | None:
    """A rate of the metric of that name from tokens per second over all chips; None without what it needs."""
    if total is None or name == "tokens_per_second":
        return total
    chips = _stated(launch, "hardware.chips")
    if chips is None:
        return None
    if name == "tokens_per_second_per_chip":
        return total / chips
    if launch.work is None:
        return None
    per_chip = total * launch.work.flops / chips
    if name == "tflops_per_second_per_chip":
        return per_chip / 1e12
    return per_chip / launch.peak if launch.peak else None


def lacking(launch: Launch, metric: Metric) -> str:
    """The leaf that a launch lacks most for a metric that cannot be read of it."""
    if metric.summary not in ("step", "rate"):
        return _LEAVES.get(metric.name, _LEAVES.get(metric.summary, "measurement"))
    timed = launch.series if metric.summary == "rate" else launch.durations
    tokens = launch.rate is not None or launch.tokens_per_step is not None
    wanted = {
        "measurement.step_durations_seconds": bool(timed) or "measurement.stated.step_seconds" in launch.stated,
        "measurement.tokens_per_step": metric.summary == "step" or tokens,
        "hardware.chips": "hardware.chips" in launch.stated,
        "measurement.stated.flops_per_token": "measurement.stated.flops_per_token" in launch.stated,
    }
    return next((leaf for leaf, there in wanted.items() if not there), "measurement.stated.peak_flops_per_second")


def _memory(launch: Launch, metric: Metric) -> MetricReading:
    memory = launch.parsed.receipt.memory
    if memory is None:
        return NOTHING
    fullest = highest(memory, metric.name)
    if fullest is not None:
        return MetricReading(float(fullest), 1, "memory")
    figure = memory.aggregate
    if figure is None or figure.kind != ("live" if metric.name == "peak_bytes" else "reserved"):
        return NOTHING
    # One figure for several chips is a chip's own only where it is said to be the highest.
    if launch.stated.get("hardware.chips") == 1 or figure.over == "max":
        return MetricReading(float(figure.bytes), 1, "stated", figure.stated)
    return NOTHING


def _leaf(launch: Launch, metric: Metric) -> MetricReading:
    value = _stated(launch, _LEAVES.get(metric.name) or _LEAVES[metric.summary])
    return MetricReading(value, 1, "stated") if value is not None else NOTHING


def _goodput(launch: Launch, _metric: Metric) -> MetricReading:
    value = goodput(launch)
    return MetricReading(value, 1, "stated", goodput_shown(launch)) if value is not None else NOTHING


def _total(launch: Launch, _metric: Metric) -> MetricReading:
    """All steps by the loop's own clock, of a launch whose steps are kept beside it."""
    value = _stated(launch, "measurement.goodput.step_seconds")
    return MetricReading(value, 1, "steps" if launch.timed else "stated") if value is not None else NOTHING


MIN_SAMPLES: Final = 10  # of a window: with fewer, what lies between two readings is anybody's guess
MIN_COVERED: Final = 0.5  # of the window's time


def watts(launch: Launch) -> float | None:
    """Mean watts per chip over the window; None without a meter, or where it was read too seldom (R129)."""
    leaves = ("watts_per_chip", "samples", "seconds")
    power, samples, seconds = (_stated(launch, f"measurement.energy.{leaf}") for leaf in leaves)
    if power is None or samples is None or seconds is None or samples < MIN_SAMPLES:
        return None
    return power if seconds >= MIN_COVERED * window_seconds(launch) else None


def window_seconds(launch: Launch) -> float:
    """Wall time of the measured steps; 0 where they were not kept."""
    if launch.segment is None or launch.pace is None:
        return 0.0
    kept = launch.interval_steps
    return launch.pace * (sum(launch.segment.of(kept)) if kept else launch.segment.kept)


def _energy(launch: Launch, _metric: Metric) -> MetricReading:
    total, source = _tokens_per_second(launch)
    power, chips = watts(launch), _stated(launch, "hardware.chips")
    if not total or power is None or chips is None:
        return NOTHING
    meter = launch.stated.get("measurement.energy.meter", "chip")
    text = f"{power:,.0f} W a {'chip' if meter == 'chip' else 'chip, metered at the node'}, {launch.of_rate}"
    return MetricReading(power * chips / total, 1, "steps" if source == "steps" else "derived", text)


def _cost(launch: Launch, _metric: Metric) -> MetricReading:
    """Chip-hours at the table's price, and the energy where the table has a price of it too."""
    total, source = _tokens_per_second(launch)
    chips, prices = _stated(launch, "hardware.chips"), launch.lane.prices
    name = str(launch.stated.get("hardware.accelerator", ""))
    machine = find_accelerator(name)
    same = (value for key, value in prices.items() if machine is not None and find_accelerator(key) == machine)
    price = prices.get(name, next(same, None))
    if not total or chips is None or price is None:
        return NOTHING
    power, energy = watts(launch), prices.get(KILOWATT_HOUR)
    by_hour = chips * (price + (power * energy / 1e3 if power is not None and energy is not None else 0.0))
    text = f"{price:g} a chip-hour, {launch.of_rate}"
    return MetricReading(by_hour / 3600 / total, 1, "steps" if source == "steps" else "derived", text)


def _outcome(launch: Launch, _metric: Metric) -> MetricReading:
    return MetricReading(None, 1, "stated", launch.parsed.receipt.run.outcome)


# By the summary of a metric.
READERS: Mapping[str, Callable[[Launch, Metric], MetricReading]] = {
    "step": _step,
    "rate": _rate,
    "memory": _memory,
    "compile": _leaf,
    "goodput": _goodput,
    "total": _total,
    "loss": _leaf,
    "energy": _energy,
    "cost": _cost,
    "outcome": _outcome,
}


_SPANS: Final = ("checkpoint", "eval", "data")
_LONGER: Final = 1.02  # times the middle of the other steps: below it a flag hides nothing
_LOOSE: Final = 1.1  # what stands beside a span in its step, and a second: caches that are cold after it
_LOOSE_SECONDS: Final = 1.0
_PROFILED: Final = 16  # steps that a witness slows, with those in which it writes its trace
_TRACES: Final = ("profile", "trace", "nsys", "xplane", "xspace")


def unshown(parsed: Parsed, durations: Sequence[float], flagged: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """By flag, the slow steps that nothing shows to have been what it says; of receipts of logs none."""
    recorded = parsed.receipt.run.recorded
    if not durations or (recorded is not None and recorded.by == "ingest"):
        return {}
    last = len(durations)
    named = {at for positions in flagged.values() for at in positions}
    plain = [seconds for at, seconds in enumerate(durations) if at not in named]
    if not plain:
        return {}
    usual = median(plain)
    slow = {
        flag: [at for at in positions if at < last and durations[at] > usual * _LONGER]
        for flag, positions in flagged.items()
    }
    measurement = parsed.receipt.measurement
    goodput = measurement.goodput if measurement is not None else None
    hidden: dict[str, list[int]] = {}
    for flag in _SPANS:
        beyond = math.fsum(durations[at] - usual for at in slow.get(flag, ()))
        span = getattr(goodput, f"{flag}_seconds", None) or 0.0
        if beyond > span * _LOOSE + _LOOSE_SECONDS:
            hidden[flag] = slow[flag]
    # Steps that traces show; any number where one does not say how many.
    traces = [item for item in parsed.receipt.evidence or () if any(name in item.kind.lower() for name in _TRACES)]
    counts: list[Any] = [(item.observed or {}).get("steps") for item in traces]
    traced = math.inf if any(count is None for count in counts) else sum(map(float, filter(None, counts)))
    if len(slow.get("profile", ())) > _PROFILED + traced:
        hidden["profile"] = slow["profile"]
    # The warm-up is over after the flagged steps from the first on, and after what the window leaves out.
    flagged_first = sorted(flagged.get("warmup", ()))
    warm = next((step for step, at in enumerate(flagged_first) if at != step), len(flagged_first))
    window = measurement.window if measurement is not None else None
    if window is not None:
        warm = max(warm, window.start or 0, window.warmup_steps or 0)
    late = [at for at in slow.get("warmup", ()) if at >= warm]
    return hidden | ({"warmup": late} if late else {})
