"""An export as runs of MLflow: MLflow reads the values that the receipts state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import rule_cases as cases
from receipts.base.errors import UsageError
from receipts.plugins.exchange.export import ExportOptions
from receipts.plugins.exchange.mlflow import export_runs
from receipts.plugins.exchange.published import find_logs, import_logs
from receipts.receipt import Document
from receipts.store import Store, open_store
from receipts.workflows.submit import submit
from store_receipts import raw

pytestmark = pytest.mark.slow

MEANS = [2 + block / 64 for block in range(12)]
SETTINGS: dict[str, Any] = {
    "submission_benchmark": "llama2_70b_lora",
    "submission_division": "closed",
    "submission_org": "Acme",
    "submission_platform": "1xH200",
    "seed": 7,
    "global_batch_size": 8,
    "opt_name": "adamw",
    "opt_base_learning_rate": 4e-4,
}


def record(key: str, at: int, value: Any = None, event: str = "POINT_IN_TIME", **metadata: Any) -> str:
    body = {"namespace": "", "time_ms": 1_700_000_000_000 + at, "event_type": event, "key": key}
    return ":::MLLOG " + json.dumps({**body, "value": value, "metadata": metadata}) + "\n"


def log() -> str:
    text = record("init_start", 0) + "".join(record(key, 10, value) for key, value in SETTINGS.items())
    text, now = text + record("init_stop", 900) + record("run_start", 1_000), 1_000
    for block, mean in enumerate(MEANS):
        text += record("block_start", now, samples_count=block * 48)
        now += int(6_000 * mean)
        count = (block + 1) * 48
        text += record("tracked_stats", now, {"train_step_time": mean}, samples_count=count)
        text += record("block_stop", now, samples_count=count)
        text += record("eval_accuracy", now, 0.93 - block / 1_000, samples_count=count)
    return text + record("run_stop", now, status="success")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One published log, and a launch with a duration for each of its steps."""
    root = tmp_path_factory.mktemp("foreign")
    place = root / "training_results_v4.1/Acme/results/box/llama2_70b_lora/result_0.txt"
    place.parent.mkdir(parents=True)
    place.write_text(log(), encoding="utf-8")
    (published,) = import_logs(find_logs(place))
    assert published.raw is not None, published.problems
    with open_store(str(root / "store.sqlite"), create=True) as opened:
        both = [Document(published.raw, "log"), Document(raw(), "own")]
        assert all(item.stored for item in submit(both, opened, cases.rulebook()))
        yield opened


def exported(store: Store, place: Path) -> Path:
    assert export_runs(store, place, ExportOptions(), force=False) == 2
    return place


def test_a_file_store_has_a_file_for_each_metric_parameter_and_tag(store: Store, tmp_path: Path) -> None:
    place = exported(store, tmp_path / "runs")
    experiments = {yaml.safe_load(path.read_text())["name"]: path.parent for path in place.glob("*/meta.yaml")}
    (run,) = (path.parent for path in experiments["mlperf-closed"].glob("*/meta.yaml"))
    about = yaml.safe_load((run / "meta.yaml").read_text())
    assert (about["run_id"], about["status"], about["artifact_uri"]) == (run.name, 3, str(run / "artifacts"))
    # What MLflow 3.17.2 writes of a run, beside an empty list of tags.
    source = {"source_name", "source_type", "source_version", "entry_point_name", "user_id"}
    place = {"experiment_id", "artifact_uri", "lifecycle_stage", "run_id", "run_name"}
    assert about.keys() - {"run_uuid", "deleted_time", "tags"} == {*source, *place, "status", "start_time", "end_time"}
    assert {path.name for path in run.iterdir()} == {"meta.yaml", "metrics", "params", "tags", "artifacts"}
    points = (run / "metrics/interval_mean_seconds").read_text().splitlines()
    assert [float(line.split()[1]) for line in points] == MEANS
    assert not (run / "metrics/step_seconds").read_text().count("\n") > 1, "a mean over an interval is not a step"
    assert (run / "params/batch.global_batch").read_text() == "8"


def test_a_place_that_is_taken_is_left_alone(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UsageError):
        export_runs(store, place, ExportOptions(), force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (place / "notes.txt").read_text() == "mine"
