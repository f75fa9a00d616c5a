"""PyTorch: the real package on a CPU where RECEIPTS_LAB_PYTHON has it, and modules that stand in for CUDA."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_stage import LAB, Stage, StandIn, lab, lab_job, stand_in
from receipts.emit.probes import dynamo, frameworks, pytorch
from receipts.receipt import parse
from receipts.receipt import read as read_document

__all__ = ["stand_in"]
LOOP = """
import os, torch
from receipts.emit import Recorder
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
kind = os.environ.get("KIND", "")
if kind == "math":
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
if kind in ("compiled", "part", "shapes", "broken", "loop"):
    def forward(x):
        y = model[0](x) if kind == "part" else model(x)
        if kind == "broken":
            torch._dynamo.graph_break()
        for _ in range(2 if kind == "loop" else 0):
            if float(y.detach().sum()) > 1e9:
                raise FloatingPointError
        return y.square().mean()
    step = torch.compile(forward, dynamic=False)
else:
    step = lambda x: model(x).square().mean()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with Recorder("cpu-torch", context="c", warmup=3, out="run.json", quiet=True) as rec:
    rec.state("model.parameters_total", sum(item.numel() for item in model.parameters()))
    for number in range(12):
        x = torch.randn(9 if kind == "shapes" and number > 7 else 8, 16)
        with rec.step(tokens=8):
            step(x).backward()
            optimizer.step()
            optimizer.zero_grad()
"""


def test_a_plain_loop_is_seen_to_be_eager_on_the_cpu(tmp_path: Path) -> None:
    python = lab(LAB, "torch")
    found = lab_job(python, tmp_path, LOOP, OMP_NUM_THREADS="1")
    assert found["hardware"] == {"accelerator": "cpu", "chips": 1, "hosts": 1}
    assert found["path"]["witnessed"] | {"frameworks": []} == {
        "framework": "torch",
        "frameworks": [],
        "runtime": "cpu",
        "posture": "eager",
    }
    assert found["compile"]["compiles"] == found["compile"]["compiles_after_warmup"] == 0
    assert found["compile"]["cuda_graph_implementation"] == "none"
    assert found["features"]["torch.num_threads"] == 1
    assert found["features"]["torch.sdpa"] == "flash+efficient+math+cudnn"
    assert found["features"]["torch.default_dtype"] == "float32"
    assert found["flags"]["OMP_NUM_THREADS"] == {"value": "1", "before_runtime": True}
    assert found["wheels"]["torch"]["version"]
    assert [row["phase"] for row in found["memory"]["chips"]] == ["post_init", "post_step0", "steady"]
    assert found["memory"]["chips"][2]["peak_bytes"] >= found["memory"]["chips"][2]["bytes_used"] > 0
    assert len(found["code"]["imported_digest"]) == 64


def test_the_receipt_of_a_real_loop_is_one(tmp_path: Path) -> None:
    lab_job(lab(LAB, "torch"), tmp_path, LOOP)
    stated = parse(read_document(str(tmp_path / "run.json"))).stated
    assert stated["path.witnessed.runtime"] == "cpu"
    assert not [key for key in json.loads((tmp_path / "run.json").read_text())["notes"] if "could not" in key]


def test_the_only_backend_that_is_left_on_is_intended(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "torch"), tmp_path, LOOP, KIND="math")
    assert found["features"]["torch.sdpa"] == "math"
    assert found["path"]["intended"]["attention"] == "sdpa_math"


@pytest.mark.slow
def test_compiles_are_counted_where_they_happen(tmp_path: Path) -> None:
    python = lab(LAB, "torch")
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    clean = lab_job(python, tmp_path, LOOP, KIND="compiled", **cache)
    assert clean["compile"]["compiles"] == 1
    assert clean["compile"]["compiles_after_warmup"] == clean["compile"]["graph_breaks"] == 0
    assert clean["compile"]["cache_state"] == "cold"
    assert clean["compile"]["compile_seconds"] > 0
    assert clean["measurement"]["step_flags"]["compile"] == [0]
    assert clean["path"]["witnessed"]["posture"] == "whole_graph"
    (tmp_path / "run.json").unlink()
    warm = lab_job(python, tmp_path, LOOP, KIND="compiled", **cache)
    assert warm["compile"]["cache_state"] == "warm"


@pytest.mark.slow
def test_a_new_shape_after_warm_up_is_a_recompile_of_its_step(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "torch"), tmp_path, LOOP, KIND="shapes")
    assert found["compile"]["compiles_after_warmup"] == 1
    assert found["measurement"]["step_flags"]["recompile"] == [8]


@pytest.mark.slow
def test_a_graph_break_is_counted_and_shows_pieces(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "torch"), tmp_path, LOOP, KIND="broken")
    assert found["compile"]["graph_breaks"] == 1
    assert found["path"]["witnessed"]["posture"] == "regional"


@pytest.mark.slow
def test_a_graph_break_inside_a_loop_leaves_the_whole_function_to_python(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "torch"), tmp_path, LOOP, KIND="loop")
    assert found["compile"]["graph_breaks"] == 1
    assert found["compile"]["compiles"] == 0
    assert found["path"]["witnessed"]["posture"] == "eager"


@pytest.mark.slow
def test_one_graph_without_all_parameters_is_not_called_the_whole(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "torch"), tmp_path, LOOP, KIND="part")
    assert found["compile"]["compiles"] == 1
    assert "posture" not in found["path"]["witnessed"]


@pytest.mark.slow
def test_compiling_changes_neither_wheels_nor_flags(tmp_path: Path) -> None:
    python, cache = lab(LAB, "torch"), {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    eager, compiled = tmp_path / "eager", tmp_path / "compiled"
    for folder in (eager, compiled):
        folder.mkdir()
    plain = lab_job(python, eager, LOOP, **cache)
    found = lab_job(python, compiled, LOOP, KIND="compiled", **cache)
    assert found["wheels"].keys() == plain["wheels"].keys()
    assert found["flags"] == plain["flags"]
    assert found["flags"]["TORCHINDUCTOR_CACHE_DIR"]["value"] == "set"


@pytest.mark.parametrize(("number", "text"), [(92000, "9.20.0"), (91002, "9.10.2"), (8902, "8.9.2"), (90100, "9.1.0")])
def test_cudnn_counts_in_two_ways(number: int, text: str) -> None:
    assert pytorch.cudnn_version(number) == text


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version: 12", "550.54.15"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.12.07  Release Build  (x@y)", "570.12.07"),
        ("nothing of the kind", None),
    ],
)
def test_the_driver_is_the_loaded_modules(text: str, version: str | None, tmp_path: Path) -> None:
    (tmp_path / "version").write_text(text, encoding="ascii")
    assert pytorch.driver(str(tmp_path / "version")) == version
    assert pytorch.driver(str(tmp_path / "absent")) is None


class Cuda:
    """Stands in for CUDA under torch: two devices are visible, and one is used."""

    def __init__(self) -> None:
        self.peak = 900
        self.asked: list[str] = []

    def memory_stats(self, device: int) -> dict[str, int]:
        if device != 1:
            return {"reserved_bytes.all.peak": 0}
        return {
            "allocated_bytes.all.current": 500,
            "allocated_bytes.all.peak": self.peak,
            "reserved_bytes.all.peak": self.peak + 100,
            "num_alloc_retries": 2,
            "num_ooms": 0,
        }

    def put(self, stand_in: StandIn, begun: bool = True) -> None:
        def refuse() -> None:
            raise AssertionError("a probe waited for a device")

        properties = SimpleNamespace(name="NVIDIA H200", major=9, minor=0, total_memory=1000, multi_processor_count=132)
        precision = {"get_float32_matmul_precision": lambda: "high", "get_default_dtype": lambda: "torch.bfloat16"}
        stand_in("torch", __version__="2.12.0+cu132", _C=SimpleNamespace(), synchronize=refuse, **precision)
        stand_in("torch.version", cuda="13.2", hip=None, git_version="abc")
        stand_in("torch.backends.cudnn", version=lambda: 92000, benchmark=True, deterministic=False, enabled=True)
        stand_in("torch.cuda.nccl", version=lambda: (2, 28, 3))
        stand_in(
            "torch.cuda",
            _initialized=begun,
            synchronize=refuse,
            device_count=lambda: 2,
            memory_stats=self.memory_stats,
            get_device_properties=lambda device: properties,
        )


def test_cuda_is_read_from_what_the_host_knows(stand_in: StandIn) -> None:
    cuda, stage = Cuda(), Stage("torch")
    cuda.put(stand_in)
    pytorch.at_start(stage.stated)
    pytorch.at_phase(stage.stated, "post_step0")
    cuda.peak = 300  # the job reset its peaks
    pytorch.at_phase(stage.ended(9).stated, "steady")
    pytorch.at_end(stage.stated)
    assert stage.get("platform.cuda") == "13.2"
    assert stage.get("platform.cudnn") == "9.20.0"
    assert stage.get("platform.nccl") == "2.28.3"
    assert stage.get("hardware.accelerator") == "NVIDIA H200"
    assert stage.get("hardware.chips") == 1
    assert stage.get("path.witnessed.runtime") == "cuda"
    assert stage.get("features.torch.float32_matmul_precision") == "high"
    assert stage.get("features.torch.default_dtype") == "bfloat16"
    row = stage.facts.memory["device", 1, "steady"]
    assert row == {"bytes_used": 500, "bytes_limit": 1000, "peak_bytes": 900, "peak_reserved_bytes": 1000, "step": 8}
    assert {ordinal for _, ordinal, _ in stage.facts.memory} == {1}
    assert stage.facts.counters["torch.cuda.num_alloc_retries.1"]["count"] == 2
    assert stage.observed("torch-state")["capability"] == "9.0"
    assert stage.notes == ""


def test_cuda_is_asked_nothing_before_the_job_has_started_it(stand_in: StandIn) -> None:
    cuda, stage = Cuda(), Stage("torch")
    cuda.put(stand_in, begun=False)
    pytorch.at_start(stage.stated)
    pytorch.at_phase(stage.stated, "post_init")
    assert stage.get("platform.cudnn") is None
    assert not stage.facts.memory


def test_what_fails_is_a_note_and_takes_nothing_with_it(stand_in: StandIn) -> None:
    def fail() -> Any:
        raise RuntimeError("cuDNN version mismatch")

    stage = Stage("torch")
    Cuda().put(stand_in)
    stand_in("torch.backends.cudnn", version=fail, benchmark=True)
    pytorch.at_start(stage.stated)
    pytorch.at_phase(stage.stated, "steady")
    assert "cuDNN's version could not be read: RuntimeError: cuDNN version mismatch" in stage.notes
    assert stage.get("platform.nccl") == "2.28.3"


def test_the_process_group_says_its_backend_without_a_collective(stand_in: StandIn) -> None:
    stage = Stage("torch", world=4)
    stand_in("torch", __version__="2")
    group = {"is_initialized": lambda: True, "get_world_size": lambda: 8, "get_backend": lambda: "nccl"}
    stand_in("torch.distributed", **group)
    pytorch.at_end(stage.stated)
    assert stage.get("features.torch.distributed_backend") == "nccl"
    assert "has 8 ranks, and the launcher says 4" in stage.notes


class Counters:
    """Stands in for torch.compile: counters, and callbacks that are called as it calls them."""

    def __init__(self, stand_in: StandIn) -> None:
        self.counters: dict[str, dict[str, int]] = {"stats": {"unique_graphs": 0}, "frames": {"total": 0}}
        self.starts: list[Any] = []
        self.ends: list[Any] = []
        handler = SimpleNamespace(
            register_start_callback=self.starts.append,
            register_end_callback=self.ends.append,
            remove_start_callback=self.starts.remove,
            remove_end_callback=self.ends.remove,
        )
        stand_in("torch", __version__="2.12")
        stand_in("torch._dynamo.utils", counters=self.counters)
        stand_in("torch._dynamo.callback", callback_handler=handler)

    def compile(self, number: str, trigger: str = "DYNAMO") -> None:
        given = SimpleNamespace(callback_trigger=SimpleNamespace(name=trigger), compile_id=number)
        for callback in list(self.starts):
            callback(given)
        self.counters["stats"]["unique_graphs"] += trigger == "DYNAMO"
        self.counters["frames"]["total"] += trigger == "DYNAMO"
        for callback in list(self.ends):
            callback(given)


def test_a_compile_between_steps_is_no_recompile_of_the_window(stand_in: StandIn) -> None:
    torch, stage = Counters(stand_in), Stage("torch.compile", warmup=2)
    dynamo.at_start(stage.stated)
    stage.steps.inside = True
    torch.compile("0/0")
    stage.steps.inside = False
    dynamo.at_warm(stage.ended(2).stated)
    torch.compile("1/0")
    stage.ended(9)
    dynamo.at_end(stage.stated)
    assert stage.get("compile.compiles") == 2
    assert stage.get("compile.compiles_after_warmup") == 0
    assert torch.starts == torch.ends == []


def test_cleared_counters_say_nothing_of_totals(stand_in: StandIn) -> None:
    torch, stage = Counters(stand_in), Stage("torch.compile", warmup=1)
    dynamo.at_start(stage.stated)
    torch.compile("0/0")
    dynamo.at_phase(stage.ended(1).stated, "post_step0")
    torch.counters["stats"]["unique_graphs"] = 0
    dynamo.at_end(stage.stated)
    assert stage.get("compile.compiles") is None
    assert "cleared while the job ran" in stage.notes


def test_recorded_cuda_graphs_are_inductors(stand_in: StandIn) -> None:
    torch, stage = Counters(stand_in), Stage("torch.compile")
    stand_in("torch.cuda", _initialized=True)
    dynamo.at_start(stage.stated)
    torch.compile("0/0")
    torch.compile("0/0", "CUDAGRAPH_RECORDING")
    dynamo.at_end(stage.stated)
    assert stage.get("compile.cuda_graph_implementation") == "inductor"
    assert stage.get("path.witnessed.cuda_graphs") is True


def test_a_reached_limit_is_a_counter_that_must_be_zero(stand_in: StandIn) -> None:
    torch, stage = Counters(stand_in), Stage("torch.compile")
    dynamo.at_start(stage.stated)
    torch.compile("0/0")
    torch.counters["unimplemented"] = {"Dynamo recompile limit exceeded": 1}
    dynamo.at_end(stage.stated)
    assert stage.facts.counters["torch.compile.recompile_limit"] == {
        "name": "torch.compile.recompile_limit",
        "count": 1,
        "expected": 0,
    }


def test_a_limit_that_was_reached_is_no_graph_break(stand_in: StandIn) -> None:
    torch, stage = Counters(stand_in), Stage("torch.compile")
    dynamo.at_start(stage.stated)
    torch.compile("0/0")
    torch.counters["frames"] |= {"total": 4, "ok": 3}
    torch.counters["unimplemented"] = {"Dynamo recompile limit exceeded": 1}
    dynamo.at_end(stage.stated)
    assert stage.get("compile.graph_breaks") == 0
    assert stage.get("path.witnessed.posture") == "regional"


def test_an_imported_trainer_leaves_the_framework_open(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in("torch", __version__="2")
    monkeypatch.setattr(frameworks, "TRAINERS", {"some.trainer": "some"})
    alone, beside = Stage(), Stage()
    frameworks.at_end(alone.stated)
    stand_in("some.trainer")
    frameworks.at_end(beside.stated)
    assert alone.get("path.witnessed.framework") == "torch"
    assert beside.get("path.witnessed.framework") is None
    assert "trainers that are imported: some" in beside.notes
