"""Exports in the forms of other programs: their own tools take them, and read the values that the receipts state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

import rule_cases as cases
from receipts.base.errors import UsageError
from receipts.plugins.exchange.export import ExportOptions
from receipts.plugins.exchange.mlflow_export import ForeignFormat, export_foreign
from receipts.plugins.exchange.mlperf import find_logs, import_logs
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
    "submission_status": "onprem",
    "cache_clear": None,
    "seed": 7,
    "global_batch_size": 8,
    "train_samples": 3901,
    "eval_samples": 173,
    "gradient_accumulation_steps": 1,
    "opt_name": "adamw",
    "opt_base_learning_rate": 4e-4,
    "opt_adamw_weight_decay": 1e-4,
    "opt_gradient_clip_norm": 0.3,
    "opt_learning_rate_warmup_factor": 0.0,
    "opt_learning_rate_training_steps": 1024,
    "lora_rank": 16,
    "lora_alpha": 32,
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


def exported(store: Store, place: Path, form: ForeignFormat) -> Path:
    assert export_foreign(store, place, form, ExportOptions(), force=False) == 2
    return place


def the_log(folder: Path) -> Path:
    (path,) = (path for path in folder.glob("*.log") if "llama2_70b_lora" in path.read_text(encoding="utf-8"))
    return path


def test_a_log_holds_the_settings_and_the_means_of_the_log_it_came_from(store: Store, tmp_path: Path) -> None:
    path = the_log(exported(store, tmp_path / "logs", "mllog"))
    records = [json.loads(line.removeprefix(":::MLLOG ")) for line in path.read_text(encoding="utf-8").splitlines()]
    values = {item["key"]: item["value"] for item in records}
    kept = {key: value for key, value in SETTINGS.items() if key not in ("cache_clear", "submission_status")}
    assert {key: values[key] for key in kept} == kept
    assert values["cache_clear"] is True
    assert [item["value"]["train_step_time"] for item in records if item["key"] == "tracked_stats"] == MEANS
    assert values["eval_accuracy"] == 0.93 - 11 / 1_000
    assert [item["time_ms"] for item in records] == sorted(item["time_ms"] for item in records)
    assert records[-1]["key"] == "run_stop"
    assert records[-1]["metadata"] == {"status": "success"}


def test_an_exported_log_imports_again_with_the_same_means(store: Store, tmp_path: Path) -> None:
    (again,) = import_logs(find_logs(the_log(exported(store, tmp_path / "logs", "mllog"))))
    assert again.raw is not None, again.problems
    measurement = json.loads(again.raw)["measurement"]
    assert (measurement["interval_means_seconds"], measurement["interval_steps"]) == (MEANS, [6] * 12)


def test_the_compliance_checker_of_mlperf_accepts_an_exported_log(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compliance = pytest.importorskip("mlperf_logging.compliance_checker.mlp_compliance")
    path = the_log(exported(store, tmp_path / "logs", "mllog"))
    monkeypatch.chdir(str(resources.files("mlperf_logging.compliance_checker")))
    checker = compliance.make_checker("training", "4.1.0", True, False)
    assert compliance.main(str(path), "training_4.1.0/common.yaml", checker)[0]


def test_mlflow_reads_an_exported_run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient(exported(store, tmp_path / "runs", "mlflow").as_uri())
    (experiment,) = (item for item in client.search_experiments() if item.name == "mlperf-closed")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.data.params["batch.global_batch"]) == ("FINISHED", "8")
    history = client.get_metric_history(run.info.run_id, "interval_mean_seconds")
    assert [(point.step, point.value) for point in history] == list(zip(range(6, 73, 6), MEANS, strict=True))


def test_a_file_store_has_a_file_for_each_metric_parameter_and_tag(store: Store, tmp_path: Path) -> None:
    place = exported(store, tmp_path / "runs", "mlflow")
    experiments = {yaml.safe_load(path.read_text())["name"]: path.parent for path in place.glob("*/meta.yaml")}
    (run,) = (path.parent for path in experiments["mlperf-closed"].glob("*/meta.yaml"))
    about = yaml.safe_load((run / "meta.yaml").read_text())
    assert (about["run_id"], about["status"], about["artifact_uri"]) == (run.name, 3, str(run / "artifacts"))
    assert {path.name for path in run.iterdir()} == {"meta.yaml", "metrics", "params", "tags", "artifacts"}
    points = (run / "metrics/interval_mean_seconds").read_text().splitlines()
    assert [float(line.split()[1]) for line in points] == MEANS
    assert not (run / "metrics/step_seconds").read_text().count("\n") > 1, "a mean over an interval is not a step"
    assert (run / "params/batch.global_batch").read_text() == "8"


# clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql of pytorch/test-infra; {} is an open map.
TEXTS = {"": str}
RUNNER = {"name": str, "type": str, "gpu_info": str, "gpu_count": int, "extra_info": TEXTS}
HUD: dict[str, Any] = {
    **dict.fromkeys(("schema_version", "name", "repo", "head_branch", "head_sha"), str),
    **dict.fromkeys(("timestamp", "workflow_id", "run_attempt", "job_id"), int),
    "runners": [RUNNER],
    "benchmark": {"name": str, "mode": str, "dtype": str, "extra_info": TEXTS},
    "model": {"name": str, "type": str, "backend": str, "origins": [str], "extra_info": TEXTS},
    "inputs": {"": {"dtype": str, "extra_info": TEXTS}},
    "dependencies": {"": {"repo": str, "branch": str, "sha": str, "version": str, "extra_info": TEXTS}},
    "metric": {"name": str, "benchmark_values": [float], "target_value": float, "extra_info": TEXTS},
}


def fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(item, kind[0]) for item in value)
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(fits(part, kind.get("", kind.get(key))) for key, part in value.items())
    return type(value) is kind and (kind is not int or value >= 0)


def test_records_of_the_hud_have_the_types_of_its_table(store: Store, tmp_path: Path) -> None:
    records = json.loads(exported(store, tmp_path / "hud.json", "hud-v3").read_text(encoding="utf-8"))
    assert records
    assert all(fits(record, HUD) for record in records)
    assert not fits({**records[0], "timestamp": 1.5}, HUD)
    assert not fits({**records[0], "surplus": ""}, HUD)
    launches = {record["benchmark"]["extra_info"]["launch"] for record in records}
    assert len(launches) == 2
    assert all(re.fullmatch(r"[0-9a-f]{64}", record["benchmark"]["extra_info"]["receipt"]) for record in records)


@pytest.mark.parametrize("form", ["mllog", "mlflow", "hud-v3"])
def test_a_place_that_is_taken_is_left_alone(store: Store, tmp_path: Path, form: ForeignFormat) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UsageError):
        export_foreign(store, place, form, ExportOptions(), force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (place / "notes.txt").read_text() == "mine"
