"""Megatron's arguments, from an object that stands in for the one that its training loop keeps."""

from __future__ import annotations

from argparse import Namespace
from enum import Enum
from typing import Any

import pytest

from probe_stage import Stage, StandIn, stand_in
from receipts.emit.probes import megatron

__all__ = ["stand_in"]


class Backend(Enum):
    fused = 1
    auto = 2


ARGUMENTS: dict[str, Any] = {
    "world_size": 16,
    "tensor_model_parallel_size": 2,
    "pipeline_model_parallel_size": 2,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 4,
    "expert_tensor_parallel_size": None,
    "data_parallel_size": 4,
    "sequence_parallel": True,
    "virtual_pipeline_model_parallel_size": None,
    "num_layers_per_virtual_pipeline_stage": 4,
    "micro_batch_size": 2,
    "global_batch_size": 64,
    "seq_length": 4096,
    "num_layers": 32,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "group_query_attention": True,
    "num_query_groups": 4,
    "swiglu": True,
    "num_experts": 8,
    "moe_router_topk": 2,
    "moe_token_dispatcher_type": "flex",
    "moe_enable_deepep": True,
    "moe_grouped_gemm": True,
    "mtp_num_layers": None,
    "bf16": True,
    "fp16": False,
    "fp8": "hybrid",
    "fp8_recipe": "blockwise",
    "params_dtype": "torch.bfloat16",
    "accumulate_allreduce_grads_in_fp32": True,
    "optimizer": "adam",
    "lr": 3e-4,
    "lr_decay_style": "cosine",
    "lr_warmup_iters": 100,
    "min_lr": 3e-5,
    "seed": 1234,
    "recompute_granularity": "selective",
    "recompute_modules": ["core_attn", "mlp"],
    "transformer_impl": "transformer_engine",
    "attention_backend": Backend.fused,
    "overlap_grad_reduce": True,
    "overlap_param_gather": False,
    "use_distributed_optimizer": True,
    "untie_embeddings_and_output_weights": True,
    "cuda_graph_impl": "none",
    "cross_entropy_loss_fusion": True,
    "cross_entropy_fusion_impl": "te",
    "mock_data": True,
}


def stated(stand_in: StandIn, **changes: Any) -> Stage:
    stand_in("megatron.training.global_vars", _GLOBAL_ARGS=Namespace(**{**ARGUMENTS, **changes}))
    stage = Stage("megatron")
    megatron.at_phase(stage.stated, "post_step0")
    return stage


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hardware.chips", 16),
        ("parallelism.tensor", 2),
        ("parallelism.expert", 4),
        ("parallelism.expert_tensor", None),
        ("parallelism.virtual_pipeline", 4),
        ("parallelism.sequence", True),
        ("parallelism.strategy", "zero1"),
        ("batch.global_batch", 64),
        ("model.kv_heads", 4),
        ("model.ffn_projections", 3),
        ("model.experts", 8),
        ("model.mtp_depth", 0),
        ("model.tied_embeddings", False),
        ("numerics.compute_dtype", "fp8"),
        ("numerics.fp8_recipe", "blockwise"),
        ("numerics.parameter_dtype", "bf16"),
        ("numerics.reduction_dtype", "fp32"),
        ("numerics.schedule", "cosine lr_warmup_iters=100 min_lr=3e-05"),
        ("numerics.recompute", "selective: core_attn mlp"),
        ("path.intended.attention", "te_fused"),
        ("path.intended.gemm", "te"),
        ("path.intended.dispatch", "deepep"),
        ("path.intended.overlap", "grad_reduce"),
        ("path.intended.cross_entropy", "fused_te"),
        ("path.witnessed.framework", "megatron-lm"),
        ("compile.cuda_graph_implementation", "none"),
        ("data.kind", "synthetic"),
        ("features.moe_grouped_gemm", True),
    ],
)
def test_an_argument_states_its_leaf(path: str, value: Any, stand_in: StandIn) -> None:
    stage = stated(stand_in)
    assert stage.get(path) == value
    assert stage.notes == ""


@pytest.mark.parametrize(
    ("changes", "path", "value"),
    [
        ({"attention_backend": Backend.auto}, "path.intended.attention", None),
        ({"attention_backend": Backend.auto}, "features.attention_backend", "auto"),
        ({"num_experts": None}, "model.experts", 0),
        ({"num_experts": None}, "path.intended.dispatch", "none"),
        ({"num_experts": None}, "features.moe_grouped_gemm", None),
        ({"group_query_attention": False, "num_query_groups": 1}, "model.kv_heads", 16),
        ({"fp8": None}, "numerics.compute_dtype", "bf16"),
        ({"fp8": None, "bf16": False}, "numerics.compute_dtype", "fp32"),
        ({"recompute_granularity": None}, "numerics.recompute", "none"),
        (
            {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
            "numerics.recompute",
            "full: uniform 1",
        ),
        ({"use_torch_fsdp2": True}, "parallelism.strategy", "fsdp2"),
        (
            {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": "optim_grads_params"},
            "parallelism.strategy",
            "megatron_fsdp_zero3",
        ),
        ({"hybrid_override_pattern": "M*-M*-"}, "model.pattern", "M*-M*-"),
        ({"mamba_state_dim": 128}, "model.ssm_state", None),
        ({"cuda_graph_impl": "local", "cuda_graph_scope": ["attn"]}, "compile.cuda_graph_scope", ["attn"]),
        ({"spec": ["a.b", "spec"]}, "model.spec", "a.b spec"),
    ],
)
def test_what_is_off_or_other_is_stated_as_such(
    changes: dict[str, Any], path: str, value: Any, stand_in: StandIn
) -> None:
    assert stated(stand_in, **changes).get(path) == value


def test_arguments_that_are_not_parsed_yet_state_nothing(stand_in: StandIn) -> None:
    stand_in("megatron.training.global_vars", _GLOBAL_ARGS=None)
    stage = Stage("megatron")
    megatron.at_phase(stage.stated, "steady")
    assert not stage.facts.values


def test_an_argument_of_a_strange_kind_is_a_note(stand_in: StandIn) -> None:
    stage = stated(stand_in, lr="fast", recompute_modules=3, spec=object)
    assert "numerics.learning_rate" in stage.notes
    assert stage.get("batch.global_batch") == 64
