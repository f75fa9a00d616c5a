"""What was asked for: by a framework's own configuration, by a type, by degrees, and by naming a lane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest_evidence import at, file, ingested, reading, told
from receipts.axes.lane import Coupling, Lane
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.reading import Reading

LANE = Lane(
    name="mine",
    version=1,
    title="one way of everything",
    frameworks=("fsdp2",),
    path={"runtime": ("cuda",)},
    postures=("eager",),
    witness=("framework", "runtime", "attention", "gemm", "posture", "compute_dtype", "sharding"),
    not_applicable={"numerics.adapters.kind": "nobody adapts"},
)
FOLLOWING = replace(
    LANE,
    couplings=(
        Coupling("precision", ("path.gemm",), "the name of the GEMM carries its type"),
        Coupling("topology", ("path.sharding",), "the degrees make the partition"),
    ),
)


def seeing(source: str = "torch-profiler", **seen: str) -> Reading:
    made = Reading(source, records=1)
    for leaf, value in seen.items():
        made.see(leaf, value, "kernels")
    return made


def on(lane: Lane, *files: Any, **settings: Any) -> Ingested:
    stated = {name.replace("__", "."): value for name, value in settings.items()}
    return assemble(files, Options(lane.name, None, stated, (lane,)))


def test_a_framework_that_was_merely_seen_was_not_asked_for(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, seeing("deepspeed", framework="deepspeed")))
    assert at(found, "path.intended.framework") is None


@pytest.mark.parametrize(
    ("dtype", "library", "gemm"),
    [
        ("bf16", None, "bf16"),
        ("bfloat16", "te", "te_bf16"),
        ("fp8", "te", "te_fp8"),
        ("bf16", "torchao_fp8", "torchao_fp8"),
        ("bf16 + fp8", "te", "te"),
        (None, "te", "te"),
    ],
)
def test_a_multiplication_is_asked_for_by_its_type(
    tmp_path: Path, dtype: str | None, library: str | None, gemm: str
) -> None:
    asked = {"numerics__compute_dtype": dtype, "path__intended__gemm": library}
    log = file(tmp_path, reading(**{name: value for name, value in asked.items() if value}))
    assert at(on(FOLLOWING, log), "path.intended.gemm") == gemm
    assert at(ingested(log), "path.intended.gemm") == library  # on a lane where nothing follows, it is an axis


def test_an_attention_that_is_left_to_the_framework_is_any(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reading(features__attention_backend="auto")))
    assert at(found, "path.intended.attention") == "auto"


def test_degrees_of_torch_name_no_partition_of_a_compiler(tmp_path: Path) -> None:
    log = reading("torchtitan", parallelism__shard=8, parallelism__replicate=1)
    assert at(ingested(file(tmp_path, log)), "path.intended.sharding") is None


def test_naming_a_lane_asks_for_what_it_leaves_no_choice_about(tmp_path: Path) -> None:
    found = on(LANE, file(tmp_path, seeing(framework="fsdp2")))
    assert (at(found, "path.intended.framework"), at(found, "path.intended.runtime")) == ("fsdp2", "cuda")
    assert at(found, "compile.posture") == "eager"


def test_a_lane_with_a_choice_asks_for_none_of_it(tmp_path: Path) -> None:
    choice = replace(LANE, frameworks=("a", "b"), path={"runtime": ("cuda", "cpu")}, compile_exceptions=("helper*",))
    found = on(choice, file(tmp_path, seeing(attention="flash2")))
    assert at(found, "path.intended") is None
    assert at(found, "compile.posture") is None


def test_a_lane_that_was_only_proposed_asks_for_nothing(tmp_path: Path) -> None:
    files = (file(tmp_path, seeing(framework="fsdp2", runtime="cuda")),)
    found = assemble(files, Options(lanes=(LANE,)))
    assert (at(found, "run.lane"), at(found, "path.intended")) == ("mine", None)


def test_a_library_is_no_host_of_another_frameworks_lane(tmp_path: Path) -> None:
    found = on(replace(LANE, frameworks=("megatron-lm",)), file(tmp_path, seeing(framework="torch")))
    assert at(found, "path.witnessed.frameworks") is None
    assert "nothing shows the framework around it" in told(found)


def test_what_is_built_on_torch_hosts_it(tmp_path: Path) -> None:
    ranks = [file(tmp_path, seeing(framework=name), name=name) for name in ("torch", "fsdp2")]
    assert at(ingested(*ranks), "path.witnessed.frameworks") == ["fsdp2"]


def test_what_nobody_asked_for_is_listed_with_the_way_to_state_it(tmp_path: Path) -> None:
    log = reading("torchtitan", numerics__recompute="full", path__intended__overlap="tp")
    found = on(LANE, file(tmp_path, log), file(tmp_path, seeing(dispatch="alltoall"), name="trace"))
    listed = {item.path: item.get for item in found.missing}
    assert "--set path.intended.sharding=" in listed["path.intended.sharding"]
    # Of the rest of the path the lane is the intent.
    assert not {"path.intended.attention", "path.intended.gemm", "path.intended.dispatch"} & set(listed)
    assert {
        "path.witnessed.replicated",
        "numerics.recompute_applied",
        "path.witnessed.overlap",
        "compile.cuda_graph_implementation",
    } <= set(listed)
    assert "numerics.adapters.kind" not in listed


def test_ranks_that_disagree_are_told_together(tmp_path: Path) -> None:
    good, bad = seeing(attention="te_fused", posture="eager"), seeing(attention="te_unfused", posture="regional")
    good.fallbacks, bad.fallbacks = {}, {"aten::mm": 3}
    found = ingested(file(tmp_path, good, name="rank0"), file(tmp_path, bad, name="rank1"))
    assert at(found, "path.witnessed.attention") == "te_fused+te_unfused"
    assert at(found, "path.witnessed.posture") == "eager+regional"
    assert at(found, "path.witnessed.fallbacks") == {"aten::mm": 3}


def test_exposed_communication_is_that_of_the_rank_that_waited_most(tmp_path: Path) -> None:
    ranks = [
        file(tmp_path, reading("torch-profiler", measurement__exposed_communication_seconds=time), name=f"{time}")
        for time in (0.25, 0.75, 0.5)
    ]
    found = ingested(*ranks)
    assert at(found, "measurement.exposed_communication_seconds") == 0.75
    assert not found.contradictions


def test_a_program_that_replicates_nothing_says_so(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, seeing("hlo", replicated=""))), "path.witnessed.replicated") == []


def test_nanotrons_stamp_has_the_month_first(tmp_path: Path) -> None:
    text = "05/04/2026 09:00:01 [INFO|DP=0|PP=0|TP=0|host]: iteration: 1 / 9\n"
    log = reading("nanotron", batch__micro_batch=2)
    log.steps.put(1, {"step_seconds": 1.0})
    assert at(ingested(file(tmp_path, log, text=text)), "run.started") == "2026-05-04T09:00:01Z"
    log.source = "deepspeed"
    assert at(ingested(file(tmp_path, log, text=text)), "run.started") != "2026-05-04T09:00:01Z"


def test_a_library_without_a_type_agrees_with_the_type_that_was_asked_for(tmp_path: Path) -> None:
    configured = reading("megatron", path__intended__gemm="te", numerics__compute_dtype="bf16")
    found = on(FOLLOWING, file(tmp_path, configured), path__intended__gemm="te_bf16")
    assert not found.contradictions
    other = on(FOLLOWING, file(tmp_path, configured, name="other.log"), path__intended__gemm="cublas_bf16")
    assert [item.path for item in other.contradictions] == ["path.intended.gemm"]
