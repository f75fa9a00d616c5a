"""Stores that hold the corners of a grid: launches whose speed is a product of known factors."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import rule_cases
from receipts.judging.verdict import ReceiptVerdict
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.store import Store, prepare
from store_receipts import RULEBOOK

STEPS = 120
NOISE = 0.0004  # of a launch; that of a step is five times as much
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
Corner = frozenset[str]


class Grid:
    """Axes with two values each. ``factors`` are step-time factors of the second values, ``joint`` of pairs of axes.

    A corner is the set of axes that have their second value.
    """

    def __init__(
        self,
        values: Mapping[str, tuple[Any, Any]],
        factors: Mapping[str, float],
        joint: Mapping[frozenset[str], float] | None = None,
        seed: int = 1,
    ) -> None:
        self.values = values
        self.factors = factors
        self.joint = joint or {}
        self._draw = random.Random(seed)
        self._count = 0

    def launch(self, corner: Iterable[str], **leaves: Any) -> Parsed:
        """One launch at a corner, with further leaves set (`__` for the dot)."""
        at = frozenset(corner)
        self._count += 1
        tree = rule_cases.base("cpu")
        for axis, (first, second) in self.values.items():
            value = second if axis in at else first
            if value is None:
                rule_cases.take(tree, axis)
            else:
                rule_cases.put(tree, axis, value)
        started = BEGIN + timedelta(hours=self._draw.randrange(2000), minutes=self._draw.randrange(60))
        drawn = self._draw.gauss(0.0, NOISE)
        seconds = 0.4 * self.factor(at) * (1.0 + drawn)
        steps = [round(seconds * (1.0 + self._draw.gauss(0.0, 5 * NOISE)), 7) for _ in range(STEPS)]
        stated = {
            "run__launch": f"launch-{self._count}-{self._draw.randrange(2**40)}",
            "run__label": f"{'+'.join(sorted(name.rpartition('.')[2] for name in at)) or 'base'} {self._count}",
            "run__started": started.isoformat(),
            "run__finished": (started + timedelta(minutes=10)).isoformat(),
            "measurement__step_durations_seconds": steps,
            "measurement__stated": None,
            "measurement__window": {"start": 10, "stop": STEPS, "warmup_steps": 10},
            "measurement__steps": STEPS,
            "measurement__step_flags": {"warmup": list(range(10)), "compile": [], "recompile": []},
            "measurement__path_counters": None,
            **leaves,
        }
        for path, value in stated.items():
            name = path.replace("__", ".")
            if value is None:
                rule_cases.take(tree, name)
            else:
                rule_cases.put(tree, name, value)
        return rule_cases.parsed(tree)

    def factor(self, corner: Collection[str]) -> float:
        """The step time there, over that of the corner where nothing moved."""
        found = 1.0
        for axis in corner:
            found *= self.factors[axis]
        for pair, value in self.joint.items():
            if pair <= set(corner):
                found *= value
        return found

    def put(self, store: Store, corners: Iterable[Iterable[str]], launches: int = 3) -> dict[Corner, list[Parsed]]:
        """Store launches of each corner."""
        made = {frozenset(corner): [self.launch(corner) for _ in range(launches)] for corner in corners}
        keep(store, [item for group in made.values() for item in group])
        return made


def keep(store: Store, launches: Sequence[Parsed]) -> None:
    """Store receipts as valid ones; the rules have tests of their own."""
    store.write([prepare(*_judged(item)) for item in launches])


def _judged(one: Parsed) -> tuple[Launch, ReceiptVerdict]:
    lane = RULEBOOK.lanes.of(one.receipt.run.lane)
    name = f"{lane.name}@{lane.version}"
    verdict = ReceiptVerdict(one.id, one.receipt.run.label, "valid", "witnessed", (), (), name, "0" * 64, "1")
    return Launch(one, lane), verdict
