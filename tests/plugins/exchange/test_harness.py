"""JSON of benchmark harnesses becomes receipts: a file is a launch, its state is axes, its times are steps."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from receipts.base.errors import UsageError
from receipts.plugins.exchange.harness import files_of, import_benchmarks
from receipts.receipt import Document, Parsed, parse


def pytest_benchmark(data: list[float] | None = None) -> dict[str, Any]:
    stats: dict[str, Any] = {"median": 2e-6, "mean": 3e-6, "rounds": 3, "iterations": 4}
    row = {
        "name": "test_sort[100]",
        "fullname": "test_b.py::test_sort[100]",
        "params": {"size": 100},
        "extra_info": {"layout": [1, 2]},
        "options": {"timer": "perf_counter"},
        "stats": stats | ({"data": data} if data else {}),
    }
    return {
        "machine_info": {"node": "box", "python_version": "3.11.9"},
        "commit_info": {"id": "a" * 40, "dirty": True},
        "benchmarks": [row],
        "datetime": "2026-11-20T09:00:00.5",
        "version": "5.3.1",
    }


def google(**own: Any) -> dict[str, Any]:
    row = {"run_name": "BM/8/bytes:1k/real_time/threads:2", "run_type": "iteration", "time_unit": "us", "threads": 2}
    rows = [{**row, "iterations": 100 + at, "real_time": 5.0 + at, "cpu_time": 1.0, **own} for at in range(3)]
    rows.append({**row, "run_type": "aggregate", "aggregate_name": "median", "real_time": 6.0, "cpu_time": 1.0})
    return {
        "context": {"date": "2026-11-20T09:00:00+00:00", "host_name": "box", "executable": "./bm"},
        "benchmarks": rows,
    }


def nvbench(**own: Any) -> dict[str, Any]:
    def summary(tag: str, **values: Any) -> dict[str, Any]:
        return {"tag": tag, "data": [{"name": name, "value": value} for name, value in values.items()]}

    state = {
        "device": 0,
        "axis_values": [{"name": "T", "value": "F16"}, {"name": "Elements", "value": "1048576"}],
        "summaries": [
            summary("nv/cold/time/gpu/mean", value="1.5e-5"),
            summary("nv/json/bin:nv/cold/sample_times", filename="n.json-bin/0.bin", size="3"),
        ],
        "is_skipped": False,
        **own,
    }
    return {
        "meta": {"argv": ["/opt/copy_bench"], "version": {"json": {"major": 1}, "nvbench": {"major": 0}}},
        "devices": [{"id": 0, "name": "NVIDIA H200"}],
        "benchmarks": [{"name": "copy", "states": [state]}],
    }


TORN = [  # of each harness, a value of another kind
    json.dumps({**pytest_benchmark(), "commit_info": 3}),
    json.dumps(pytest_benchmark([float("nan")])),
    json.dumps(google(iterations="x")),
    json.dumps({**nvbench(), "devices": "x"}),
    json.dumps(nvbench(axis_values=[{}])),
]


def one(folder: Path, document: dict[str, Any], name: str = "n.json") -> Parsed:
    (folder / name).write_text(json.dumps(document))
    (item,) = import_benchmarks(folder / name, "unlisted")
    assert item.raw is not None, item.problems
    return parse(Document(item.raw, item.name))


def test_rounds_that_were_saved_are_steps_and_parameters_are_axes(tmp_path: Path) -> None:
    stated = one(tmp_path, pytest_benchmark([1e-6, 2e-6, 4e-6])).stated
    assert stated["measurement.step_durations_seconds"] == [1e-6, 2e-6, 4e-6]
    assert (stated["features.size"], stated["features.layout"]) == (100, "[1, 2]")
    assert (stated["run.label"], stated["run.kind"]) == ("test_b.py::test_sort", "microbench")
    assert (stated["code.commit"], stated["code.dirty"]) == ("a" * 40, True)
    unsaved = one(tmp_path, pytest_benchmark(), "other.json").stated
    assert unsaved["measurement.stated.step_seconds"] == 2e-6
    assert unsaved["run.launch"] != stated["run.launch"]


def test_repetitions_are_means_over_their_iterations_by_the_wall(tmp_path: Path) -> None:
    stated = one(tmp_path, google()).stated
    assert stated["measurement.interval_means_seconds"] == pytest.approx([5e-6, 6e-6, 7e-6])
    assert stated["measurement.interval_steps"] == [100, 101, 102]
    assert {key: value for key, value in stated.items() if key.startswith("features.")} == {
        "features.arg0": 8,
        "features.bytes": "1k",
        "features.threads": 2,
    }
    assert stated["run.context"] == "google-benchmark bm"
    failed = one(tmp_path, google(error_occurred=True, error_message="no memory"), "failed.json").stated
    assert (failed["run.outcome"], failed["failure.message"]) == ("crash", "no memory")


def test_samples_beside_the_file_are_steps_of_the_kernel(tmp_path: Path) -> None:
    assert one(tmp_path, nvbench()).stated["measurement.stated.step_seconds"] == 1.5e-5
    (tmp_path / "n.json-bin").mkdir()
    (tmp_path / "n.json-bin" / "0.bin").write_bytes(array("f", [1.0, 2.0, 4.0]).tobytes())
    stated = one(tmp_path, nvbench()).stated
    assert stated["measurement.step_durations_seconds"] == [1.0, 2.0, 4.0]
    assert (stated["features.T"], stated["features.Elements"]) == ("F16", 1048576)
    assert (stated["measurement.region"], stated["hardware.chips"]) == ("kernel", 1)
    # A file that was cut, and one elsewhere, are no samples.
    (tmp_path / "n.json-bin" / "0.bin").write_bytes(b"1234")
    assert "measurement.step_durations_seconds" not in one(tmp_path, nvbench()).stated
    elsewhere = [{"name": "filename", "value": "/etc/passwd"}]
    outside = nvbench(summaries=[{"tag": "nv/json/bin:nv/cold/sample_times", "data": elsewhere}])
    assert "measurement.step_durations_seconds" not in one(tmp_path, outside, "outside.json").stated
    skipped = one(tmp_path, nvbench(is_skipped=True, skip_reason="too small"), "skipped.json").stated
    assert (skipped["run.outcome"], skipped["failure.message"]) == ("crash", "too small")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"benchmarks": 3}', '{"benchmarks": [{}], "context": 1}', "\udce9", "{", *TORN]
)
def test_another_file_is_refused_with_what_would_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match="JSON"):
        list(import_benchmarks(tmp_path / "x.json", "unlisted"))
    with pytest.raises(UsageError, match="no JSON file"):
        files_of([tmp_path / "x.json", _empty(tmp_path)])


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir(exist_ok=True)
    return folder / "empty"


@pytest.mark.slow
def test_files_of_one_benchmark_are_launches_of_one_configuration(shell: Shell) -> None:
    for number in range(3):
        document = google()
        document["context"]["date"] = f"2026-11-20T09:0{number}:00+00:00"
        for row in document["benchmarks"]:
            row["real_time"] += number / 64
        (shell.folder / f"g{number}.json").write_text(json.dumps(document))
    assert shell("import", "bench", *(str(shell.folder / f"g{n}.json") for n in range(3)), "--submit").code == 0
    ids = [row["id"] for row in shell("list", "--json").json]
    assert len(ids) == 3
    assert shell("compare", ids[0], ids[1], "--metric", "step_seconds", "--json").json["counted"] == []


def test_what_google_benchmark_skips_or_fits_is_no_time(tmp_path: Path) -> None:
    fits = ({"aggregate_name": "BigO", "big_o": "N", "real_coefficient": 2.0}, {"aggregate_name": "RMS", "rms": 0.1})
    rows = [{"run_name": "BM", "run_type": "aggregate", "aggregate_unit": "time", **fit} for fit in fits]
    skipped = google(skipped=True, skip_message="needs 8 GPUs", real_time=0.0, iterations=0)
    skipped["benchmarks"] = [*skipped["benchmarks"][:3], *rows]
    stated = one(tmp_path, skipped).stated
    assert (stated["run.outcome"], stated["failure.message"]) == ("crash", "needs 8 GPUs")
    assert "measurement.interval_means_seconds" not in stated


@pytest.mark.parametrize("harness", [lambda: pytest_benchmark([2e-6] * 3), google, nvbench])
def test_benchmarks_of_one_file_began_one_after_another(shell: Shell, harness: Any) -> None:
    """R112 takes two launches of one instant for one that was copied."""
    document = harness()
    rows = document["benchmarks"]
    other = {"name": "other", "fullname": "other", "run_name": "other"}
    document["benchmarks"] = [*rows, *({**row, **other} for row in rows)]
    (shell.folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    assert shell("import", "bench", "run.json", "--submit").code == 0
    listed = shell("list", "--json").json
    assert len(listed) >= 2
    assert {row["status"] for row in listed} == {"open"}
