"""torch_xla: the real package where RECEIPTS_LAB_XLA_PYTHON has it, and modules that stand in for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_stage import XLA_LAB, Stage, StandIn, lab, lab_job, stand_in
from receipts.emit.probes import torch_xla
from receipts.receipt import parse
from receipts.receipt import read as read_document

__all__ = ["stand_in"]
LOOP = """
import os, torch, torch_xla, torch_xla.runtime as xr
from receipts.emit import Recorder
kind = os.environ.get("KIND", "")
if kind == "spmd":
    import numpy as np, torch_xla.distributed.spmd as xs
    xr.use_spmd()
    xs.set_global_mesh(xs.Mesh(np.arange(xr.global_runtime_device_count()), (4, 2), ("data", "model")))
device = torch_xla.device()
w = torch.randn(8, 8, device=device, requires_grad=True)
with Recorder("unlisted", context="c", warmup=3, out="run.json", quiet=True) as rec:
    for number in range(10):
        x = torch.randn(9 if kind == "shapes" and number > 6 else 8, 8, device=device)
        with rec.step(tokens=8):
            y = torch.tanh(x @ w)
            if kind == "fallback":
                y = y + torch.median(y)
            loss = (y ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
            torch_xla.sync()
            if kind == "item":
                loss.item()
        if kind == "eval" and number % 4 == 3:
            with rec.span("eval"), torch.no_grad():
                for _ in range(5):
                    (torch.ones(5, 8).to(device) @ w).sum().item()
        if kind == "checkpoint" and number == 7:
            with rec.span("checkpoint"):
                w.detach().cpu()
                torch.median(w.detach())
"""


def test_a_clean_loop_neither_falls_back_nor_compiles_late(tmp_path: Path) -> None:
    found = lab_job(lab(XLA_LAB, "torch_xla"), tmp_path, LOOP, PJRT_DEVICE="CPU")
    assert found["compile"]["compiles_after_warmup"] == 0
    assert found["compile"]["compiles"] >= 1
    assert found["path"]["witnessed"] == {
        "framework": "torch-xla",
        "frameworks": ["torch-xla"],
        "runtime": "cpu",
        "fallbacks": {},
        "host_transfers_per_step": 0,
    }
    assert found["flags"]["PJRT_DEVICE"] == {"value": "CPU", "before_runtime": True}
    assert "XLA_FNTRACKER_FILE" not in found["flags"]
    assert "memory of xla:0 is unavailable" in "\n".join(found["notes"]["torch_xla"])
    assert parse(read_document(str(tmp_path / "run.json"))).stated["hardware.accelerator"] == "cpu"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("item", ("path", "witnessed", "host_transfers_per_step"), 1.0),
        ("fallback", ("path", "witnessed", "fallbacks"), {"aten::median": 7}),
        ("shapes", ("compile", "compiles_after_warmup"), 1),
    ],
)
def test_each_offence_is_named(kind: str, path: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    found: Any = lab_job(lab(XLA_LAB, "torch_xla"), tmp_path, LOOP, KIND=kind)
    for key in path:
        found = found[key]
    assert found == value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["eval", "checkpoint"])
def test_what_an_evaluation_or_a_checkpoint_does_is_no_offence_of_the_steps(kind: str, tmp_path: Path) -> None:
    found = lab_job(lab(XLA_LAB, "torch_xla"), tmp_path, LOOP, KIND=kind)
    assert found["compile"]["compiles_after_warmup"] == 0
    assert found["path"]["witnessed"]["fallbacks"] == {}
    assert found["path"]["witnessed"]["host_transfers_per_step"] == 0


@pytest.mark.slow
def test_under_spmd_the_mesh_is_stated_and_memory_is_unavailable(tmp_path: Path) -> None:
    python = lab(XLA_LAB, "torch_xla")
    found = lab_job(python, tmp_path, LOOP, KIND="spmd", CPU_NUM_DEVICES="8", PJRT_DEVICE="CPU")
    assert found["hardware"]["chips"] == 8
    assert found["parallelism"]["mesh_axes"] == "data:4,model:2"
    assert found["features"]["torch_xla.spmd"] is True
    assert "memory" not in found
    assert "unavailable: torch_xla gives none under SPMD" in "\n".join(found["notes"]["torch_xla"])


class Xla:
    """Stands in for torch_xla on four TPU chips."""

    def __init__(self, stand_in: StandIn, spmd: bool = False) -> None:
        self.counts = {"MarkStep": 1, "UncachedCompile": 1, "xla::mm": 4}
        self.samples = {"CompileTime": (1, 2e9, ()), "ExecuteTime": (1, 1e9, ())}
        self.asked: list[str] = []
        stand_in("torch_xla", __version__="2.9.0+gitc04e61c")
        stand_in("torch_xla.runtime", is_spmd=lambda: spmd)
        stand_in(
            "torch_xla.debug.metrics",
            counter_names=lambda: list(self.counts),
            counter_value=self.counts.get,
            metric_names=lambda: list(self.samples),
            metric_data=self.samples.get,
        )
        chips = ["TPU:0", "TPU:1", "TPU:2", "TPU:3"]
        stand_in(
            "_XLAC",
            _xla_runtime_is_initialized=lambda: True,
            _xla_get_all_runtime_devices=lambda: chips,
            _xla_get_devices=lambda: chips[:1],
            _xla_device_kind=lambda device: "TPU v6 lite",
            _xla_memory_info=self.memory,
        )

    def memory(self, device: str) -> dict[str, int]:
        self.asked.append(device)
        return {"bytes_used": 10, "bytes_limit": 100, "peak_bytes_used": 40}

    def step(self, compiles: int = 0, **more: int) -> None:
        self.counts["MarkStep"] += 1
        self.counts["UncachedCompile"] += compiles
        for name, count in more.items():
            key = name.replace("__", "::")
            self.counts[key] = self.counts.get(key, 0) + count


def test_counters_are_read_from_the_end_of_the_warm_up_on(stand_in: StandIn) -> None:
    xla, stage = Xla(stand_in), Stage("torch_xla", warmup=2)
    torch_xla.at_phase(stage.ended(1).stated, "post_step0")
    xla.step(compiles=1, aten___local_scalar_dense=1)
    torch_xla.at_warm(stage.ended(2).stated)
    for _ in range(4):
        xla.step(aten___local_scalar_dense=1, aten__median=1)
    xla.step(compiles=1)
    torch_xla.at_phase(stage.ended(7).stated, "steady")
    torch_xla.at_end(stage.stated)
    assert stage.get("compile.compiles") == 3
    assert stage.get("compile.compiles_after_warmup") == 1
    assert stage.get("compile.compile_seconds") == 2
    assert stage.get("path.witnessed.fallbacks") == {"aten::median": 4}
    assert stage.get("path.witnessed.host_transfers_per_step") == 0.8
    assert stage.get("hardware.accelerator") == "TPU v6 lite"
    assert stage.get("hardware.chips") == 4
    assert stage.get("path.witnessed.runtime") == "pjrt-tpu"
    assert stage.facts.memory["device", 0, "steady"] == {"bytes_used": 10, "bytes_limit": 100, "peak_bytes": 40}
    assert set(xla.asked) == {"xla:0"}
    assert stage.observed("torch-xla-metrics")["UncachedCompile@warm"] == 2


def test_what_a_span_apart_from_the_steps_counts_is_left_out(stand_in: StandIn) -> None:
    xla, stage = Xla(stand_in), Stage("torch_xla", warmup=2)
    torch_xla.at_warm(stage.ended(2).stated)
    for _ in range(2):
        xla.step(aten___local_scalar_dense=1)
        torch_xla.at_span(stage.stated, True)
        xla.step(compiles=1, aten___local_scalar_dense=10, aten__median=3)
        torch_xla.at_span(stage.stated, False)
    torch_xla.at_end(stage.ended(6).stated)
    assert stage.get("compile.compiles") == 3
    assert stage.get("compile.compiles_after_warmup") == 0
    assert stage.get("path.witnessed.fallbacks") == {}
    assert stage.get("path.witnessed.host_transfers_per_step") == 0.5


def test_a_cleared_table_states_nothing(stand_in: StandIn) -> None:
    xla, stage = Xla(stand_in), Stage("torch_xla", warmup=1)
    torch_xla.at_warm(stage.ended(1).stated)
    xla.counts.clear()
    torch_xla.at_end(stage.ended(5).stated)
    assert stage.get("compile.compiles") is None
    assert stage.get("path.witnessed.fallbacks") is None
    assert "counters were cleared" in stage.notes


def test_a_table_without_an_execution_is_no_clean_run(stand_in: StandIn) -> None:
    xla, stage = Xla(stand_in), Stage("torch_xla")
    xla.counts.clear()
    xla.samples.clear()
    torch_xla.at_end(stage.ended(5).stated)
    assert stage.get("path.witnessed.fallbacks") is None
    assert "executed nothing" in stage.notes


def test_a_cache_that_cannot_be_loaded_from_saves_nothing(stand_in: StandIn) -> None:
    xla, stage = Xla(stand_in), Stage("torch_xla")
    xla.counts |= {"PersistentCacheMiss": 2, "PersistentCacheDeserializeFailure": 2}
    torch_xla.at_end(stage.ended(5).stated)
    assert stage.get("compile.cache_state") == "cold"
    assert "2 cached programs could not be loaded" in stage.notes


def test_under_spmd_the_host_names_the_chip(stand_in: StandIn) -> None:
    Xla(stand_in, spmd=True)
    stage = Stage("torch_xla")
    stage.stated.flag("TPU_ACCELERATOR_TYPE", "v6e-4", before_runtime=True)
    torch_xla.at_phase(stage.stated, "steady")
    torch_xla.at_end(stage.stated)
    assert stage.get("hardware.accelerator") == "v6e-4"
    assert not stage.facts.memory


@pytest.mark.parametrize(("marks", "kept"), [(30, "the forward pass"), (60, "the forward pass\nbackward")])
def test_a_step_that_ends_in_several_programs_keeps_each_of_size(
    marks: int, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate(("", "backward", "the forward pass")):
        (tmp_path / f"module_{number}.{torch_xla.PROGRAM}").write_text(text)
    monkeypatch.setattr(torch_xla, "_own", [str(tmp_path)])
    monkeypatch.setattr(torch_xla, "table", lambda: torch_xla.MetricsSnapshot({"MarkStep": marks}, 0.0))
    assert dict(torch_xla.texts(30))["hlo"] == kept
