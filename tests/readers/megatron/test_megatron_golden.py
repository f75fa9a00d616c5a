"""Golden values of Megatron-LM's tests, in the form with steps and in the older one with a list."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from receipts.ingest.reading import Reading
from receipts.ingest.source import Source
from receipts.readers.megatron.golden import Golden


def read(folder: Path, found: Any) -> Reading:
    path = folder / "golden_values_dev.json"
    path.write_text(found if isinstance(found, str) else json.dumps(found, indent=4))
    (reading,) = Golden().read(Source(path, path.name))
    return reading


def block(values: Any, start: int = 1, gap: int = 5) -> dict[str, Any]:
    return {"start_step": start, "end_step": 50, "step_interval": gap, "values": values}


def test_values_by_step(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "lm loss": block({"1": 10.5, "2": 10.25, "3": 10.0}, gap=1),
            "num-zeros": block({"1": 5.0}),
            "mem-max-allocated-bytes": block({"1": 1000.0, "2": 2000.0, "3": 2000.0}),
            "mem-allocated-bytes": block({"1": 500.0, "2": 600.0, "3": 700.0}),
            "iteration-time": block({"1": "nan", "2": 1.5, "3": 0.5}),
        },
    )
    assert found.steps.numbers() == [1, 2, 3]
    assert found.steps.column("step_seconds") == [None, 1.5, 0.5]
    assert (found.diverged, found.not_steady[1]) == (False, "warmup")
    (row,) = found.memory
    assert (row.step, row.peak_bytes, row.bytes_used) == (2, 2000, 600)


def test_values_in_a_list(tmp_path: Path) -> None:
    found = read(tmp_path, {"lm loss": block([10.5, 10.0, 9.5], start=0), "iteration_timing_avg": 0.125})
    assert (found.steps.numbers(), found.steps.get(5, "loss")) == ([0, 5, 10], 10.0)
    assert found.stated["measurement.stated.step_seconds"].value == 0.125


def test_a_loss_that_is_nan_is_divergence(tmp_path: Path) -> None:
    found = read(tmp_path, {"lm loss": block({"1": 10.5, "2": "nan"})})
    loss = found.steps.get(2, "loss")
    assert found.diverged is True
    assert loss is not None
    assert math.isnan(loss)


def test_the_form_is_known_by_its_content() -> None:
    assert Golden.claims(b'{"lm loss": {"start_step": 0, "end_step": 50, "step_interval": 5, "values": [1.0]}}')
    assert not Golden.claims(b'{"metrics": {"step_interval": 5}}')
    assert not Golden.claims(b"iteration 1/2")


def test_broken_content_is_told(tmp_path: Path) -> None:
    assert read(tmp_path, '{"lm loss": {"step_interval"').remarks[0].kind == "broken"
    assert read(tmp_path, "[" * 100_000).remarks[0].kind == "broken"
    assert len(read(tmp_path, {"lm loss": block({"x": 1, "9" * 99: 1.0, "3": None, "4": [1], "5": True})}).steps) == 0
