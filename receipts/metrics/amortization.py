"""What compiling cost a launch: seconds, share of the wall time, and after how many steps it is one percent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts.metrics.arithmetic import steps_to_share

if TYPE_CHECKING:
    from receipts.metrics.launch import Launch

SHARE: Final = 0.01
_GOODPUT: Final = "measurement.goodput."
_CATEGORIES: Final = ("step", "compile", "checkpoint", "eval", "data", "idle")


@dataclass(frozen=True, slots=True)
class Amortization:
    """``seconds`` of compiling; ``share`` of the wall time, None where that is not known.

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
    """What compiling cost a launch; None where it does not state its compile time."""
    stated = launch.stated.get("compile.compile_seconds", launch.stated.get(f"{_GOODPUT}compile_seconds"))
    if stated is None:
        return None
    seconds, step = float(stated), launch.step_seconds
    wall = _wall_seconds(launch, seconds)
    share = seconds / wall if wall is not None and 0.0 <= seconds <= wall and wall > 0.0 else None
    return Amortization(seconds, share, steps_to_share(seconds, step, SHARE) if step else None)


def wall_time(launch: Launch) -> Mapping[str, float]:
    """Seconds by category of goodput, each once; empty where steps and another are not both stated.

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
    """The share of the wall time that went into steps; None where the wall time is not stated by category."""
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


def _wall_seconds(launch: Launch, compiling: float) -> float | None:
    """Wall seconds: the sum by category, else every kept step, and compiling where no step contains it."""
    seconds = wall_time(launch)
    if seconds:
        return math.fsum(seconds.values())
    if not launch.durations:
        return None
    return math.fsum(launch.durations) + (0.0 if "compile" in launch.flagged else compiling)
