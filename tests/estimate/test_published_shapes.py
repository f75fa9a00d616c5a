"""Published TPU v6e shapes that ran: no estimate calls one of them impossible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from receipts.base.environment import bundled_folder
from receipts.estimate.activations import policy_of, survives
from receipts.estimate.saved_tensors import SavedTensor
from receipts.estimate.surface import SurfaceName
from receipts.judging.rulebook import Rulebook
from receipts.questions.fit import MemoryEstimate, estimate, predicted_rows
from receipts.questions.plan import plan_of
from receipts.questions.preflight import estimated
from receipts.receipt import Document, Parsed, parse

LANE = Rulebook(()).lanes.of("tpu-maxtext")
LLAMA_8B = {
    "family": "dense",
    "depth": 32,
    "hidden": 4096,
    "heads": 32,
    "kv_heads": 8,
    "ffn": 14336,
    "vocabulary": 128256,
}
LLAMA_70B = {
    "family": "dense",
    "depth": 80,
    "hidden": 8192,
    "heads": 64,
    "kv_heads": 8,
    "ffn": 28672,
    "vocabulary": 128256,
}
LLAMA2_70B = {**LLAMA_70B, "vocabulary": 32000}
GPT3 = {"family": "dense", "depth": 96, "hidden": 12288, "heads": 96, "ffn": 49152, "vocabulary": 50304,
        "ffn_projections": 2, "tied_embeddings": True}  # fmt: skip
GEMMA3 = {"family": "dense", "depth": 48, "hidden": 3840, "heads": 16, "kv_heads": 8, "head_dim": 256, "ffn": 15360,
          "vocabulary": 262144, "tied_embeddings": True}  # fmt: skip
MIXTRAL_7B = {"family": "moe", "depth": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "expert_ffn": 14336,
              "vocabulary": 32000, "experts": 8, "top_k": 2, "capacity_factor": 1.25}  # fmt: skip
MIXTRAL_22B = {**MIXTRAL_7B, "depth": 56, "hidden": 6144, "heads": 48, "expert_ffn": 16384}
OFFLOAD = "custom, offload decoder_layer_input out_proj query_proj key_proj value_proj"
# AI-Hypercomputer/tpu-recipes, training/trillium: model, chips, batch a chip, tokens, policy, more.
RECIPES: dict[str, tuple[dict[str, Any], int, int, int, str, dict[str, Any]]] = {
    "Llama3.1-8B v6e-8": (LLAMA_8B, 8, 3, 8192, OFFLOAD, {}),
    "Llama3.1-8B v6e-16": (LLAMA_8B, 16, 3, 8192, OFFLOAD, {}),
    "Llama3.1-8B v6e-64": (LLAMA_8B, 64, 5, 8192, OFFLOAD, {}),
    "Llama3.1-8B v6e-256": (LLAMA_8B, 256, 4, 8192, OFFLOAD, {}),
    "Llama3.1-70B v6e-32": (LLAMA_70B, 32, 2, 8192, OFFLOAD, {"parameter_dtype": "bf16"}),
    "Llama3.1-70B v6e-128": (LLAMA_70B, 128, 4, 8192, OFFLOAD, {}),
    "Llama2-70B v6e-256": (LLAMA2_70B, 256, 3, 4096, "qkv_proj_offloaded", {}),
    "GPT3-175B v6e-256": (GPT3, 256, 3, 2048, "full", {}),
    "GPT3-175B v6e-256 fp8": (GPT3, 256, 3, 2048, "full", {"compute_dtype": "fp8"}),
    "Gemma3-12B v6e-256": (GEMMA3, 256, 1, 32768, "full", {"loss": "vocabulary tiled in 16 chunks"}),
    "Gemma3-12B 2x v6e-256": (GEMMA3, 512, 1, 32768, "full", {"loss": "vocabulary tiled in 16 chunks"}),
    "Mixtral-8x7B v6e-256": (MIXTRAL_7B, 256, 12, 4096, OFFLOAD, {}),
    "Mixtral-8x22B v6e-256": (MIXTRAL_22B, 256, 8, 4096, OFFLOAD, {}),
}


LLAMA_405B = {"family": "dense", "depth": 126, "hidden": 16384, "heads": 128, "kv_heads": 8, "ffn": 53248,
              "vocabulary": 128256}  # fmt: skip
# torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: model, chips, degrees, micro batch and count, tokens, GiB.
TORCHTITAN: dict[str, tuple[dict[str, Any], int, dict[str, int], int, int, int, float]] = {
    "8B, FSDP 8": (LLAMA_8B, 8, {"shard": 8}, 1, 1, 32768, 83.9),
    "8B, FSDP 2, CP 4": (LLAMA_8B, 8, {"shard": 2, "context": 4}, 1, 1, 131072, 84.0),
    "70B, FSDP 32, TP 8": (LLAMA_70B, 256, {"shard": 32, "tensor": 8}, 16, 1, 8192, 71.9),
    "405B, 1F1B": (LLAMA_405B, 512, {"shard": 8, "tensor": 8, "pipeline": 8}, 4, 8, 8192, 82.5),
    "405B, interleaved": (
        LLAMA_405B, 512, {"shard": 8, "tensor": 8, "pipeline": 8, "virtual_pipeline": 2}, 2, 16, 8192, 72.7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TORCHTITAN)
def test_torchtitans_published_memory_is_within_a_tenth(name: str) -> None:
    model, chips, degrees, micro, steps, tokens, measured = TORCHTITAN[name]
    degrees = {"tensor": 1, "pipeline": 1, "context": 1, "data": degrees["shard"], **degrees}
    tree = {
        "schema_version": "1.0",
        "run": {"lane": "nvidia-torchtitan", "kind": "training", "label": name},
        "hardware": {"accelerator": "NVIDIA H100", "chips": chips},
        "model": model | {"ffn_projections": 3, "mtp_depth": 0, "tied_embeddings": False},
        "parallelism": {**degrees, "strategy": "fsdp2", "sequence": degrees["tensor"] > 1},
        "batch": {"micro_batch": micro, "sequence_length": tokens, "accumulation": steps},
        "numerics": {"recompute": "full", "compute_dtype": "bf16", "optimizer": "adamw"},
        "path": {"intended": {"framework": "torchtitan", "attention": "sdpa_flash"}},
    }
    item = estimate(plan_of(tree, name), Rulebook(()).lanes.of("nvidia-torchtitan"))
    pool = (item.live_bytes or 0) + next(each.peak_bytes for each in item.surfaces if each.name is SurfaceName.OVERHEAD)
    assert pool / 2**30 == pytest.approx(measured, rel=0.10)


@pytest.mark.parametrize("policy", ["selective: op", "selective: 2", "selective"])
def test_torchtitans_selective_checkpoints_have_no_formula(policy: str) -> None:
    tree = json.loads(_plan("Llama3.1-8B v6e-8").raw)
    tree["numerics"]["recompute"] = policy
    tree["path"]["intended"] |= {"framework": "torchtitan"}
    assert estimate(plan_of(tree, policy), Rulebook(()).lanes.of("nvidia-torchtitan")).fits is None


def _plan(name: str) -> Parsed:
    model, chips, batch, tokens, policy, more = RECIPES[name]
    tree = {
        "schema_version": "1.0",
        "run": {"lane": "tpu-maxtext", "kind": "training", "label": name},
        "hardware": {"accelerator": "TPU v6e", "chips": chips},
        "model": model,
        "parallelism": {"data": chips, "shard": chips, "strategy": "fsdp"},
        "batch": {"micro_batch": batch, "global_batch": batch * chips, "sequence_length": tokens, "accumulation": 1},
        "numerics": {"recompute": policy, "compute_dtype": more.get("compute_dtype", "bf16"),
                     "parameter_dtype": more.get("parameter_dtype", "fp32"),
                     "adapters": {"kind": more.get("adapters", "none")}},
        "path": {"intended": {"framework": "maxtext", "attention": "pallas_splash",
                              "cross_entropy": more.get("loss", "xla")}},
    }  # fmt: skip
    return plan_of(tree, name)


def _estimate(name: str) -> MemoryEstimate:
    return estimate(_plan(name), LANE)


@pytest.mark.parametrize("name", RECIPES)
def test_a_published_shape_that_ran_is_never_called_impossible(name: str) -> None:
    item = _estimate(name)
    assert not item.missing
    assert item.fits is not False, f"{(item.total_bytes or 0) / 2**30:.1f} GiB"


def test_an_estimate_that_a_pressed_compiler_may_halve_is_no_veto() -> None:
    plan = _plan("GPT3-175B v6e-256")
    item = estimate(plan, LANE)
    assert item.fits is None
    assert item.budget_bytes is not None
    assert (item.least_bytes or 0) <= item.budget_bytes < (item.total_bytes or 0)
    assert estimated(plan, LANE) is None


def test_a_shape_beyond_the_least_estimate_does_not_fit() -> None:
    model, chips, batch, tokens, policy, more = RECIPES["GPT3-175B v6e-256"]
    RECIPES["too large"] = (model, chips, 8 * batch, tokens, policy, more)
    assert _estimate("too large").fits is False
    del RECIPES["too large"]


@pytest.mark.parametrize("name", ["nam56r-h200-megatron", "nam56r-v6e-torch-xla"])
def test_a_shipped_illustration_is_estimated_and_is_no_measure(name: str) -> None:
    path = bundled_folder("schema") / "examples" / f"{name}.json"
    parsed = parse(Document(path.read_bytes(), name))
    item = estimate(parsed, Rulebook(()).lanes.of(parsed.receipt.run.lane))
    assert item.measured is None
    assert item.delta is None
    assert not item.uncounted
    assert item.fits is True
    stated = parsed.receipt.memory
    assert stated is not None
    assert [row.surface for row in stated.predicted or ()] == [row["surface"] for row in predicted_rows(item)]


def test_states_in_host_memory_take_none_of_the_chip() -> None:
    plan = _plan("Llama3.1-8B v6e-16")
    held = {each.name.value: each.bytes for each in estimate(plan, LANE).surfaces}
    moved = estimate(plan_of(json.loads(plan.raw) | {"features": {"optimizer_offload": "cpu"}}, "offloaded"), LANE)
    after = {each.name.value: each.bytes for each in moved.surfaces}
    assert held["other optimizer"] > 0
    assert after["other optimizer"] == 0
    assert after["gradients"] == held["gradients"]


@pytest.mark.parametrize(
    ("text", "input_kept"),
    [("qkv_proj_offloaded", True), ("minimal_offloaded", True), ("custom, offload decoder_layer_input", False)],
)
def test_tensors_offloaded_to_the_host_are_not_kept(text: str, input_kept: bool) -> None:
    policy = policy_of(text)
    assert policy is not None
    kept = survives(policy, [SavedTensor("block input", "input", 3.0), SavedTensor("mlp hidden", "projection", 5.0)])
    assert kept == (3.0 if input_kept else 0.0)


def test_a_policy_without_a_formula_leaves_the_answer_unknown() -> None:
    model, chips, batch, tokens, _, more = RECIPES["GPT3-175B v6e-256"]
    RECIPES["own"] = (model, chips, 8 * batch, tokens, "a policy of our own", more)
    item = _estimate("own")
    del RECIPES["own"]
    assert item.fits is None
    assert "'a policy of our own' is counted as none" in item.uncounted[0]


def test_the_page_of_refused_plans_has_what_the_estimator_says_today(checkout: Path) -> None:
    page = (checkout / "examples" / "fit" / "README.md").read_text(encoding="utf-8")
    words = {True: "fits", False: "does not fit", None: "unknown"}
    plans = sorted((checkout / "examples" / "fit").glob("*.plan.json"))
    assert len(plans) == 5
    for path in plans:
        name = path.name.removesuffix(".plan.json")
        item = estimate(plan_of(json.loads(path.read_bytes()), name), LANE)
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}`")]
        *_, amount, answer = row.strip("| ").split(" | ")
        assert amount == f"{(item.total_bytes or 0) / 2**30:.2f} GiB"
        assert answer.startswith(words[item.fits]), name


def test_adapters_have_no_formula_and_the_answer_is_unknown() -> None:
    model, chips, batch, tokens, policy, more = RECIPES["GPT3-175B v6e-256"]
    RECIPES["own"] = (model, chips, 8 * batch, tokens, policy, {**more, "adapters": "lora"})
    item = _estimate("own")
    del RECIPES["own"]
    assert item.fits is None
    assert "adapters 'lora' are not counted" in item.uncounted[0]


def test_what_a_plan_does_not_name_may_be_more_or_less() -> None:
    tree = json.loads(_plan("Llama3.1-8B v6e-8").raw)
    del tree["numerics"]["recompute"]
    item = estimate(plan_of(tree, "no policy"), LANE)
    assert item.fits is None
    assert (item.least_bytes or 0) <= (item.budget_bytes or 0) < (item.total_bytes or 0)
    tree["run"]["lane"] = "nvidia-megatron"
    tree["hardware"] = {"accelerator": "NVIDIA H100 80GB HBM3", "chips": 64}
    tree["parallelism"] = {"tensor": 1, "pipeline": 1, "context": 1, "data": 64}
    tree["batch"] |= {"micro_batch": 1, "global_batch": 64, "sequence_length": 1024}
    tree["numerics"] = {"recompute": "full", "adapters": {"kind": "none"}}
    tree["path"]["intended"] |= {"framework": "megatron-core", "attention": "te_flash"}
    unnamed = estimate(plan_of(tree, "no strategy"), megatron := Rulebook(()).lanes.of("nvidia-megatron"))
    assert unnamed.fits is None
    assert (unnamed.total_bytes or 0) <= (unnamed.budget_bytes or 0) < (unnamed.most_bytes or 0)
    tree["parallelism"]["strategy"] = "zero1"
    assert estimate(plan_of(tree, "zero1"), megatron).fits is True
    tree["parallelism"]["strategy"] = "ddp"
    assert estimate(plan_of(tree, "ddp"), megatron).fits is False
