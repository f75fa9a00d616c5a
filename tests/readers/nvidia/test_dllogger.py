"""DLLogger's lines: steps by number or by list, settings, and what is no step of training."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.nvidia.dllogger import DLLogger


def line(step: Any, data: dict[str, Any]) -> str:
    """A line as `JSONStreamBackend` writes it."""
    head = {"timestamp": "1700000000.25", "datetime": "2023-11-14 22:13:20.250000", "elapsedtime": "9.5", "type": "LOG"}
    return f"DLLL {json.dumps({**head, 'step': step, 'data': data})}\n"


def log(*lines: str) -> Reading:
    """The one reading of a log."""
    (reading,) = scan(["".join(lines).encode()], [DLLogger])
    return reading


def test_a_step_gives_loss_norm_and_time() -> None:
    data = {"reduced_train_loss": 8.5, "lr": 1e-05, "grad_norm": 2.25, "train_step_timing in s": 3.5, "epoch": 0}
    steps = log(line(7, data)).steps
    assert steps.numbers() == [7]
    assert (steps.get(7, "loss"), steps.get(7, "grad_norm"), steps.get(7, "step_seconds")) == (8.5, 2.25, 3.5)


def test_milliseconds_are_seconds() -> None:
    assert log(line(7, {"loss": 1.0, "step_time_ms": 250.0})).steps.get(7, "step_seconds") == 0.25


@pytest.mark.parametrize("step", [12, [12], [3, 12]])
def test_the_last_number_of_a_list_is_the_step(step: Any) -> None:
    assert log(line(step, {"train_loss": 1.5})).steps.numbers() == [12]


def test_a_summary_and_an_evaluation_are_no_steps() -> None:
    assert log(line(1, {"loss": 2.0}), line(1, {"val_accuracy": 0.5}), line([], {"loss": 9.0})).steps.column(
        "loss"
    ) == [2.0]


def test_a_loss_of_nan_is_divergence() -> None:
    found = log(line(1, {"loss": 2.0}), line(2, {"loss": float("nan")}))
    assert found.diverged is True
    assert [remark.place.line for remark in found.remarks] == [2]


def test_settings_of_megatron_are_its_arguments() -> None:
    settings = {"cfg/tensor_model_parallel_size": 4, "cfg/pipeline_model_parallel_size": 8, "cfg/micro_batch_size": 1}
    stated = log(line("PARAMETER", settings), line(0, {"loss": 2.0})).stated
    assert stated["parallelism.tensor"].value == 4
    assert stated["batch.micro_batch"].value == 1
    assert stated["parallelism.tensor"].place.line == 1


def test_the_first_step_of_a_process_is_not_steady() -> None:
    lines = [line(step, {"loss": 2.0, "train_step_timing in s": 9.0 if step == 0 else 3.0}) for step in range(8)]
    assert log(*lines).not_steady == {0: "warmup"}


def test_the_published_run_has_its_fifty_steps(cases: Path) -> None:
    place = cases / "published/tables/gpu-recipes/src/utils/training_metrics/examples/dllogger.json"
    if not place.exists():
        pytest.skip("needs the published recipes")
    (reading,) = [item for item in read(place).readings if item.source == "dllogger"]
    assert len(reading.steps) == 50
    assert reading.steps.get(0, "loss") == pytest.approx(11.0628, abs=1e-4)
    assert reading.stated["parallelism.pipeline"].value == 8


def test_the_page_on_new_readers_shows_the_code_of_this_one(checkout: Path) -> None:
    page = (checkout / "docs" / "new-reader.md").read_text(encoding="utf-8")
    readers = checkout / "receipts" / "readers"
    code = (readers / "nvidia" / "dllogger.py").read_text(encoding="utf-8")
    tables = ("nvidia/dllogger.toml", "nanotron/nanotron.toml", "loops/prime_rl.toml")
    table = "".join((readers / name).read_text(encoding="utf-8") for name in tables)
    blocks = re.findall(r"```(python|toml)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    assert all(block in (code if kind == "python" else table) for kind, block in blocks)


def test_the_lines_on_the_page_are_read(checkout: Path) -> None:
    page = (checkout / "docs" / "new-reader.md").read_text(encoding="utf-8")
    assert log(*(f"{row}\n" for row in page.splitlines() if row.startswith("DLLL "))).steps.numbers() == [7, 8]
