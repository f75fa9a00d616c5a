"""Lanes at work: a fully stated run of each lane can be accepted, and couplings excuse only what follows."""

from __future__ import annotations

from typing import Any

import pytest

import rule_cases
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.verdict import Comparison

# A noise floor lets one launch a side carry an interval.
FACTS = Facts(sigma=0.003, sigma_df=30)
CHANGED = {"numerics.learning_rate": 7e-4}
JAX: dict[str, Any] = {
    "run.lane": "cpu-jax",
    "wheels.jax": "0.10.2",
    "wheels.jaxlib": "0.10.2",
    "flags.JAX_PLATFORMS": {"value": "cpu", "before_runtime": True},
    "compile.posture": "jit",
    "compile.backend": "xla",
    "compile.cache_state": "cold",
    "compile.compiles": 2,
    "compile.compile_seconds": 1.4,
    "compile.cache_misses": 2,
    "path.intended.framework": "jax",
    "path.intended.attention": "xla",
    "path.intended.gemm": "xla fp32",
    "path.witnessed.framework": "jax",
    "path.witnessed.frameworks": ["jax"],
    "path.witnessed.attention": "xla",
    "path.witnessed.gemm": "xla fp32",
    "path.witnessed.posture": "jit",
}


def side(base: str, changes: dict[str, Any], name: str, seconds: float) -> dict[str, Any]:
    """A clean base with changes and other durations; rates that its durations would contradict are taken out."""
    tree = rule_cases.build({"steps": {"seconds": seconds, "seed": 3}, "set": changes}, base)
    rule_cases.take(tree, "measurement.goodput")
    rule_cases.take(tree, "measurement.loss.first")
    tree["run"]["launch"] = name
    return tree


def verdict(base: str, a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    """B a tenth faster than A, at durations that the base's machine can reach."""
    seconds = 0.8 if base == "cpu" else 2.4
    left = rule_cases.parsed(side(base, a, "launch-a", seconds), "a.json")
    right = rule_cases.parsed(side(base, b, "launch-b", 0.9 * seconds), "b.json")
    return compare([left], [right], rule_cases.rulebook(), Request(facts=FACTS))


def heavy(found: Comparison) -> list[tuple[str, str, str]]:
    return [(item.code, item.at, item.found) for item in found.findings if item.level != "W"]


@pytest.mark.parametrize("base", sorted(rule_cases.BASES))
def test_a_fully_stated_pair_one_axis_apart_is_accepted(base: str) -> None:
    found = verdict(base, {}, CHANGED)
    assert found.status == "accepted", heavy(found)
    assert found.path == "witnessed"


def test_a_small_jax_run_on_a_processor_is_accepted() -> None:
    found = verdict("cpu", JAX, {**JAX, **CHANGED})
    assert found.status == "accepted", heavy(found)


def test_the_same_runs_without_a_declared_lane_are_never_witnessed() -> None:
    unlisted = {"run.lane": "somebody's"}
    found = verdict("cpu", unlisted, {**unlisted, **CHANGED})
    assert found.path == "unwitnessed"
    assert found.status == "inconclusive"


def pipelined(stages: int, schedule: str) -> dict[str, Any]:
    """Eight chips in so many stages; data parallel follows, and accumulation with it."""
    data = 4 // stages
    return {
        "parallelism.pipeline": stages,
        "parallelism.schedule": schedule,
        "parallelism.data": data,
        "parallelism.expert": 1,
        "batch.accumulation": 64 // (4 * data),
    }


def test_one_stage_has_no_schedule_so_that_ending_the_pipeline_is_one_change() -> None:
    found = verdict("megatron", pipelined(2, "1f1b"), pipelined(1, "interleaved"))
    assert found.counted == ("parallelism.pipeline",)


def test_another_schedule_is_not_excused_by_another_number_of_stages() -> None:
    found = verdict("megatron", pipelined(2, "1f1b"), pipelined(4, "zero_bubble"))
    assert set(found.counted) == {"parallelism.pipeline", "parallelism.schedule"}
    assert found.comparable == "no"


def test_the_name_of_the_gemm_follows_the_precision() -> None:
    fp8 = {
        "numerics.compute_dtype": "fp8",
        "numerics.fp8_recipe": "delayed",
        "numerics.fp8_scope": "all",
        "path.intended.gemm": "te fp8",
        "path.witnessed.gemm": "te fp8",
        "path.witnessed.compute_dtype": "fp8",
        "measurement.stated.peak_dtype": "bf16",
    }
    found = verdict("megatron", {}, fp8)
    assert found.counted == ("precision",)
    assert dict(found.uncounted)["path.gemm"].startswith("follows precision")


@pytest.mark.parametrize("degree", ["tensor", "context"])
def test_the_sharded_degree_of_fsdp2_is_what_the_other_degrees_leave(degree: str) -> None:
    fsdp2 = {"run.lane": "nvidia-fsdp2", "parallelism.tensor": 1, "parallelism.expert": 1}
    fsdp2 |= {"parallelism.shard": 8, "parallelism.data": 8, "parallelism.mesh_axes": "dp_shard:8"}
    split = {"parallelism.shard": 4, "parallelism.data": 4, f"parallelism.{degree}": 2}
    found = verdict("megatron", fsdp2, {**fsdp2, **split, "parallelism.mesh_axes": f"dp_shard:4,{degree}:2"})
    assert found.counted == (f"parallelism.{degree}",)


def test_the_mesh_of_an_xla_lane_follows_its_degrees() -> None:
    wider = {
        "parallelism.tensor": 4,
        "parallelism.data": 2,
        "parallelism.shard": 2,
        "parallelism.mesh_axes": "data:2,expert:1,model:4",
        "batch.accumulation": 8,
        "path.intended.sharding": "zero3 over data, model 4 on hidden",
        "path.witnessed.sharding": "zero3 over data, model 4 on hidden",
    }
    found = verdict("tpu", {}, wider)
    assert found.counted == ("parallelism.tensor",)
