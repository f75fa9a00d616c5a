"""``rec.profile()``: a trace from inside the job, its steps in no rate, read when the receipt is submitted."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any, ClassVar

import pytest

from probe_stage import lab
from receipts.emit import Recorder
from receipts.receipt import Document, parse
from receipts.workflows.evidence import amended

Tree = dict[str, Any]


class _Kineto:
    """The one profiler that torch has in a process: where two sessions overlap, the end of the second ends the job."""

    session: Any = None
    prepared = False
    events = 100  # of a step
    sessions: ClassVar[
        list[tuple[bool, list[str]]]
    ] = []  # of each trace that began: whether with shapes, and its marks


class _Killed(BaseException):
    """As SIGSEGV: no `except Exception` helps."""


class _Profile:
    """As `torch.profiler.profile`, with the trace of a host that ran attention."""

    def __init__(self, *, record_shapes: bool = False) -> None:
        self.names: list[str] = []
        self.shapes = record_shapes
        results = types.SimpleNamespace(events=lambda: [None] * _Kineto.events)
        self.profiler = types.SimpleNamespace(kineto_results=results)

    def start(self) -> None:
        self.prepare()
        self.enable()

    def prepare(self) -> None:
        """Its warm-up, which a schedule calls by itself."""
        sys.modules["torch.autograd.profiler"]._prepare_profiler("config", "activities")

    def enable(self) -> None:
        _Kineto.session = None
        sys.modules["torch.autograd.profiler"]._enable_profiler("config", "activities")
        _Kineto.session, _Span.names = self, self.names
        _Kineto.sessions.append((self.shapes, self.names))

    def stop(self) -> None:
        if _Kineto.session is not self:
            raise _Killed
        _Kineto.session = None

    def export_chrome_trace(self, path: str) -> None:
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "ts": 1, "dur": 90} for name in self.names]
        attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "ts": 2, "dur": 5} for name in (attention, "aten::mm")]
        Path(path).write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))


def _prepare(*_: object) -> None:
    _Kineto.prepared = True


def _enable(*_: object) -> None:
    if not _Kineto.prepared:
        raise _Killed
    _Kineto.prepared = False


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
    torch.profiler, torch.autograd = module, types.ModuleType("torch.autograd")
    torch.autograd._profiler_enabled = lambda: _Kineto.session is not None
    torch.autograd.profiler = types.ModuleType("torch.autograd.profiler")
    torch.autograd.profiler._prepare_profiler, torch.autograd.profiler._enable_profiler = _prepare, _enable
    _Kineto.session, _Kineto.prepared, _Kineto.events, _Kineto.sessions = None, False, 100, []
    for part in (torch, module, torch.autograd, torch.autograd.profiler):
        monkeypatch.setitem(sys.modules, part.__name__, part)
    for name in ("jax", "torch_xla"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return module


def _steps(names: list[str]) -> list[str]:
    """The marks that reach from step to step."""
    return [name for name in names if not name.startswith("receipts.step#")]


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
    assert _Span.names == ["ProfilerStep#3", "receipts.step#3", "ProfilerStep#4", "receipts.step#4"]
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
    # The profiler of this test keeps no shapes, which ours always does: the trace says that much, and no more.
    assert all("without the shapes" in remark for remark in tree.get("notes", {}).get("ingest.remarks", []))


@pytest.mark.usefixtures("profiler")
def test_a_run_that_ends_in_its_trace_keeps_what_there_is(tmp_path: Path) -> None:
    tree = _run(tmp_path, at=7, steps=5)
    assert tree["measurement"]["step_flags"]["profile"] == [7]
    assert (tmp_path / "run.trace.json.gz").exists()


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize(
    ("begins", "ends", "traced", "flagged"),
    [
        (1, 5, ["ProfilerStep#6", "ProfilerStep#7"], [3, 4, 5, 6, 7]),
        (3, 5, ["ProfilerStep#6", "ProfilerStep#7"], [3, 4, 5, 6, 7]),
        (4, 6, ["ProfilerStep#3", "cut short"], [3]),
        (4, 99, ["ProfilerStep#3", "cut short"], [3]),
        (2, 99, None, [3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_ours_waits_for_the_job_s_own_profiler_and_ends_before_the_job_begins_one(
    tmp_path: Path, begins: int, ends: int, traced: list[str] | None, flagged: list[int]
) -> None:
    own: Any = None
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        for number in range(10):
            if number == begins:
                own = _Profile()
                own.start()
            if number == 3:
                rec.profile(2)
            if number == ends:
                own.stop()
            with rec.step(tokens=512):
                pass
        if ends == 99:
            own.stop()
    tree = json.loads((tmp_path / "run.json").read_bytes())
    assert tree["measurement"]["step_flags"]["profile"] == flagged
    if traced is None:
        assert "no step ended under it" in json.dumps(tree["notes"])
        return
    events = json.loads(gzip.decompress((tmp_path / "run.trace.json.gz").read_bytes()))["traceEvents"]
    names = _steps([event["name"] for event in events if event["cat"] == "user_annotation"])
    assert list(dict.fromkeys(names)) == traced


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize("ends", [4, 7])
def test_a_profiler_of_the_job_that_warmed_up_before_ours_began_is_prepared_again(tmp_path: Path, ends: int) -> None:
    own = _Profile()
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        for number in range(10):
            if number == 2:
                own.prepare()
                rec.profile(2)
            if number == ends:  # while ours runs, and after it
                own.enable()
            with rec.step(tokens=512):
                pass
        own.stop()
    own.start()
    own.stop()


@pytest.mark.usefixtures("profiler")
def test_a_trace_that_another_call_has_ended_is_not_ended_again(tmp_path: Path) -> None:
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        rec.profile(2)
        for _ in range(3):
            with rec.step(tokens=512):
                _Kineto.session = None
    tree = json.loads((tmp_path / "run.json").read_bytes())
    assert "stopped by another call" in json.dumps(tree["notes"])
    assert "evidence" not in tree


@pytest.mark.usefixtures("profiler")
def test_a_thread_of_the_job_that_begins_a_trace_waits_until_the_step_of_ours_has_ended(tmp_path: Path) -> None:
    own, began = _Profile(), threading.Event()
    work = threading.Thread(target=lambda: (own.start(), began.set()))
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        rec.profile(1000)
        for number in range(3):
            with rec.step(tokens=512):
                pass
            if number == 0:
                work.start()
                assert not began.wait(0.2)
        work.join()
    own.stop()
    assert (tmp_path / "run.trace.json.gz").exists()


def _witnessed(folder: Path, *, warmup: int | None = 3, count: int = 12, witness: bool | int | None = None) -> Tree:
    with Recorder("cpu-torch", out=folder / "run.json", quiet=True, warmup=warmup, witness=witness) as rec:
        for _ in range(count):
            with rec.step(tokens=512):
                pass
    tree: Tree = json.loads((folder / "run.json").read_bytes())
    return tree


def _trace_of(tree: Tree) -> Tree | None:
    return next((item for item in tree.get("evidence", ()) if item["kind"] == "torch-profiler"), None)


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize(("events", "traced"), [(50_000, [3, 4, 5, 6]), (50_001, [3]), (500_000, [3]), (500_001, None)])
def test_the_witness_follows_the_warm_up_with_as_many_steps_as_their_events_allow(
    tmp_path: Path, events: int, traced: list[int] | None
) -> None:
    _Kineto.events = events
    tree = _witnessed(tmp_path)
    (shapes, _), *after = _Kineto.sessions
    assert not shapes
    assert [_steps(names) for _, names in after] == ([[f"ProfilerStep#{at}" for at in traced]] if traced else [])
    assert all(shapes for shapes, _ in after)
    assert tree["measurement"]["step_flags"]["profile"] == [2, *(traced or [])]
    entry = _trace_of(tree)
    assert (entry is not None) is (traced is not None)
    assert entry is None or len(entry["sha256"]) == 64


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize("warmup", [None, 0, 1, 2])
def test_without_a_long_warm_up_the_witness_leaves_out_the_first_two_steps(tmp_path: Path, warmup: int | None) -> None:
    assert _witnessed(tmp_path, warmup=warmup)["measurement"]["step_flags"]["profile"] == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("profiler")
def test_the_witness_is_switched_off_by_its_caller_by_the_environment_and_without_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _trace_of(_witnessed(tmp_path / "a", witness=False)) is None
    monkeypatch.setenv("RECEIPTS_WITNESS", "0")
    assert _trace_of(_witnessed(tmp_path / "b")) is None
    monkeypatch.setenv("RECEIPTS_WITNESS", "many")
    wrong = _witnessed(tmp_path / "c")
    assert _trace_of(wrong) is None
    assert "RECEIPTS_WITNESS is a number of steps" in json.dumps(wrong["notes"])
    assert _Kineto.sessions == []
    monkeypatch.setenv("RECEIPTS_WITNESS", "8")
    assert _witnessed(tmp_path / "d", count=20)["measurement"]["step_flags"]["profile"] == list(range(2, 11))


@pytest.mark.usefixtures("profiler")
def test_a_trace_that_the_job_asks_for_takes_the_place_of_the_witness(tmp_path: Path) -> None:
    with Recorder("cpu-torch", out=tmp_path / "run.json", quiet=True, warmup=3) as rec:
        for number in range(12):
            if number == 4:  # the witness runs
                rec.profile(2)
            with rec.step(tokens=512):
                pass
    listed = json.loads((tmp_path / "run.json").read_bytes())["evidence"]
    assert [item["kind"] for item in listed].count("torch-profiler") == 1
    assert _steps(_Kineto.sessions[-1][1]) == ["ProfilerStep#4", "ProfilerStep#5"]


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize("begins", [2, 3, 4])
def test_the_witness_gives_way_to_the_job_s_own_profiler(tmp_path: Path, begins: int) -> None:
    own = _Profile()
    with Recorder("cpu-torch", out=tmp_path / "run.json", quiet=True, warmup=3) as rec:
        for number in range(12):
            if number == begins:
                own.start()
            if number == begins + 2:
                own.stop()  # ends the job where another session has taken its place
            with rec.step(tokens=512):
                pass
    assert json.loads((tmp_path / "run.json").read_bytes())["run"]["outcome"] == "ok"


@pytest.mark.usefixtures("profiler")
def test_the_witness_begins_again_after_a_profiler_of_another_thread(tmp_path: Path) -> None:
    own, began = _Profile(), threading.Event()
    work = threading.Thread(target=lambda: (own.start(), began.set()))
    with Recorder("cpu-torch", out=tmp_path / "run.json", quiet=True, warmup=3) as rec:
        for number in range(14):
            with rec.step(tokens=512):
                pass
            if number == 1:  # the witness counts the events of the next step
                work.start()
                assert not began.wait(0.2)
            if number == 2:
                work.join()
            if number == 5:
                own.stop()
    tree = json.loads((tmp_path / "run.json").read_bytes())
    assert _trace_of(tree) is not None


@pytest.mark.usefixtures("profiler")
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_run_that_ends_in_its_witness_says_nothing_of_a_fault(tmp_path: Path, count: int) -> None:
    tree = _witnessed(tmp_path, count=count)
    assert "profile" not in json.dumps(tree.get("notes", {}))
    assert (_trace_of(tree) is not None) is (count == 4)


@pytest.mark.usefixtures("profiler")
def test_a_later_launch_leaves_the_trace_of_an_earlier_one_as_it_is(tmp_path: Path) -> None:
    first, trace = _trace_of(_witnessed(tmp_path)), tmp_path / "run.trace.json.gz"
    before = trace.read_bytes()
    _witnessed(tmp_path, count=9)
    assert first is not None
    assert trace.read_bytes() == before
    assert len(list(tmp_path.glob("run.*trace.json.gz"))) == 2


def test_without_torch_no_witness_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    tree = _witnessed(tmp_path)
    assert "profile" not in tree["measurement"].get("step_flags", {})
    assert not any("the witness" in text for text in tree.get("notes", {}).get("recorder", []))


_REAL = """
import sys
import torch
from torch.profiler import profile, schedule
from receipts.emit import Recorder

begins, ends, planned = map(int, sys.argv[1:])
model = torch.nn.Linear(8, 8)
with Recorder("cpu-torch", out="run.json", probes=False, quiet=True) as rec:
    own = profile(schedule=schedule(wait=0, warmup=2, active=2, repeat=9) if planned else None)
    for number in range(10):
        if number == begins:
            own.start()
        if number == 3:
            rec.profile(2)
        if number == ends:
            own.stop()
        with rec.step(tokens=8):
            model(torch.randn(4, 8)).sum().backward()
        if planned and begins <= number < ends:
            own.step()
if not planned:
    own.export_chrome_trace("own.json")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("begins", "ends"), [(1, 5), (3, 5), (4, 6), (0, 9)])
@pytest.mark.parametrize("planned", [0, 1])
def test_with_a_real_torch_a_job_that_profiles_itself_ends_well(
    tmp_path: Path, begins: int, ends: int, planned: int
) -> None:
    python = lab("RECEIPTS_LAB_PYTHON", "torch")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    words = [python, "-c", _REAL, str(begins), str(ends), str(planned)]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads((tmp_path / "run.json").read_bytes())["run"]["outcome"] == "ok"
    assert planned or '"aten::addmm"' in (tmp_path / "own.json").read_text()


_REAL_JAX = """
import sys
import jax
from jax.profiler import start_trace, stop_trace
from receipts.emit import Recorder

begins, ends = map(int, sys.argv[1:])
step, value = jax.jit(lambda value: (value @ value).sum()), jax.numpy.ones((8, 8))
with Recorder("cpu-jax", out="run.json", probes=False, quiet=True) as rec:
    for number in range(10):
        if number == begins:
            start_trace("own")
        if number == 3:
            rec.profile(2)
        if number == ends:
            stop_trace()
        with rec.step(tokens=8):
            step(value).block_until_ready()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("begins", "ends"), [(1, 5), (3, 5), (4, 6)])
def test_with_a_real_jax_a_job_that_profiles_itself_ends_well(tmp_path: Path, begins: int, ends: int) -> None:
    python = lab("RECEIPTS_LAB_PYTHON", "jax")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    words = [python, "-c", _REAL_JAX, str(begins), str(ends)]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((tmp_path / "own").rglob("*.xplane.pb"))) == 1
    assert len(list((tmp_path / "run.trace").rglob("*.xplane.pb"))) == 1


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
