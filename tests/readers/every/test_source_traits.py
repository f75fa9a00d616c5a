"""What `sources.toml` of a reader's folder says of its sources, and what follows for a receipt."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest_evidence import at, file, ingested, reading, stepping, told
from receipts import readers
from receipts.axes.lane import Coupling, Lane
from receipts.ingest import vocabulary
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.reading import Reading, Timing

FILES = sorted(Path(readers.__path__[0]).glob("*/sources.toml"))
LANE = Lane(
    name="one",
    version=1,
    title="one way of everything",
    accelerators=("h200-sxm",),
    frameworks=("megatron-lm",),
    path={"runtime": ("cuda",)},
    postures=("eager",),
    witness=("attention", "gemm"),
    couplings=(Coupling("topology", ("path.sharding",), "the degrees make the partition"),),
)
FOLLOWING = replace(LANE, frameworks=("fsdp2",))


def on(lane: Lane, *files: Any) -> Ingested:
    return assemble(files, Options(lane.name, None, {}, (lane,)))


def seeing(framework: str) -> Reading:
    made = Reading("torch-profiler", records=1)
    made.see("framework", framework, "kernels")
    return made


def test_no_two_folders_say_something_of_one_source() -> None:
    declared = [tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES]
    for part in ("sources", "frameworks"):
        names = [name for table in declared for name in table.get(part, {})]
        assert len(names) == len(set(names)) > 5


def test_what_nothing_is_said_of_is_a_program_that_prints_of_itself() -> None:
    assert vocabulary.source("another").strength == "printed"
    assert {vocabulary.source(name).strength for name in ("command-line", "pip-freeze", "wandb")} == {"asked"}
    assert vocabulary.source("mlperf-platform").strength == "noted"


def test_a_framework_that_printed_its_configuration_was_asked_for(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reading("torchtitan", batch__micro_batch=2)))
    assert at(found, "path.intended.framework") == "torchtitan"


@pytest.mark.parametrize(("shard", "replicate", "sharding"), [(4, 1, "fsdp"), (1, 4, "dp"), (1, 1, None)])
def test_arrays_that_a_compiler_places_are_asked_for_by_degrees(
    tmp_path: Path, shard: int, replicate: int, sharding: str | None
) -> None:
    log = reading("maxtext", parallelism__shard=shard, parallelism__replicate=replicate)
    log.see("framework", "maxtext", "backend")
    assert at(on(FOLLOWING, file(tmp_path, log)), "path.intended.sharding") == sharding


def test_a_form_that_other_loops_print_names_no_framework_against_the_lane_or_another_source(tmp_path: Path) -> None:
    steps = stepping([1.0] * 12, source="llm.c")
    assert at(ingested(file(tmp_path, steps)), "path.witnessed.framework") == "llm.c"
    own = replace(LANE, frameworks=("torch",))
    assert at(on(own, file(tmp_path, steps)), "path.witnessed.framework") is None
    assert at(on(own, file(tmp_path, steps, seeing("torch"))), "path.witnessed.framework") == "torch"
    assert at(ingested(file(tmp_path, steps, seeing("jax"))), "path.witnessed.framework") == "jax"


def test_lines_that_only_one_framework_prints_show_it_on_any_lane(tmp_path: Path) -> None:
    own = replace(LANE, frameworks=("torch",))
    for source, host in (("megatron", "megatron-lm"), ("torchtitan", "torchtitan"), ("deepspeed", "deepspeed")):
        assert at(on(own, file(tmp_path, stepping([1.0] * 12, source=source))), "path.witnessed.framework") == host


def test_timers_of_deepspeeds_engine_show_it_without_a_step_line(tmp_path: Path) -> None:
    log = reading("deepspeed", batch__micro_batch=2)
    assert at(ingested(file(tmp_path, log)), "path.witnessed.framework") is None
    log.timings["fwd_microstep"] = Timing(4, 0.5)
    assert at(ingested(file(tmp_path, log)), "path.witnessed.framework") == "deepspeed"


@pytest.mark.parametrize(
    ("accelerator", "source", "lane"),
    [
        ("NVIDIA H200", "megatron", "one"),
        ("TPU v6e", "megatron", "unlisted"),
        ("NVIDIA H200", "nanotron", "unlisted"),
    ],
)
def test_a_lane_is_proposed_for_framework_and_accelerator(
    tmp_path: Path, accelerator: str, source: str, lane: str
) -> None:
    config = reading("x-config", hardware__accelerator=accelerator)
    found = assemble([file(tmp_path, config, stepping([1.0], source))], Options(lanes=(LANE,)))
    assert at(found, "run.lane") == lane


def test_what_the_lane_wants_witnessed_and_nobody_saw_is_missing(tmp_path: Path) -> None:
    found = assemble([file(tmp_path, stepping([1.0]))], Options(lane="one", lanes=(LANE,)))
    wanted = {item.path: item.get for item in found.missing}
    assert "NVTE_DEBUG" in wanted["path.witnessed.attention"]
    assert "path.witnessed.gemm" in wanted


def test_a_printed_mfu_stands_where_its_formula_and_denominator_are_known(tmp_path: Path) -> None:
    peak = reading(
        "torchtitan", measurement__stated__peak_flops_per_second=9.89e14, measurement__stated__peak_dtype="bf16"
    )
    found = ingested(file(tmp_path, peak, stepping([1.0, 1.0], "torchtitan", mfu=0.4)))
    assert at(found, "measurement.stated.mfu") == 0.4
    assert at(found, "measurement.stated.formula") == "torchtitan"
    bare = ingested(file(tmp_path, stepping([1.0, 1.0], "torchtitan", mfu=0.4)))
    assert at(bare, "measurement.stated.mfu") is None
    assert "left out" in told(bare)
