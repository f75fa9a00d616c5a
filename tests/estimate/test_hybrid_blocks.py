"""The blocks of NAM56R against numbers worked out by hand: a chosen set of keys, Mamba-3 with MIMO, M2RNN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memory_setups import MODEL, setup
from receipts.estimate import weights
from receipts.estimate.activations import activations, policy_of, survives
from receipts.estimate.estimate import kv_cache, state_pool
from receipts.estimate.resolve import Circumstances, Resolved, resolve
from receipts.estimate.saved_tensors import saved_tensors, selection_scratch
from receipts.estimate.setup import XLA, ParallelLayout, RankBatch, Setup
from receipts.metrics.flops import FORMULAS, geometry_of
from receipts.metrics.flops.geometry import (
    Indexer,
    LatentAttention,
    Mamba3,
    MatrixRecurrence,
    indexer_of,
    mamba3_of,
    sparse_layers,
)
from receipts.metrics.flops.matmuls import least_flops_per_token
from receipts.receipt.patterns import BlockKind

TOKENS = 2 * 1024
SPARSE, MAMBA, RECURRENT = BlockKind.SPARSE_ATTENTION, BlockKind.MAMBA, BlockKind.RECURRENT
LATENT = LatentAttention(key_value=64, nope=32, rope=16, value=32, query=96)
NAM: dict[str, Any] = {
    "model.pattern": "AEMEAEMEAEMR", "model.alphabet": "nam", "model.depth": 52, "model.hidden": 3584,
    "model.heads": 28, "model.vocabulary": 65536, "model.experts": 16, "model.top_k": 4, "model.expert_ffn": 896,
    "model.shared_expert_ffn": 0, "model.ffn_projections": 2, "model.ssm_state": 128, "model.ssm_groups": 8,
    "model.ssm_heads": 112, "model.mtp_depth": 0, "model.ssm_variant": "Mamba-3 MIMO R4 + M2RNN",
    "model.attention_kinds": "9 DSA + 4 MLA", "features.kv_lora_rank": 64, "features.q_lora_rank": 64,
    "features.qk_nope_head_dim": 64, "features.qk_rope_head_dim": 64, "features.v_head_dim": 64,
    "features.index_n_heads": 32, "features.index_head_dim": 64, "features.index_topk": 256,
    "batch.sequence_length": 4096, "batch.micro_batch": 1, "hardware.chips": 8, "hardware.accelerator": "H200",
}  # fmt: skip


def _resolved(**leaves: Any) -> Resolved:
    stated = {**NAM, **{path.replace("__", "."): value for path, value in leaves.items()}}
    return resolve({path: value for path, value in stated.items() if value is not None}, Circumstances("megatron"))


def _hybrid(**fields: Any) -> Setup:
    model = {"indexer": Indexer(4, 32, 256), "mamba3": Mamba3(4, 16), "recurrence": MatrixRecurrence(12)}
    return setup(model={**model, **fields.pop("model", {})}, **fields)


def _kept(made: Setup, kind: BlockKind) -> dict[str, float]:
    return {item.name: item.bytes for item in saved_tensors(made, kind)}


@pytest.mark.parametrize(("words", "sparse"), [
    ("9 DSA + 4 MLA", 9),
    ("DSA A-ranks 0,4,8, MLA", 3),
    ("DSA", 13),
    ("99 DSA", 13),
    ("13 full", 0),
    (None, 0),
])  # fmt: skip
def test_the_attention_kinds_say_how_many_blocks_choose_their_keys(words: str | None, sparse: int) -> None:
    assert sparse_layers({"model.attention_kinds": words}, 13) == sparse
    found = _resolved(model__attention_kinds=words)
    assert found.setup is not None
    assert sum(SPARSE in layer for layer in found.setup.model.layers) == sparse


def test_a_requested_kernel_of_sparse_attention_makes_every_block_sparse() -> None:
    assert sparse_layers({"model.sparse_attention": "tilelang"}, 13) == 13
    assert sparse_layers({"model.sparse_attention": "gated_delta_net"}, 13) == 0
    assert sparse_layers({"model.sparse_attention": "tilelang", "model.attention_kinds": "13 MLA"}, 13) == 0


def test_nam56r_as_it_is_has_a_formula_for_every_block() -> None:
    found = _resolved()
    assert found.uncounted == ()
    assert found.setup is not None
    model = found.setup.model
    assert (model.indexer, model.mamba3) == (Indexer(32, 64, 256), Mamba3(4, 32))
    assert model.recurrence == MatrixRecurrence(44, 64, 16)
    assert {"features.m2rnn_num_v_heads", "features.dsa_indexer_loss_coeff"} <= {item.path for item in found.assumed}


@pytest.mark.parametrize(("leaves", "named"), [
    ({"features__index_topk": None}, "features.index_topk"),
    ({"features__kv_lora_rank": None}, "features.kv_lora_rank"),
    ({"model__ssm_variant": "Mamba-3"}, "features.mamba_mimo"),
])  # fmt: skip
def test_a_block_whose_widths_are_not_stated_keeps_saying_so(leaves: dict[str, Any], named: str) -> None:
    assert any(named in text for text in _resolved(**leaves).uncounted)


def test_words_give_the_rank_and_switches_the_form() -> None:
    assert mamba3_of({"model.ssm_variant": "mamba3-mimo"}) == Mamba3(4, 32)
    assert mamba3_of({"model.ssm_variant": "Mamba3", "features.mamba_mimo": True, "features.mimo_rank": 2}) is not None
    assert mamba3_of({"model.ssm_variant": "Mamba-3 MIMO R8", "model.ssm_state": 64}) == Mamba3(8, 16)
    assert mamba3_of({"model.ssm_variant": "mamba2-ssd"}) is None
    widths = {"features.dsa_indexer_n_heads": 64, "features.dsa_indexer_head_dim": 128, "features.index_topk": 2048}
    assert indexer_of(widths) == Indexer(64, 128, 2048)
    assert indexer_of({**widths, "features.dsa_indexer_loss_coeff": 0}) == Indexer(64, 128, 2048, trained=False)


# --- parameters ----------------------------------------------------------------------------------------------


def _parameters(kind: BlockKind, tensor: int = 1, **model: Any) -> dict[str, float]:
    made = _hybrid(model=model).model
    return {item.name: item.elements for item in weights.block(made, ParallelLayout(tensor=tensor), kind)}


def test_an_indexer_is_whole_on_every_tensor_rank() -> None:
    found = _parameters(SPARSE, 2)
    assert found["indexer"] == 1024 * 4 * 32 + 1024 * 32 + 1024 * 4
    assert found["indexer norm"] == 2 * 32
    assert _parameters(SPARSE, latent=LATENT)["indexer"] == 96 * 4 * 32 + 1024 * 32 + 1024 * 4
    assert "indexer" not in _parameters(BlockKind.ATTENTION)


def test_mamba3_projects_keys_and_queries_of_every_rank_and_has_no_convolution() -> None:
    found = _parameters(MAMBA)
    assert found["mixer in"] == 1024 * (2 * 2048 + 2 * 2 * 64 * 4 + 3 * 32 + 16)
    assert found["mixer scalars"] == 2 * 32 + 2 * 32 * 4 * 64 + 3 * 4 * 2048
    assert found["mixer norm"] == 1024 + 2 * 64
    assert "convolution" not in found
    assert _parameters(MAMBA, 2)["mixer in"] == 1024 * (2048 + 2 * 64 * 4 + 1.5 * 32 + 16)


def test_a_matrix_recurrence_has_one_query_and_one_key_for_all_heads() -> None:
    found = _parameters(RECURRENT)
    assert found["mixer in"] == 1024 * (64 + 64 + 12 * 16 + 12 + 12 * 16)
    assert found["transition"] == 12 * 16 * 16
    assert found["convolution"] == 5 * (64 + 64 + 12 * 16)
    assert found["mixer out"] == 12 * 16 * 1024
    assert _parameters(RECURRENT, 2)["mixer in"] == 1024 * (128 + (2 * 12 * 16 + 12) / 2)


# --- what is kept, and what stands for a moment --------------------------------------------------------------


def test_an_indexer_without_a_loss_keeps_the_chosen_keys_alone() -> None:
    alone = _kept(_hybrid(model={"indexer": Indexer(4, 32, 256, trained=False)}), SPARSE)
    assert alone["chosen keys"] == TOKENS * 256 * 8
    assert "index queries and keys" not in alone
    assert _kept(_hybrid(), SPARSE)["index queries and keys"] == TOKENS * (4 * 33 + 2 * 32) * 2


def test_in_latent_attention_every_head_reads_the_vector_itself() -> None:
    found = _kept(_hybrid(model={"latent": LATENT}), SPARSE)
    assert found["query, key, value"] == TOKENS * (8 * 48 + 9 * 80) * 2
    assert found["attention output"] == TOKENS * 8 * (64 + 32) * 2


def test_operators_without_a_kernel_keep_every_score() -> None:
    kernel, plain = _hybrid(), _hybrid(fused_selection=False)
    assert _kept(plain, SPARSE)["scores"] > TOKENS * 1024 * 8 * 6
    assert "scores" not in _kept(kernel, SPARSE)
    assert selection_scratch(kernel, training=True) == 2 * TOKENS * 1024 * 4
    assert selection_scratch(plain, training=True) == TOKENS * 1024 * 4 * 2 * (4 + 8)
    assert selection_scratch(plain, training=False) == TOKENS * 1024 * 4 * 2 * 4


def test_scores_of_the_indexer_stand_while_a_block_runs_back() -> None:
    made = _hybrid(layers=((SPARSE,),))
    with_scores = activations(made, made.model.layers, 0, last=False)
    without = replace(made, model=replace(made.model, indexer=Indexer(4, 32, 256, trained=False)))
    kept = _kept(made, SPARSE)
    assert with_scores.stored == sum(kept.values())
    assert with_scores.working > activations(without, without.model.layers, 0, last=False).working


def test_mamba3_spreads_the_angles_of_a_token_over_its_heads_in_fp32() -> None:
    found = _kept(_hybrid(), MAMBA)
    assert found["rotary angles"] == TOKENS * 32 * 16 * 4
    assert found["projections"] == TOKENS * ((2 * 2048 + 4 * 2 * 64 * 4 + 32) * 2 + 7 * 32 * 4)
    compiled = _kept(_hybrid(framework=XLA), MAMBA)
    assert "rotary angles" not in compiled
    assert compiled["projections"] == TOKENS * (2 * 2048 + 2 * 2 * 64 * 4 + 3 * 32 + 16) * 2


def test_a_matrix_recurrence_keeps_a_state_every_so_many_steps_and_the_first() -> None:
    assert _kept(_hybrid(), RECURRENT)["states"] == 2 * (1024 // 64 + 1) * 12 * 64 * 16 * 4
    every = _hybrid(model={"recurrence": MatrixRecurrence(12, steps=1)})
    assert _kept(every, RECURRENT)["states"] == 2 * 1025 * 12 * 64 * 16 * 4


@pytest.mark.parametrize(("policy", "kind", "gone"), [
    ("selective: core_attn", SPARSE, ("chosen keys", "index queries and keys")),
    ("selective: mamba", MAMBA, ("projections", "rotary angles", "gated output")),
    ("selective: mamba", RECURRENT, ("projections", "forget gate", "scan output", "gated output", "states")),
])  # fmt: skip
def test_a_selective_recompute_drops_what_its_module_makes(policy: str, kind: BlockKind, gone: tuple[str, ...]) -> None:
    named = policy_of(policy)
    assert named is not None
    saved = saved_tensors(_hybrid(), kind)
    kept = _kept(_hybrid(), kind)
    assert survives(named, saved) == pytest.approx(sum(kept.values()) - sum(kept[name] for name in gone))


# --- serving -------------------------------------------------------------------------------------------------


def test_a_server_keeps_keys_of_the_indexer_and_states_of_each_recurrence() -> None:
    made = _hybrid(serving=True, batch=RankBatch(3, 1000))
    cache = 3 * 1000 * 2 * 4 * 128 * 2
    assert kv_cache(made, ((SPARSE,), (BlockKind.ATTENTION,))) == 2 * cache + 3 * 1000 * 32 * (1 + 4 / 128)
    mamba = 2048 * 64 * 4 + (4 * 32 * 64 + 2048) * 2 + 32 * 16 * 4
    assert state_pool(made, ((MAMBA,),)) == 3 * mamba
    assert state_pool(made, ((RECURRENT,),)) == 3 * (12 * 64 * 16 + 3 * (128 + 12 * 16)) * 2
    plain = replace(made, model=MODEL)
    assert state_pool(plain, ((RECURRENT,),)) == state_pool(plain, ((MAMBA,),)) > 0


# --- FLOPs ---------------------------------------------------------------------------------------------------

RNN = {"features.m2rnn_num_v_heads": 44, "features.m2rnn_k_head_dim": 64, "features.m2rnn_v_head_dim": 16}
WHOLE = NAM | RNN


def test_the_sum_over_blocks_counts_each_by_its_own_definition() -> None:
    down, up, out = 3584 * 192, 64 * 28 * 128 + 64 * 28 * 128, 28 * 64 * 3584
    projections, head = 2 * (down + up + out), 2 * 28 * (64 + 64 + 64)
    plain = projections + head * 2048
    seen = 256 - 256 * 256 / (2 * 4096)
    chooses = 2 * (64 * 32 * 64 + 3584 * (64 + 32)) + (2 * 32 * 64 + 2 * 32) * 2048
    mamba = 2 * 3584 * (3 * 7168 + 2 * 8 * 128 * 4 + 3 * 112 + 32) + 19 * 7168 * 128 + 24 * 7168
    rnn = 2 * 3584 * (832 + 44 + 704 + 704) + 8 * 832 + 44 * 64 * 16 * (2 * 16 + 8)
    expert = 2 * 3584 * 2 * 896 * 4
    forward = 4 * plain + 9 * (projections + head * seen + chooses) + 13 * mamba + 4 * rnn + 22 * expert
    found = FORMULAS["blocks"].function(geometry_of(WHOLE))
    assert found.flops == pytest.approx(3 * (forward + 2 * 3584 * 65536), rel=1e-12)
    quiet = FORMULAS["blocks"].function(geometry_of({**WHOLE, "features.indexer_loss": "off"}))
    assert quiet.flops == pytest.approx(3 * (forward + 2 * 3584 * 65536) - 2 * 9 * chooses, rel=1e-12)


def test_the_sum_over_blocks_names_what_it_lacks_and_refuses_what_it_cannot() -> None:
    blocks = FORMULAS["blocks"].function
    lacking = {path: value for path, value in WHOLE.items() if path != "features.index_topk"}
    assert "features.index_topk" in blocks(geometry_of(lacking)).missing
    assert blocks(geometry_of(NAM)).missing == tuple(RNN)
    assert blocks(geometry_of({**WHOLE, "model.ssm_variant": "mamba3-mimo"})).missing == ("features.mimo_rank",)
    assert "Mamba-3 without MIMO" in blocks(geometry_of({**NAM, "model.ssm_variant": "Mamba-3"})).because
    plain = {**NAM, "model.attention_kinds": None, "model.ssm_variant": "mamba2", "model.kv_heads": 8,
             "features.kv_lora_rank": None, "model.head_dim": 128}  # fmt: skip
    stated = {path: value for path, value in plain.items() if value is not None}
    assert blocks(geometry_of(stated)) == FORMULAS["pattern"].function(geometry_of(stated))


def test_the_least_work_counts_the_blocks_as_they_are() -> None:
    whole = FORMULAS["blocks"].function(geometry_of({**WHOLE, "batch.sequence_length": 1})).flops
    assert whole is not None
    assert least_flops_per_token(geometry_of(WHOLE)) == whole / 3
    assert least_flops_per_token(geometry_of(NAM)) < whole / 3
