"""Lines of launches: one experiment over days, whose code, host or level changes at known launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from grid_store import BEGIN, Grid
from receipts.receipt import Parsed

AXIS = "code.imported_digest"


def line(
    levels: Sequence[float], codes: Sequence[int] | None = None, start: int = 0, seed: int = 1, **leaves: Any
) -> Iterator[Parsed]:
    """A launch a day at these step-time factors; ``codes`` number the code of each launch, ``start`` its first day.

    A leaf may be a list, with a value for each launch.
    """
    for index, level in enumerate(levels):
        code = codes[index] if codes is not None else 0
        day = BEGIN + timedelta(days=start + index)
        grid = Grid({AXIS: ("0" * 64, f"{code:064x}")}, {AXIS: level}, seed=1000 * seed + start + index)
        own = {name: value[index] if isinstance(value, list) else value for name, value in leaves.items()}
        named = {"run__label": f"day {start + index}", "run__launch": f"launch-{seed}-{start + index}"}
        yield grid.launch({AXIS}, **{**named, "run__started": day.isoformat(), "run__finished": None, **own})
