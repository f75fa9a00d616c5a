"""Time profiles and traced launches that a test needs, by class and milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from receipts.plugins.why.difference import TracedLaunch
from receipts.plugins.why.profile import KernelRow, Profile, Step

MS = 1_000_000


def profile(
    steps: Sequence[dict[str, float]], *, asides: Sequence[str] = (), launches: int = 100, **others: Any
) -> Profile:
    """A profile of steps, each a time by class in milliseconds; ``asides`` say which are set aside."""
    names = tuple(dict.fromkeys(name for step in steps for name in step))
    times = [tuple(round(step.get(name, 0) * MS) for name in names) for step in steps]
    asides = [*asides, *[""] * (len(steps) - len(asides))]
    kept = [row for row, aside in zip(times, asides, strict=True) if not aside]
    rows = tuple(
        KernelRow(name, f"{name} kernel", sum(row[at] for row in kept), len(kept)) for at, name in enumerate(names)
    )
    values = {"marks": len(steps) + 1, "told": (100, 0, 0), "facts": {}, "rows": rows, **others}
    return Profile(
        "torch.profiler",
        "0",
        False,
        classes=names,
        steps=tuple(
            Step(at, sum(row), aside, launches, row) for at, (row, aside) in enumerate(zip(times, asides, strict=True))
        ),
        **values,
    )


def launch(name: str, *profiles: Profile, rank: str = "device 0") -> TracedLaunch:
    """A traced launch of one rank."""
    return TracedLaunch(name, name, {rank: profiles})


def steady(count: int = 5, **values: Any) -> Profile:
    """A profile of so many equal steps; what is no field of a profile is a class: ``data_wait`` is *data wait*."""
    others = {name: value for name, value in values.items() if name in Profile.__slots__ or name == "launches"}
    times = {name.replace("_", " "): value for name, value in values.items() if name not in others}
    return profile([times] * count, **others)
