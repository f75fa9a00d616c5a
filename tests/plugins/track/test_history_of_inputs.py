"""A history goes on where launches begin to record what they were started with."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from receipts.axes.configuration import configuration
from receipts.plugins.track.line import history_of
from receipts.receipt import Parsed
from receipts.store import open_store
from store_receipts import BASE, RULEBOOK, judged, parsed

LANE = RULEBOOK.lanes.of("cpu-torch")
COMMAND = "python t.py --heads 8"


def launch(seed: int, options: Mapping[str, str] | None) -> Parsed:
    """A launch of ``t.py``; without options one that came before inputs were recorded."""
    draw = random.Random(seed)
    steps = [round(draw.gauss(0.8, 0.004), 6) for _ in range(60)]
    measured = {**json.loads(BASE.read_bytes())["measurement"], "step_durations_seconds": steps}
    section: dict[str, Any] = {"numerics__learning_rate": None, "model__heads": None}
    if options is not None:
        section["inputs"] = {"program": "t.py", "capture": "whole", "options": dict(options), "defaults": {"lr": "0.1"}}
        section["schema_version"] = "1.1"
    return parsed(measurement=measured, run__context="preset", run__command=COMMAND, **section)


def test_a_history_goes_on_from_before_inputs_were_recorded(tmp_path: Path) -> None:
    earlier = [launch(seed, None) for seed in range(3)]
    later = [launch(seed, {"heads": "8"}) for seed in range(3, 6)]
    with open_store(f"sqlite:///{tmp_path / 'r.db'}") as store:
        for one in (*earlier, *later):
            store.submit(*judged(one))
        points = {point.id for point in history_of(store, later[-1], LANE, "step_seconds").points}
        assert points == {item.id for item in (*earlier, *later)}
        found = store.query.replicate_candidates(later[0], configuration(later[0], LANE))
        assert {item.id for item in earlier} <= set(found)
