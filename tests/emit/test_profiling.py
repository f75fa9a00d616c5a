"""``rec.profile()``: a trace from inside the job, its steps in no rate, read when the receipt is submitted."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from receipts.emit import Recorder
from receipts.receipt import Document, parse
from receipts.workflows.submit.amended import amended

Tree = dict[str, Any]


class _Profile:
    """As `torch.profiler.profile`, with the trace of a host that ran attention."""

    def __init__(self, *, record_shapes: bool) -> None:
        assert record_shapes

    def start(self) -> None:
        _Span.names = []

    def stop(self) -> None:
        pass

    def export_chrome_trace(self, path: str) -> None:
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "ts": 1, "dur": 90} for name in _Span.names]
        attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "ts": 2, "dur": 5} for name in (attention, "aten::mm")]
        Path(path.removesuffix(".gz")).write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        Path(path.removesuffix(".gz")).rename(path)


class _Span:
    """As `torch.profiler.record_function`."""

    names: list[str]

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.names.append(self.name)

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A profiler in the place of torch's."""
    module: Any = types.ModuleType("torch.profiler")
    module.profile, module.record_function = _Profile, _Span
    torch: Any = types.ModuleType("torch")
    torch.profiler = module
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    for name in ("jax", "torch_xla"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return module


def _run(folder: Path, at: int = 3, steps: int = 2, count: int = 8) -> Tree:
    with Recorder("cpu-torch", out=folder / "run.json", probes=False, quiet=True) as rec:
        for number in range(count):
            if number == at:
                rec.profile(steps)
            with rec.step(tokens=512):
                pass
    tree: Tree = json.loads((folder / "run.json").read_bytes())
    return tree


@pytest.mark.usefixtures("profiler")
def test_profiled_steps_are_flagged_and_the_trace_is_listed_with_its_digest(tmp_path: Path) -> None:
    tree = _run(tmp_path)
    assert tree["measurement"]["step_flags"]["profile"] == [3, 4]
    assert _Span.names == ["ProfilerStep#3", "ProfilerStep#4"]
    (entry,) = tree["evidence"]
    assert entry["uri"] == str(tmp_path / "run.trace.json.gz")
    assert len(entry["sha256"]) == 64


@pytest.mark.usefixtures("profiler")
def test_a_submit_reads_the_trace_and_lists_it_once_without_a_doubt_whose_it_is(tmp_path: Path) -> None:
    _run(tmp_path)
    whole = amended(str(tmp_path / "run.json"), [str(tmp_path / "run.trace.json.gz")])
    tree = json.loads(parse(Document(whole.document.raw, "run.json")).raw)
    assert tree["path"]["witnessed"]["attention"] == "sdpa_flash"
    (entry,) = [item for item in tree["evidence"] if item["kind"] == "torch-profiler"]
    assert "path.witnessed.attention" in entry["read"]
    assert "ingest.remarks" not in tree.get("notes", {})


@pytest.mark.usefixtures("profiler")
def test_a_run_that_ends_in_its_trace_keeps_what_there_is(tmp_path: Path) -> None:
    tree = _run(tmp_path, at=7, steps=5)
    assert tree["measurement"]["step_flags"]["profile"] == [7]
    assert (tmp_path / "run.trace.json.gz").exists()


@pytest.mark.parametrize("breaks", ["profile", "start", "stop", "export_chrome_trace", "record_function"])
def test_a_profiler_that_fails_costs_the_trace_and_nothing_else(
    tmp_path: Path, profiler: types.ModuleType, monkeypatch: pytest.MonkeyPatch, breaks: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("another profiler is running")

    place: Any = profiler if breaks in ("profile", "record_function") else _Profile
    monkeypatch.setattr(place, breaks, fails)
    tree = _run(tmp_path)
    assert len(tree["measurement"]["step_durations_seconds"]) == 8
    assert "evidence" not in tree
    assert "another profiler is running" in json.dumps(tree["notes"])
    assert set(tree["measurement"].get("step_flags", {}).get("profile", [])) <= {3, 4}


def test_without_a_framework_a_note_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert "neither torch nor JAX is loaded" in json.dumps(_run(tmp_path)["notes"])


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_real_profiler_shows_the_path(tmp_path: Path, name: str) -> None:
    framework = pytest.importorskip(name)
    if name == "torch":
        query = framework.randn(1, 2, 64, 32)

        def work() -> None:
            framework.nn.functional.scaled_dot_product_attention(query, query, query).sum().item()
    else:
        step = framework.jit(lambda value: (value @ value).sum())
        value = framework.numpy.ones((64, 64))

        def work() -> None:
            step(value).block_until_ready()

    with Recorder(f"cpu-{name}", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        for number in range(6):
            if number == 3:
                rec.profile(steps=2)
            with rec.step(tokens=64):
                work()
    assert json.loads((tmp_path / "run.json").read_bytes())["measurement"]["step_flags"]["profile"] == [3, 4]
    (place,) = (item for item in tmp_path.iterdir() if item.name.startswith("run.trace"))
    tree = json.loads(amended(str(tmp_path / "run.json"), [str(place)]).document.raw)
    assert tree["path"]["witnessed"]["framework"] == name
    assert tree["path"]["witnessed"]["runtime"] == "cpu"
