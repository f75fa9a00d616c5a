"""What a benchmark hands back. Each module of this folder that measures has ``measure(quick) -> list[Result]``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Result:
    """One figure beside the floor that was measured in the same run, and the bar that it must hold.

    ``bar`` is the most that is allowed: of the ratio to the floor, or, with ``bar_on="value"``, of the value itself.
    A figure without a floor has ``floor=""``; one without a bar is only shown.
    """

    name: str
    value: float
    unit: str
    floor: str = ""
    floor_value: float = 0.0
    bar: float | None = None
    bar_on: Literal["ratio", "value"] = "ratio"

    @property
    def ratio(self) -> float | None:
        """The value in multiples of the floor; None without one."""
        return self.value / self.floor_value if self.floor else None

    @property
    def holds(self) -> bool:
        """Whether the bar is kept; a figure without a bar holds."""
        judged = self.ratio if self.bar_on == "ratio" else self.value
        return self.bar is None or (judged is not None and judged <= self.bar)

    def as_data(self) -> dict[str, Any]:
        """The figure for ``results.json``."""
        return {**asdict(self), "ratio": self.ratio, "holds": self.holds}


ROW = ("benchmark", "value", "floor", "ratio", "at most", "")


def row(result: Result) -> tuple[str, ...]:
    """The figure for people, in the columns of `ROW`."""
    bar = "-" if result.bar is None else f"{result.bar:g}×" if result.bar_on == "ratio" else shown(result.bar, result)
    floor = f"{result.floor}: {shown(result.floor_value, result)}" if result.floor else "-"
    ratio = f"{result.ratio:.1f}×" if result.ratio is not None else "-"
    state = "" if result.bar is None else "holds" if result.holds else "missed"
    return (result.name, shown(result.value, result), floor, ratio, bar, state)


def shown(value: float, result: Result) -> str:
    """A value with its unit, to three digits."""
    return f"{value:,.3g} {result.unit}" if value < 1000 else f"{value:,.0f} {result.unit}"


def show(results: Sequence[Result], *, as_json: bool = False) -> int:
    """Print figures one a line, or as JSON; returns the exit code: 1 where a bar is missed."""
    if as_json:
        print(json.dumps([result.as_data() for result in results], indent=2))
    else:
        print("\n".join("  ".join(cell for cell in row(result) if cell) for result in results))
    return int(not all(result.holds for result in results))
