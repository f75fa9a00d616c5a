"""From stated leaves to a setup: what the words of a plan mean, and what is assumed where they do not say."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.estimate.activations import NONE
from receipts.estimate.estimate import fullest, kv_cache
from receipts.estimate.resolve import Circumstances, Resolved, resolve
from receipts.estimate.surface import SurfaceName

PLAN: dict[str, Any] = {
    "model.family": "dense",
    "model.depth": 4,
    "model.hidden": 1024,
    "model.heads": 8,
    "model.kv_heads": 4,
    "model.head_dim": 128,
    "model.ffn": 4096,
    "model.vocabulary": 32000,
    "batch.micro_batch": 2,
    "batch.sequence_length": 1024,
    "hardware.accelerator": "H200",
    "hardware.chips": 8,
}
MEGATRON = Circumstances("nvidia-megatron", ("megatron-core",), "expert_in_data")


def _resolved(**leaves: Any) -> Resolved:
    return resolve({**PLAN, **{path.replace("__", "."): value for path, value in leaves.items()}}, MEGATRON)


@pytest.mark.parametrize(("strategy", "stage"), [
    ("ddp", 0),
    ("zero1", 1),
    ("ddp with the distributed optimizer", 1),
    ("distributed_data_parallel", 0),
    ("megatron_fsdp_zero1", 1),
    ("megatron_fsdp_ddp", 0),
    ("fsdp2", 3),
])  # fmt: skip
def test_a_strategy_means_the_same_stage_on_every_framework(strategy: str, stage: int) -> None:
    found = _resolved(parallelism__strategy=strategy)
    assert found.setup is not None
    assert found.setup.layout.zero == stage
    assert "parallelism.strategy" not in {item.path for item in found.assumed}


@pytest.mark.parametrize(("leaves", "ways"), [
    ({"data": 4, "context": 2}, 8),
    ({"data": 4, "context": 2, "shard": 4}, 8),
    ({"data": 4, "context": 2, "shard": 2, "replicate": 2}, 4),
    ({"data": 4, "context": 2, "shard": 8}, 8),
])  # fmt: skip
def test_context_ranks_share_the_states_of_their_data_ranks(leaves: dict[str, int], ways: int) -> None:
    found = _resolved(**{f"parallelism__{name}": value for name, value in leaves.items()})
    assert found.setup is not None
    assert found.setup.layout.shard == ways


@pytest.mark.parametrize(("leaves", "copy", "fp8"), [
    ({"numerics__compute_dtype": "bf16"}, 0.0, ""),
    ({"numerics__compute_dtype": "fp8"}, 2.0, "all"),
    ({"numerics__compute_dtype": "bf16", "numerics__fp8_recipe": "tensorwise"}, 0.0, ""),
    ({"numerics__fp8_recipe": "tensorwise", "hardware__accelerator": "B200"}, 1.0, "all"),
    ({"numerics__fp8_recipe": "mxfp8", "numerics__fp8_scope": "moe"}, 2.0625, "experts"),
    ({"numerics__fp8_recipe": "tensorwise", "features__fp8_param_gather": True}, 0.0, "all"),
    ({"numerics__fp8_recipe": "tensorwise", "numerics__fp8_scope": "indexer"}, 0.0, ""),
    ({"numerics__fp8_recipe": "tensorwise", "path__intended__framework": "torchtitan"}, 0.0, ""),
])  # fmt: skip
def test_what_fp8_keeps_is_counted_or_named(leaves: dict[str, Any], copy: float, fp8: str) -> None:
    found = _resolved(**leaves)
    assert found.setup is not None
    assert (found.setup.types.copy, found.setup.types.fp8) == (copy, fp8)
    acts = "fp8" in str(leaves) and "bf16" not in str(leaves)
    assert acts == ("numerics.fp8_recipe" in {item.path for item in found.assumed})


def test_a_served_cache_has_its_own_type_and_fills_whole_blocks() -> None:
    wanted = {"run__kind": "serving", "batch__sequence_length": 1000}
    plain = _resolved(**wanted)
    paged = _resolved(**wanted, features__kv_cache_dtype="fp8_e4m3", features__kv_block_size=16)
    sizes = [kv_cache(item.setup, item.setup.model.layers) for item in (plain, paged) if item.setup]
    assert sizes == [4 * 2 * 2 * 1000 * 4 * 128 * 2, 4 * 2 * 2 * 1008 * 4 * 128 * 1]
    assumed = {item.path for item in plain.assumed} - {item.path for item in paged.assumed}
    assert assumed == {"features.kv_cache_dtype", "features.kv_block_size"}


def test_a_latent_cache_holds_one_vector_a_token_whole_on_each_rank() -> None:
    latent = {"features__kv_lora_rank": 512, "features__qk_rope_head_dim": 64, "model__attention_kinds": "4 MLA"}
    for tensor in (1, 4):
        found = _resolved(run__kind="serving", batch__sequence_length=1000, parallelism__tensor=tensor, **latent)
        assert found.setup is not None
        assert kv_cache(found.setup, found.setup.model.layers) == 4 * 2 * 1000 * (512 + 64) * 2
        assert not any("cache" in text for text in found.uncounted)
    without = _resolved(run__kind="serving", batch__sequence_length=1000, model__attention_kinds="4 MLA")
    assert any("its cache" in text for text in without.uncounted)


def test_the_activations_of_a_server_are_those_of_a_pass_whatever_the_context() -> None:
    def activations(length: int, **leaves: Any) -> float:
        found = _resolved(run__kind="serving", batch__sequence_length=length, **leaves)
        assert found.setup is not None
        return fullest(found.setup).moments["prefill"][SurfaceName.ACTIVATIONS]

    assert activations(131_072) == activations(8_192) > activations(1_024)
    assert activations(131_072, features__max_num_batched_tokens=2_048) < activations(131_072)
    assert "features.max_num_batched_tokens" in {
        item.path for item in _resolved(run__kind="serving", batch__sequence_length=1).assumed
    }


def test_what_context_ranks_exchange_is_named() -> None:
    assert "parallelism.context" in {item.path for item in _resolved(parallelism__context=8).assumed}
    assert "parallelism.context" not in {item.path for item in _resolved(parallelism__context=1).assumed}


def test_compiling_on_cuda_and_features_without_a_formula_are_named() -> None:
    features = {"features__ngram_hash": True, "features__structure": "off", "features__zero_offload_param": True}
    found = _resolved(compile__posture="regional", **features)
    because = {item.path: item.because for item in found.assumed}
    assert because["compile.posture"] == "no formula for the bytes of compiling; leave headroom"
    assert because["features"] == "no formula for ngram_hash"
    eager = {item.path for item in _resolved(compile__posture="eager").assumed}
    assert not {"compile.posture", "features"} & eager


def test_what_a_launch_applied_counts_and_another_wish_is_named() -> None:
    found = _resolved(numerics__recompute="full", numerics__recompute_applied="none")
    assert found.setup is not None
    assert found.setup.recompute == NONE
    assert "'full' was asked for" in {item.path: item.because for item in found.assumed}["numerics.recompute"]
    agreed = _resolved(numerics__recompute="full", numerics__recompute_applied="uniform")
    assert "numerics.recompute" not in {item.path for item in agreed.assumed}
