"""What a FLOPs formula is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from receipts.metrics.flops.geometry import Geometry


@dataclass(frozen=True, slots=True)
class FlopsPerToken:
    """FLOPs a token for forward and backward, or None with the receipt paths that are not stated.

    `because` says in words what a formula cannot count at all; no further stated field would help then.
    """

    flops: float | None
    missing: tuple[str, ...] = ()
    because: str = ""


@dataclass(frozen=True, slots=True)
class FlopsFormula:
    """A convention for FLOPs a token. `framework` groups the eras of one framework's formula."""

    id: str
    describe: str
    source: str
    function: Callable[[Geometry], FlopsPerToken]
    framework: str = ""


def need(geometry: Geometry, *names: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The named numbers, and the paths of those that are not stated; the numbers are whole only without paths."""
    values = tuple(getattr(geometry, name) for name in names)
    missing = tuple(geometry.path(name) for name, value in zip(names, values, strict=True) if value is None)
    return tuple(0 if value is None else value for value in values), missing


def missing(paths: Iterable[str]) -> FlopsPerToken:
    """No figure, for want of these fields; each once, in order."""
    return FlopsPerToken(None, tuple(dict.fromkeys(paths)))
