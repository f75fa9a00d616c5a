"""The live run of MLflow and of W&B shows the receipt's id and the verdict, and a failure of either ends no job."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from receipts.emit import Recorder
from receipts.plugins.exchange.live import live, show

CASE = Path(__file__).resolve().parents[2] / "cases" / "base.json"


class Client:
    """MLflow's client, as far as it is called: each call makes another one, and all write to the same."""

    def __init__(self) -> None:
        self.tags: dict[str, Any] = {}
        self.metrics: dict[str, float] = {}
        self.artifacts: list[tuple[str, str]] = []

    def set_tag(self, run_id: str, key: str, value: Any) -> None:
        self.tags[f"{run_id} {key}"] = value

    def log_metric(self, run_id: str, key: str, value: float) -> None:
        self.metrics[f"{run_id} {key}"] = value

    def log_artifact(self, run_id: str, local_path: str, artifact_path: str) -> None:
        self.artifacts.append((run_id, artifact_path))


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Both libraries, each with an active run."""
    run = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
    uploaded: list[str] = []
    wandb = SimpleNamespace(summary={}, log_artifact=lambda path, name, type: uploaded.append(f"{type} {name}"))
    client = Client()
    mlflow: Any = SimpleNamespace(active_run=lambda: run, MlflowClient=lambda: client)
    module: Any = SimpleNamespace(run=wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", module)
    return SimpleNamespace(client=client, wandb=wandb, uploaded=uploaded)


def test_both_runs_show_the_id_the_status_and_the_document(libraries: Any) -> None:
    name = sha256(CASE.read_bytes()).hexdigest()
    shown = show(CASE)
    assert shown["id"] == name
    assert shown["status"] in ("valid", "open", "invalid")
    assert libraries.client.tags == {f"r1 receipts.{key}": value for key, value in shown.items()}
    assert libraries.client.artifacts == [("r1", "receipts")]
    assert libraries.wandb.summary.items() >= {f"receipts/{key}": value for key, value in shown.items()}.items()
    assert libraries.uploaded == [f"receipt receipt-{name[:12]}"]


def test_a_recorder_shows_its_receipt_when_its_block_ends(libraries: Any, tmp_path: Path) -> None:
    with live(Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True)) as rec:
        for _ in range(3):
            with rec.step(tokens=8):
                pass
    name = sha256((tmp_path / "run.json").read_bytes()).hexdigest()
    assert libraries.client.tags["r1 receipts.id"] == name
    assert libraries.wandb.summary["receipts/id"] == name


def test_a_tracker_that_fails_ends_no_job_and_hides_no_error_of_it(
    libraries: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(libraries.client, "set_tag", refuse)
    rec = Recorder("cpu-torch", out=tmp_path / "run.json", probes=False)
    with pytest.raises(ZeroDivisionError), live(rec), rec.step(tokens=8):
        raise ZeroDivisionError
    assert "the run shows no verdict: ConnectionError: no route" in capsys.readouterr().err


def test_without_a_run_nothing_is_shown_and_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with live(Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True)) as rec, rec.step(tokens=8):
        pass
    assert "shows no verdict" not in capsys.readouterr().err
    assert (tmp_path / "run.json").exists()
