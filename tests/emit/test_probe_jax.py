"""JAX: the real package on a CPU where RECEIPTS_LAB_PYTHON has it, and modules that stand in for a TPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_stage import LAB, Stage, StandIn, lab, lab_job, stand_in
from receipts.emit.probes import frameworks, jax
from receipts.receipt import parse
from receipts.receipt import read as read_document

__all__ = ["stand_in"]
LOOP = """
import contextlib, os, jax, jax.numpy as jnp
from receipts.emit import Recorder
kind = os.environ.get("KIND", "")
if kind == "early":
    jnp.ones(3).block_until_ready()
if os.environ.get("CACHE"):
    jax.config.update("jax_compilation_cache_dir", os.environ["CACHE"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

with Recorder("cpu-jax", context="c", warmup=3, out="run.json", quiet=True) as rec:
    w = jnp.ones((16, 16))
    xs = [jnp.ones((8, 16)), jnp.ones((9, 16))]
    mesh = jax.make_mesh((4, 2), ("data", "model")) if jax.device_count() == 8 else contextlib.nullcontext()
    with mesh:
        for number in range(12):
            with rec.step(tokens=8):
                w = step(w, xs[kind == "shapes" and number > 7])
                w.block_until_ready()
                if kind == "eval" and number == 7:
                    with rec.span("eval"):
                        jax.jit(lambda w: (w @ w).sum())(w).block_until_ready()
"""


def folder(under: Path, name: str) -> Path:
    path = under / (name or "none")
    path.mkdir()
    return path


def test_compiles_of_a_clean_loop_lie_before_the_window(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "jax"), tmp_path, LOOP)
    assert found["compile"]["compiles"] >= 1
    assert found["compile"]["compiles_after_warmup"] == 0
    assert found["compile"]["cache_state"] == "off"
    assert found["measurement"]["step_flags"]["compile"] == [0]
    assert found["hardware"] == {"accelerator": "cpu", "chips": 1, "hosts": 1}
    assert found["path"]["witnessed"]["runtime"] == "cpu"
    assert found["path"]["witnessed"]["framework"] == "jax"
    assert [row["phase"] for row in found["memory"]["chips"]] == ["post_init", "post_step0", "steady"]
    assert "could not be read" not in str(found["notes"])
    assert parse(read_document(str(tmp_path / "run.json"))).stated["compile.cache_state"] == "off"


def test_a_new_shape_after_warm_up_is_a_recompile_of_its_step(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "jax"), tmp_path, LOOP, KIND="shapes")
    assert found["compile"]["compiles_after_warmup"] == 1
    assert found["measurement"]["step_flags"]["recompile"] == [8]


def test_what_an_evaluation_within_a_step_compiles_is_no_recompile_of_the_step(tmp_path: Path) -> None:
    found = lab_job(lab(LAB, "jax"), tmp_path, LOOP, KIND="eval")
    assert found["compile"]["compiles_after_warmup"] == 0
    flags = found["measurement"]["step_flags"]
    assert (flags["compile"], flags["eval"], "recompile" in flags) == ([0], [7], False)


def test_devices_of_a_host_are_chips_and_their_mesh_is_stated(tmp_path: Path) -> None:
    flags = "--xla_force_host_platform_device_count=8"
    found = lab_job(lab(LAB, "jax"), tmp_path, LOOP, XLA_FLAGS=flags)
    assert found["hardware"]["chips"] == 8
    assert found["parallelism"] == {"mesh_axes": "data:4,model:2"}
    assert found["flags"]["XLA_FLAGS.xla_force_host_platform_device_count"] == {"value": "8", "before_runtime": True}
    rows = found["memory"]["chips"]
    assert {row["chip"] for row in rows} == set(range(8))
    assert all(row["peak_bytes"] >= row["bytes_used"] for row in rows)


def test_the_cache_on_disk_is_cold_and_then_warm(tmp_path: Path) -> None:
    python, cache = lab(LAB, "jax"), str(tmp_path / "cache")
    cold = lab_job(python, tmp_path, LOOP, CACHE=cache)["compile"]
    (tmp_path / "run.json").unlink()
    warm = lab_job(python, tmp_path, LOOP, CACHE=cache)["compile"]
    assert (cold["cache_state"], cold["cache_hits"]) == ("cold", 0)
    assert (warm["cache_state"], warm["cache_misses"], warm["compiles"]) == ("warm", 0, 0)


def test_what_was_compiled_before_the_recorder_listened_is_counted_where_no_disk_has_it(tmp_path: Path) -> None:
    python = lab(LAB, "jax")
    late, early = (lab_job(python, folder(tmp_path, kind), LOOP, KIND=kind)["compile"] for kind in ("", "early"))
    assert early["compiles"] > late["compiles"]
    assert (early["cache_state"], early["compiles_after_warmup"]) == ("off", 0)
    found = lab_job(python, folder(tmp_path, "kept"), LOOP, KIND="early", CACHE=str(tmp_path / "cache"))
    assert "compiles" not in found["compile"]
    assert "computed before the recorder listened" in "\n".join(found["notes"]["jax"])


class Tpu:
    """Stands in for JAX on TPU chips: a grid of them, and listeners that are called as JAX calls them."""

    def __init__(self, stand_in: StandIn, places: list[tuple[int, int, int]]) -> None:
        self.events: list[Any] = []
        self.durations: list[Any] = []
        stats = {"bytes_in_use": 10, "bytes_limit": 100, "peak_bytes_in_use": 60, "peak_bytes_reserved": 70}
        client = SimpleNamespace(platform_version="PJRT C API\nTFRT TPU v6 lite")
        devices = [
            SimpleNamespace(
                id=number, coords=place, device_kind="TPU v6 lite", platform="tpu", process_index=number // 4,
                client=client, memory_stats=lambda: stats,
            )
            for number, place in enumerate(places)
        ]  # fmt: skip
        stand_in(
            "jax",
            __version__="0.10.2",
            devices=lambda: devices,
            local_devices=lambda: devices[4:8] or devices,
            process_index=lambda: 1,
        )
        self.backends = stand_in("jax._src.xla_bridge", _backends={})
        self.values: dict[str, Any] = {"jax_enable_compilation_cache": True, "jax_compilation_cache_dir": "/c"}
        stand_in("jax._src.config", config=SimpleNamespace(values=self.values))
        stand_in(
            "jax._src.monitoring",
            register_event_listener=self.events.append,
            register_event_duration_secs_listener=self.durations.append,
            unregister_event_listener=self.events.remove,
            unregister_event_duration_listener=self.durations.remove,
        )

    def compile(self, name: str, hit: bool = False) -> None:
        for call in self.events:
            call(jax.HIT if hit else jax.MISS)
        for call in self.durations:
            call("/jax/core/compile/jaxpr_trace_duration", 9.0, fun_name=name)
            call(jax.COMPILED, 0.5, fun_name=name)


GRID = [(x, y, 0) for x in range(2) for y in range(4)]


def test_a_slice_is_read_from_its_devices(stand_in: StandIn) -> None:
    tpu, stage = Tpu(stand_in, GRID), Stage("jax", warmup=2)
    jax.at_start(stage.stated)
    vars(tpu.backends)["_backends"] = {"tpu": object()}
    tpu.compile("step")
    jax.at_warm(stage.ended(2).stated)
    tpu.compile("step", hit=True)
    jax.at_phase(stage.ended(9).stated, "steady")
    jax.at_end(stage.stated)
    assert stage.get("hardware.accelerator") == "TPU v6 lite"
    assert stage.get("hardware.chips") == 8
    assert stage.get("hardware.hosts") == 2
    assert stage.get("hardware.physical") == "2x4"
    assert stage.get("path.witnessed.runtime") == "pjrt-tpu"
    assert sorted(stage.facts.memory) == [("chip", chip, "steady") for chip in (4, 5, 6, 7)]
    assert stage.facts.memory["chip", 4, "steady"]["peak_reserved_bytes"] == 70
    assert stage.get("compile.compiles") == 1
    assert stage.get("compile.compile_seconds") == 0.5
    assert stage.get("compile.cache_state") is None
    assert "neither cold nor warm" in stage.notes
    assert tpu.events == tpu.durations == []


def test_a_job_that_is_killed_after_its_warm_up_has_the_machine(stand_in: StandIn) -> None:
    tpu, stage = Tpu(stand_in, GRID[:1]), Stage("jax", warmup=2)
    vars(tpu.backends)["_backends"] = {"tpu": object()}
    jax.at_warm(stage.ended(2).stated)
    frameworks.at_warm(stage.stated)
    assert (stage.get("hardware.accelerator"), stage.get("hardware.chips")) == ("TPU v6 lite", 1)
    assert stage.get("parallelism.tensor") == stage.get("parallelism.expert") == 1


def test_a_job_that_is_killed_in_its_warm_up_has_the_machine(stand_in: StandIn) -> None:
    tpu, stage = Tpu(stand_in, GRID[:1]), Stage("jax", warmup=5)
    vars(tpu.backends)["_backends"] = {"tpu": object()}
    jax.at_phase(stage.ended(1).stated, "post_step0")
    assert (stage.get("hardware.accelerator"), stage.get("hardware.chips")) == ("TPU v6 lite", 1)


def test_no_device_is_asked_for_before_the_job_has_started_a_backend(stand_in: StandIn) -> None:
    def refuse() -> None:
        raise AssertionError("a probe started a backend")

    Tpu(stand_in, GRID)
    stand_in("jax", __version__="0.10.2", devices=refuse, local_devices=refuse, process_index=refuse)
    stage = Stage("jax")
    jax.at_start(stage.stated)
    jax.at_phase(stage.stated, "steady")
    jax.at_end(stage.stated)
    assert stage.notes == ""


def test_two_devices_at_one_place_are_one_chip(stand_in: StandIn) -> None:
    tpu, stage = Tpu(stand_in, [place for place in GRID for _ in range(2)]), Stage("jax")
    vars(tpu.backends)["_backends"] = {"tpu": object()}
    jax.at_end(stage.stated)
    assert stage.get("hardware.chips") == 8


@pytest.mark.parametrize(
    ("places", "shape"),
    [
        (set(GRID), "2x4"),
        ({(0, 0, 0)}, "1x1"),
        ({(x, y, z) for x in range(2) for y in range(2) for z in range(4)}, "2x2x4"),
        ({(0, 0, 0), (1, 1, 0)}, None),
        (set(), None),
    ],
)
def test_chips_that_fill_a_grid_have_its_shape(places: set[tuple[int, ...]], shape: str | None) -> None:
    assert jax.grid(places) == shape
