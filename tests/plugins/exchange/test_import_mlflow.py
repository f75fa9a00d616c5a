"""Runs of MLflow become receipts: from its file store and from its server, without MLflow."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from receipts.base.errors import Unreachable, UsageError
from receipts.plugins.exchange.mlflow import TOKEN, ImportedReceipt, import_runs, tracked_runs
from receipts.receipt import Document, Parsed, parse

RUN, BEGAN = "0123456789abcdef0123456789abcdef", 1_772_442_000_000
PARAMS = {"model.hidden": "64", "wheels.torch": "2.9.0", "path.witnessed.attention": "sdpa_flash", "optimizer": "adamw"}
TAGS = {"mlflow.runName": "own loop", "mlflow.source.git.commit": "a" * 40}
STEPS = [(step, round(0.1 + step / 1000, 6)) for step in range(1, 31)]


def stored(folder: Path, status: int = 3, tags: dict[str, str] = TAGS, **info: Any) -> Path:
    """A file store with one run, as MLflow 3.17.2 writes it."""
    run = folder / "7" / RUN
    (run / "metrics" / "train").mkdir(parents=True)
    (folder / "7" / "meta.yaml").write_text(
        "experiment_id: '7'\nlifecycle_stage: active\nname: pretrain\nworkspace: default\n"
    )
    source = {"source_name": "", "source_type": 4, "source_version": "", "entry_point_name": "", "user_id": "unknown"}
    place = {"experiment_id": "7", "artifact_uri": "file:///runs/artifacts", "lifecycle_stage": "active", "tags": []}
    about = {"run_id": RUN, "run_name": "own loop", "status": status, **source, **place}
    about |= {"start_time": BEGAN, "end_time": BEGAN + 9000, **info}
    (run / "meta.yaml").write_text(json.dumps(about))
    for kind, items in (("params", PARAMS), ("tags", tags)):
        (run / kind).mkdir()
        for name, text in items.items():
            (run / kind / name).write_text(text)
    (run / "metrics/step_seconds").write_text("".join(f"{BEGAN + step} {value!r} {step}\n" for step, value in STEPS))
    (run / "metrics/train/lr").write_text(f"{BEGAN} 0.1 1\n{BEGAN} not-a-number\n\n")
    return folder


def imported(place: Path | str) -> list[ImportedReceipt]:
    return list(import_runs(tracked_runs(str(place)), None, []))


def receipt(place: Path | str) -> Parsed:
    (item,) = imported(place)
    assert item.raw is not None, item.problems
    return parse(Document(item.raw, item.where))


@pytest.mark.parametrize("place", ["", "7", f"7/{RUN}"])
def test_a_run_of_a_file_store_is_read_with_its_steps(tmp_path: Path, place: str) -> None:
    stated = receipt(stored(tmp_path) / place).stated
    assert stated["measurement.step_durations_seconds"] == [value for _, value in STEPS]
    assert (stated["run.launch"], stated["run.label"], stated["code.commit"]) == (RUN, "own loop", "a" * 40)
    assert (stated["model.hidden"], stated["wheels.torch"], stated["run.outcome"]) == (64, "2.9.0", "ok")
    assert (stated["run.started"], stated["run.finished"]) == ("2026-03-02T09:00:00Z", "2026-03-02T09:00:09Z")


def test_what_a_tracking_store_says_is_typed_and_no_parameter_witnesses_a_path(tmp_path: Path) -> None:
    parsed = receipt(stored(tmp_path))
    assert parsed.receipt.run.recorded is None
    assert "path.witnessed.attention" not in parsed.stated
    remarks = json.dumps(parsed.receipt.notes)
    assert "parameters of no framework that is known: optimizer, path.witnessed.attention" in remarks


def test_an_exported_illustration_stays_one_and_its_summaries_are_no_steps(tmp_path: Path) -> None:
    tags = {"receipts.id": "b" * 64, "receipts.provenance": "illustrative", "receipts.outcome": "oom"}
    folder = stored(tmp_path, tags=tags, status=4)
    (folder / "7" / RUN / "metrics/step_seconds").write_text(f"{BEGAN} 0.15 0\n")
    parsed = receipt(folder)
    assert (parsed.receipt.run.provenance, parsed.receipt.run.outcome) == ("illustrative", "oom")
    assert not any(path.startswith("measurement.") for path in parsed.stated)


@pytest.mark.parametrize(
    ("info", "why"), [({"status": 1}, "its status is RUNNING"), ({"start_time": None}, "the run states no start_time")]
)
def test_a_run_that_goes_on_or_has_no_start_is_refused(tmp_path: Path, info: dict[str, Any], why: str) -> None:
    (item,) = imported(stored(tmp_path, **info))
    assert item.raw is None
    assert why in str(item.problems[0])


def test_deleted_runs_are_left_out_and_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    assert imported(stored(tmp_path / "a", lifecycle_stage="deleted")) == []
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "meta.yaml").write_text("[1, !!python/object:os.system {}]")
    with pytest.raises(UsageError, match="mlflow server --backend-store-uri"):
        imported(tmp_path / "b")


class _Tracking(BaseHTTPRequestHandler):
    """MLflow's REST interface over one run, a page at a time."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("experiments/search"):
            first = "page_token" not in asked
            row = {"experiment_id": "6" if first else "7", "name": "empty" if first else "pretrain"}
            self._answer({"experiments": [row], **({"next_page_token": "2"} if first else {})})
        elif asked["experiment_ids"] == ["7"]:
            info = {"run_id": RUN, "status": "FINISHED", "start_time": BEGAN, "end_time": BEGAN + 9000}
            params, tags = ([{"key": key, "value": value} for key, value in of.items()] for of in (PARAMS, TAGS))
            data = {"params": params, "tags": tags, "metrics": [{"key": "step_seconds", "value": 0.1}]}
            self._answer({"runs": [{"info": info, "data": data}]})
        else:
            self._answer({})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        half = STEPS[15:] if "page_token" in query else STEPS[:15]
        rows = [
            {"key": "step_seconds", "value": value, "step": step, "timestamp": BEGAN + step} for step, value in half
        ]
        self._answer({"metrics": rows, **({} if "page_token" in query else {"next_page_token": "2"})})

    def _answer(self, document: Any) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tracking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_gives_what_its_file_store_gives(tmp_path: Path, url: str) -> None:
    place, remote = receipt(stored(tmp_path)), receipt(f"{url}/")
    own = {path for path in remote.stated if not path.startswith(("evidence", "notes"))}
    assert {path: place.stated[path] for path in own} == {path: remote.stated[path] for path in own}
    assert "measurement.step_durations_seconds" in own


def test_what_is_no_server_of_mlflow_is_told_and_a_token_does_not_travel_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setattr(_Tracking, "do_POST", lambda self: self._answer({"experiments": ["none"]}))
    with pytest.raises(UsageError, match="not an answer of MLflow"):
        imported(url)
    with pytest.raises(Unreachable, match="does not answer"):
        imported("http://127.0.0.1:9")
    monkeypatch.setenv(TOKEN, "secret")
    with pytest.raises(UsageError, match="in the clear; name https:"):
        imported("http://mlflow.lab")
