"""Published models: parameters as their own implementations have them, latent attention as a real module keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.estimate.activations import in_flight
from receipts.estimate.resolve import Circumstances, Resolved, resolve
from receipts.estimate.saved_tensors import saved_tensors, stream_bytes
from receipts.estimate.weights import parameters_total
from receipts.metrics.flops import FORMULAS, geometry_of
from receipts.metrics.flops.matmuls import least_flops_per_token
from receipts.receipt.patterns import BlockKind

MEGATRON = Circumstances("nvidia-megatron", ("megatron-core",), "expert_in_data")
DENSE = {"family": "dense", "ffn_projections": 3, "tied_embeddings": False}
EXPERTS = {"alphabet": "nemo", "ffn_projections": 3, "tied_embeddings": False}
DEEPSEEK = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
LITE = {**DEEPSEEK, "q_lora_rank": None}
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
NANO_9B = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"

# Parameters of transformers 5.24's own classes on the meta device, and the widths of their configurations.
MODELS: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "Llama 2 7B": (6738415616, {**DENSE, "depth": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 11008,
                                "vocabulary": 32000}, {}),
    "Llama 3 405B": (405853388800, {**DENSE, "depth": 126, "hidden": 16384, "heads": 128, "kv_heads": 8, "ffn": 53248,
                                    "vocabulary": 128256}, {}),
    "Qwen3 0.6B": (596049920, {**DENSE, "depth": 28, "hidden": 1024, "heads": 16, "kv_heads": 8, "head_dim": 128,
                               "ffn": 3072, "vocabulary": 151936, "tied_embeddings": True}, {}),
    "Gemma 3 12B": (11765788416, {**DENSE, "depth": 48, "hidden": 3840, "heads": 16, "kv_heads": 8, "head_dim": 256,
                                  "ffn": 15360, "vocabulary": 262144, "tied_embeddings": True}, {}),
    "Falcon 7B": (6921720704, {**DENSE, "depth": 32, "hidden": 4544, "heads": 71, "kv_heads": 1, "head_dim": 64,
                               "ffn": 18176, "vocabulary": 65024, "ffn_projections": 2, "tied_embeddings": True}, {}),
    "Qwen3 30B-A3B": (30532122624, {**EXPERTS, "family": "moe", "depth": 48, "hidden": 2048, "heads": 32, "kv_heads": 4,
                                    "head_dim": 128, "expert_ffn": 768, "shared_expert_ffn": 0, "experts": 128,
                                    "top_k": 8, "vocabulary": 151936}, {}),
    "Mixtral 8x7B": (46702792704, {**EXPERTS, "family": "moe", "depth": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
                                   "head_dim": 128, "expert_ffn": 14336, "shared_expert_ffn": 0, "experts": 8,
                                   "top_k": 2, "vocabulary": 32000}, {}),
    "DeepSeek-V2 Lite": (15706484224, {**EXPERTS, "pattern": "[*-]" + 26 * "[*E]", "depth": 27, "hidden": 2048,
                                       "heads": 16, "ffn": 10944, "expert_ffn": 1408, "shared_expert_ffn": 2816,
                                       "experts": 64, "top_k": 6, "vocabulary": 102400}, LITE),
    "DeepSeek-V3": (671026404352, {**EXPERTS, "pattern": 3 * "[*-]" + 58 * "[*E]", "depth": 61, "hidden": 7168,
                                   "heads": 128, "ffn": 18432, "expert_ffn": 2048, "shared_expert_ffn": 2048,
                                   "experts": 256, "top_k": 8, "vocabulary": 129280}, DEEPSEEK),
    "Mamba-2 2.7B": (2702599680, {"family": "ssm", "alphabet": "nemo", "pattern": "M", "depth": 64, "hidden": 2560,
                                  "ssm_state": 128, "ssm_heads": 80, "ssm_groups": 1, "vocabulary": 50288,
                                  "tied_embeddings": True}, {"mamba_head_dim": 64}),
    "Nemotron Nano 9B v2": (8888227328, {**EXPERTS, "pattern": NANO_9B, "depth": 56, "hidden": 4480, "heads": 40,
                                         "kv_heads": 8, "head_dim": 128, "ffn": 15680, "ssm_state": 128,
                                         "ssm_heads": 128, "ssm_groups": 8, "vocabulary": 131072,
                                         "ffn_projections": 2}, {"mamba_head_dim": 80}),
    "Nemotron 3 Nano": (31577937344, {**EXPERTS, "pattern": NANO, "depth": 52, "hidden": 2688, "heads": 32,
                                      "kv_heads": 2, "head_dim": 128, "expert_ffn": 1856, "shared_expert_ffn": 3712,
                                      "experts": 128, "top_k": 6, "ssm_state": 128, "ssm_heads": 64, "ssm_groups": 8,
                                      "vocabulary": 131072, "ffn_projections": 2}, {"mamba_head_dim": 64}),
}  # fmt: skip
PLAN = {"batch.micro_batch": 1, "batch.sequence_length": 4096, "hardware.accelerator": "H200", "hardware.chips": 1}


def _resolved(model: dict[str, Any], features: dict[str, Any], **more: Any) -> Resolved:
    leaves = {f"model.{name}": value for name, value in model.items()}
    leaves |= {f"features.{name}": value for name, value in features.items() if value is not None}
    return resolve({**PLAN, **leaves, **{path.replace("__", "."): value for path, value in more.items()}}, MEGATRON)


@pytest.mark.parametrize("name", MODELS)
def test_a_published_model_has_its_own_number_of_parameters(name: str) -> None:
    total, model, features = MODELS[name]
    found = _resolved(model, features, model__parameters_total=total)
    assert found.setup is not None
    assert parameters_total(found.setup.model) == pytest.approx(total, rel=1e-4)
    assert not found.uncounted


@pytest.mark.parametrize(("features", "leaves", "what"), [
    ({"moe_layer_freq": "([0]*1+[1]*26)"}, {"family": "moe", "pattern": None}, "take turns"),
    ({"kv_lora_rank": 512}, {}, "latent attention"),
    ({"multi_latent_attention": True}, {}, "latent attention"),
    ({}, {"attention_kinds": "9 DSA + 4 MLA"}, "sparse or latent"),
    ({}, {"parameters_total": 20_000_000_000}, "20 billion are stated"),
])  # fmt: skip
def test_a_model_that_its_widths_do_not_make_decides_nothing(
    features: dict[str, Any], leaves: dict[str, Any], what: str
) -> None:
    _, model, _ = MODELS["DeepSeek-V2 Lite"]
    found = _resolved({name: value for name, value in {**model, **leaves}.items() if value is not None}, features)
    assert any(what in text for text in found.uncounted), found.uncounted


def test_widths_of_latent_attention_that_is_off_are_not_used() -> None:
    _, model, _ = MODELS["Llama 2 7B"]
    found = _resolved(model, {**DEEPSEEK, "multi_latent_attention": False})
    assert found.setup is not None
    assert found.setup.model.latent is None
    assert not found.uncounted


@pytest.mark.parametrize(("hidden", "heads", "latent", "sequences", "length", "measured"), [
    # torch 2.13's saved_tensors_hooks on such a module in bf16 with a kernel that keeps a row sum: storages, each once.
    (512, 8, (192, 128, 64, 32, 64), 2, 256, 4_347_904),
    (512, 8, (0, 128, 64, 32, 64), 2, 256, 3_952_640),
    (1024, 16, (384, 256, 128, 64, 128), 1, 512, 13_932_544),
])  # fmt: skip
def test_latent_attention_keeps_what_a_real_module_keeps(
    hidden: int, heads: int, latent: tuple[int, ...], sequences: int, length: int, measured: int
) -> None:
    query, key_value, nope, rope, value = latent
    found = _resolved(
        {**DENSE, "depth": 1, "hidden": hidden, "heads": heads, "ffn": 4 * hidden, "vocabulary": 1024},
        {"q_lora_rank": query, "kv_lora_rank": key_value, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope,
         "v_head_dim": value},
        batch__micro_batch=sequences, batch__sequence_length=length,
    )  # fmt: skip
    assert found.setup is not None
    kept = sum(item.bytes for item in saved_tensors(found.setup, BlockKind.ATTENTION))
    assert kept == pytest.approx(measured, rel=2e-3)
    assert kept > 2 * stream_bytes(found.setup)


SMALL = {"family": "dense", "hidden": 256, "heads": 8, "head_dim": 32, "vocabulary": 1024, "mtp_depth": 0}
NARROW = {"kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}


@pytest.mark.parametrize(("model", "features", "forward"), [
    # torch 2.13's FlopCounterMode over transformers' Llama, GPT-NeoX and DeepSeek-V3, 64 tokens, FLOPs a token.
    ({"depth": 4, "kv_heads": 2, "ffn": 688, "ffn_projections": 3}, {}, 6324224),
    ({"depth": 4, "kv_heads": 8, "ffn": 1024, "ffn_projections": 2}, {}, 7077888),
    ({"depth": 2, "ffn": 512, "ffn_projections": 3}, {**NARROW, "q_lora_rank": 96}, 2981888),
    ({"depth": 2, "ffn": 512, "ffn_projections": 3}, NARROW, 3129344),
])  # fmt: skip
def test_a_sum_over_gemms_is_what_a_counter_of_operators_counts(
    model: dict[str, Any], features: dict[str, Any], forward: int
) -> None:
    stated = {f"model.{name}": value for name, value in {**SMALL, **model}.items()}
    stated |= {f"features.{name}": value for name, value in features.items()}
    # The counter has no causal half: the half of twice the length is the whole of it.
    flops = FORMULAS["megatron"].function(geometry_of({**stated, "batch.sequence_length": 128})).flops
    assert flops == 3 * forward


@pytest.mark.parametrize("leaves", [
    {"model.attention_kinds": "5 sliding + 1 full"},
    {"features.window_size": "(1024, 0)"},
    {"features.multi_latent_attention": True},
    {"model.sparse_attention": "dsa"},
    {"features.moe_layer_freq": "([0]*3+[1]*58)"},
])  # fmt: skip
@pytest.mark.parametrize("formula", ["megatron", "megatron_full", "maxtext", "maxtext_noncausal"])
def test_a_stack_that_the_widths_do_not_describe_has_no_sum(formula: str, leaves: dict[str, Any]) -> None:
    stated = {f"model.{name}": value for name, value in {**SMALL, "depth": 4, "kv_heads": 8, "ffn": 1024}.items()}
    stated |= {"model.ffn_projections": 2, "batch.sequence_length": 4096}
    assert FORMULAS[formula].function(geometry_of(stated)).flops
    found = FORMULAS[formula].function(geometry_of({**stated, **leaves}))
    assert found.flops is None
    assert found.because
    assert least_flops_per_token(geometry_of({**stated, **leaves})) > 0


def test_a_window_as_long_as_the_sequence_is_full_attention() -> None:
    for window in ("None", "-1", 4096, "8192"):
        assert not geometry_of({"features.window_size": window, "batch.sequence_length": 4096}).unsummed


@pytest.mark.parametrize(("virtual", "held"), [
    # Megatron-Core, schedules.py: 2 · (p − rank − 1) + (v − 1) · p chunks go forward before the first goes back.
    (1, [4, 3, 2, 1]),
    (2, [5.5, 4.5, 3.5, 2.5]),
    (4, [4.75, 4.25, 3.75, 3.25]),
])  # fmt: skip
def test_a_stage_holds_the_chunks_of_its_schedule(virtual: int, held: list[float]) -> None:
    _, model, _ = MODELS["Llama 2 7B"]
    found = _resolved(
        model, {}, hardware__chips=64, parallelism__tensor=2, parallelism__pipeline=4, batch__global_batch=128,
        parallelism__virtual_pipeline=virtual,
    )  # fmt: skip
    assert found.setup is not None
    assert found.setup.batch.accumulation == 128 // (64 // 8)
    assert [in_flight(found.setup, stage) for stage in range(4)] == held


@pytest.mark.parametrize(("leaves", "what"), [
    ({"numerics__optimizer": "soap"}, "'soap' is counted as adamw"),
    ({"parallelism__pipeline": 2, "parallelism__schedule": "dualpipev"}, "'dualpipev'"),
    ({"compile__cuda_graph_implementation": "local"}, "CUDA graphs"),
    ({"model__family": None}, "blocks are not stated"),
])  # fmt: skip
def test_what_has_no_formula_leaves_the_answer_open(leaves: dict[str, Any], what: str) -> None:
    _, model, _ = MODELS["Llama 2 7B"]
    found = _resolved(model, {}, **{"numerics__optimizer": "adamw", **leaves})
    assert any(what in text for text in found.uncounted), found.uncounted
    assert not _resolved(model, {}, numerics__optimizer="adamw", parallelism__schedule="1f1b").uncounted
