"""Known causes on a CPU: profiles of real launches of torch 2.13, two a side, frozen; the cause is the largest line.

A decoder of two blocks with a chain of pointwise operators, one thread, fourteen profiled steps on a machine that was
not idle. Each pair changes one thing against *base*: a loader that sleeps 60 ms, math attention, autocast
to bf16, and torch.compile. The pair *jax* is of JAX 0.10.2: a jitted step with a batch that comes after 10 or 50 ms.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.plugins.why.difference import TracedLaunch, difference
from receipts.plugins.why.profile import read_profiles
from time_profiles import launch

PAIRS = Path(__file__).parent / "pairs"


def side(name: str) -> list[TracedLaunch]:
    """The two launches of a side."""
    profiles = read_profiles((PAIRS / f"{name}.json").read_bytes())
    return [TracedLaunch(name, name, {"host": [profile]}) for profile in profiles]


@pytest.mark.parametrize(
    ("name", "axis", "classes"),
    [
        ("stall", "data.loader", {"data wait"}),
        ("math", "path.attention", {"attention"}),
        ("bf16", "precision", {"gemm"}),
        ("comp", "posture", {"elementwise", "compiled code"}),
    ],
)
def test_the_known_cause_is_the_largest_line(name: str, axis: str, classes: set[str]) -> None:
    table = difference(side("base"), side(name), None, [axis])
    largest = max(table.lines, key=lambda line: abs(line.change))
    assert largest.name in classes
    assert axis in largest.axis or largest.standing == "noise"
    assert [line.name for line in table.lines if line.standing == "unexpected"] == []


def test_the_stall_is_as_long_as_the_loader_slept() -> None:
    lines = {line.name: line for line in difference(side("base"), side("stall"), None, ["data.loader"]).lines}
    assert 60e6 < lines["data wait"].change < 70e6  # a sleep is never shorter


def test_the_stall_of_a_jitted_step_is_the_wait_for_its_batch() -> None:
    a, b = (
        [
            launch("jax", profile, rank="device 0")
            for profile in read_profiles((PAIRS / f"jax-{name}.json").read_bytes())
        ]
        for name in ("base", "stall")
    )
    table = difference(a, b, None, ["data.loader"])
    largest = max(table.lines, key=lambda line: abs(line.change))
    assert (largest.name, largest.standing) == ("data wait", "consistent")
    assert 39.6e6 < largest.change < 42e6
