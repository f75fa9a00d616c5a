"""One value of a metric, and the kinds of metric that an offense can spoil."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


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

    ``text`` says what the number is, or how its source printed it. What is `unsteady` is shown and is no sample.
    """

    value: float | None
    launches: int
    source: Literal["steps", "unsteady", "stated", "derived", "memory", "none"]
    text: str | None = None
