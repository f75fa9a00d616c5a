"""Each surface of the memory geometry against numbers that were worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_setups import ADAM, DENSE, MODEL, setup
from receipts.estimate import weights
from receipts.estimate.activations import FULL, activations, in_flight, policy_of
from receipts.estimate.estimate import attention_map, by_stage, communication, fullest, kv_cache, state_pool
from receipts.estimate.saved_tensors import routing, routing_of, saved_tensors
from receipts.estimate.setup import FSDP, XLA, ParallelLayout, RankBatch, Types, framework_memory_of, optimizer_of
from receipts.estimate.surface import OUTSIDE, SurfaceName
from receipts.estimate.weights import Owner, states
from receipts.metrics.arithmetic import capacity
from receipts.metrics.flops import FORMULAS, Geometry
from receipts.receipt.patterns import BlockKind

A, M, E, R, MLP = (
    (BlockKind.ATTENTION,),
    (BlockKind.MAMBA,),
    (BlockKind.EXPERT,),
    (BlockKind.RECURRENT,),
    (BlockKind.MLP,),
)


# --- known points --------------------------------------------------------------------------------------------


def test_the_known_point_of_routing_scratch() -> None:
    found = routing(
        tokens=4096, top_k=2, experts=128, local_experts=4, hidden=4096, element_bytes=2.0, capacity_factor=1.2
    )
    assert capacity(4096, 2, 128, 1.2) == found.capacity == 77
    assert found.counts == 4096 * 2 * 4 == 32_768
    assert found.receive == found.combine == 77 * 4096 * 4 * 2 == 2_523_136


def test_every_source_fills_its_own_rows_of_a_padded_exchange() -> None:
    alone = routing(tokens=4096, top_k=2, experts=8, local_experts=2, hidden=8, element_bytes=2.0, capacity_factor=1.0)
    four = routing(
        tokens=4096, top_k=2, experts=8, local_experts=2, hidden=8, element_bytes=2.0, capacity_factor=1.0, sources=4
    )
    assert alone.rows == 2 * 1024
    assert four.receive == 4 * alone.receive


def test_a_tensor_rank_routes_its_own_part_of_the_sequence_and_gathers_for_a_split_expert() -> None:
    def rows(*, expert_tensor: int, sequence_parallel: bool) -> float:
        return routing_of(
            setup(
                layers=(E,),
                layout=ParallelLayout(
                    tensor=8, sequence_parallel=sequence_parallel, expert=8, expert_tensor=expert_tensor
                ),
            )
        ).rows

    whole = rows(expert_tensor=1, sequence_parallel=False)
    assert rows(expert_tensor=1, sequence_parallel=True) == whole / 8
    assert rows(expert_tensor=8, sequence_parallel=True) == whole


def test_dropless_routing_pads_nothing() -> None:
    found = routing(tokens=1000, top_k=2, experts=7, local_experts=7, hidden=8, element_bytes=2.0)
    assert found.rows == pytest.approx(2000)


def test_heads_of_one_rank() -> None:
    assert weights.heads_a_rank(56, 8, 8) == (7, 1)
    assert (7 * 64, 1 * 64) == (448, 64)
    assert weights.heads_a_rank(32, 4, 8) == (4, 1), "a key-value head is repeated where there are too few"


# --- parameters ----------------------------------------------------------------------------------------------


def test_attention_holds_its_heads_of_a_rank() -> None:
    model = replace(MODEL, hidden=3584, heads=56, kv_heads=8, head_dim=64)
    norm, qkv, out = weights.block(model, ParallelLayout(tensor=8), BlockKind.ATTENTION)
    assert (norm.owner, norm.elements) == (Owner.REPLICATED, 3584)
    assert qkv.elements == 3584 * (448 + 2 * 64)
    assert out.elements == 3584 * 448


def test_experts_are_cut_by_their_own_degrees_and_the_router_by_none() -> None:
    found = {
        item.name: item
        for item in weights.block(MODEL, ParallelLayout(tensor=2, expert=4, expert_tensor=2), BlockKind.EXPERT)
    }
    assert found["experts"].elements == 8 * 3 * 1024 * 512 / 8
    assert found["router"].elements == 1024 * 8
    assert not found["router"].matrix


def test_matmul_weights_are_those_that_the_flops_formula_multiplies() -> None:
    geometry = Geometry(
        layers=4, hidden=1024, heads=8, kv_heads=4, head_dim=128, ffn=4096, ffn_projections=3, vocabulary=32000,
        sequence_length=1, experts=8, top_k=8, expert_ffn=512, shared_expert_ffn=256, ssm_state=64, ssm_heads=32,
        ssm_groups=2, mtp_depth=0,
        blocks={BlockKind.ATTENTION: 1, BlockKind.MLP: 1, BlockKind.EXPERT: 1, BlockKind.MAMBA: 1},
    )  # fmt: skip
    flops = FORMULAS["pattern"].function(geometry).flops
    assert flops is not None
    model = replace(MODEL, layers=(A, MLP, E, M), shared_ffn=256)
    products = sum(item.whole for item in weights.layers(model, ParallelLayout(), model.layers) if item.matrix)
    scan = 7.0 * 2048 * 64
    core = 4.0 * 1 * 8 * 128 * 0.5
    assert 2 * (products + 1024 * 32000) + scan + core == pytest.approx(flops / 3)


def test_a_tied_head_is_held_once_and_copied_to_a_last_stage_of_its_own() -> None:
    tied = replace(MODEL, tied=True)
    names = [item.name for item in weights.ends(tied, ParallelLayout(), first=True, last=True)]
    assert names == ["embedding", "final norm"]
    assert "head" in [item.name for item in weights.ends(tied, ParallelLayout(), first=False, last=True)]


def test_an_fp8_matmul_keeps_its_weight_twice_and_its_input_in_one_byte() -> None:
    wide, fp8 = setup(), setup(types=Types(copy=2.0, fp8="all"))
    weight, vector = (weights.Tensor("w", Owner.TENSOR, 100.0, 100.0, matrix=kind) for kind in (True, False))
    assert states(fp8, [weight, vector]).tensor == 2 * 200.0 + 200.0
    experts = setup(types=Types(copy=2.0, fp8="experts"))
    assert states(experts, [weight]).tensor == 200.0
    before, after = ({item.name: item.bytes for item in saved_tensors(made, A[0])} for made in (wide, fp8))
    assert after["norm output"] == before["norm output"] / 2
    assert after["attention output"] == before["attention output"] * 1.5, "attention reads its own output as well"
    assert after["block input"] == before["block input"]
    assert saved_tensors(experts, A[0]) == saved_tensors(wide, A[0])


# --- states --------------------------------------------------------------------------------------------------


def test_states_of_a_16_bit_model_are_two_and_four_and_twelve_bytes() -> None:
    held = states(setup(), [weights.Tensor("w", Owner.TENSOR, 100.0, 100.0, matrix=True)])
    assert (held.tensor, held.gradients, held.other_optimizer) == (200.0, 400.0, 1200.0)


@pytest.mark.parametrize(("stage", "parameters", "gradients", "optimizer"), [
    (0, 200.0, 400.0, 1200.0),
    (1, 200.0, 400.0, 300.0),
    (2, 200.0, 100.0, 300.0),
    (3, 50.0, 100.0, 300.0),
])  # fmt: skip
def test_each_stage_of_state_sharding_shards_one_more(
    stage: int, parameters: float, gradients: float, optimizer: float
) -> None:
    made = setup(layout=ParallelLayout(zero=stage, shard=4))
    held = states(made, [weights.Tensor("w", Owner.TENSOR, 100.0, 100.0, matrix=True)])
    assert (held.tensor, held.gradients, held.other_optimizer) == (parameters, gradients, optimizer)


def test_an_experts_states_are_cut_over_its_own_replicas() -> None:
    made = setup(layout=ParallelLayout(zero=1, shard=8, expert=4, expert_shard=2))
    held = states(made, [weights.Tensor("w", Owner.EXPERT, 100.0, 400.0, matrix=True)])
    assert (held.expert, held.other_optimizer) == (200.0, 600.0)


def test_muon_takes_matrices_and_adamw_the_rest() -> None:
    muon = optimizer_of("muon", 4.0)
    assert muon is not None
    made = setup(matrix_optimizer=muon, types=Types(master=0.0))
    matrix = weights.Tensor("w", Owner.TENSOR, 100.0, 100.0, matrix=True)
    vector = weights.Tensor("embedding", Owner.TENSOR, 10.0, 10.0, matrix=False)
    held = states(made, [matrix, vector])
    assert held.matrix_optimizer == 100 * 4
    assert held.other_optimizer == 10 * 8
    assert held.workspace == 3 * 2 * 100


@pytest.mark.parametrize(("name", "bytes_"), [
    ("adamw", 8.0),
    ("adam8bit", 2 * (1 + 4 / 256)),
    ("Muon q8 momentum", 1 + 4 / 256),
    ("lion", 4.0),
    ("sgd", 4.0),
    ("adafactor", 0.0),
])  # fmt: skip
def test_an_optimizers_name_says_its_states(name: str, bytes_: float) -> None:
    found = optimizer_of(name, 4.0)
    assert found is not None
    assert found.bytes_per_element == pytest.approx(bytes_)


def test_a_name_that_is_none_is_none() -> None:
    assert optimizer_of("distributed", 4.0) is None


# --- activations ---------------------------------------------------------------------------------------------


def test_a_dense_block_keeps_what_its_backward_reads() -> None:
    tokens = 2 * 1024
    attention = {item.name: item.bytes for item in saved_tensors(setup(), BlockKind.ATTENTION)}
    assert attention == {
        "block input": tokens * 1024 * 2,
        "norm output": tokens * 1024 * 2,
        "query, key, value": tokens * (8 + 8) * 128 * 2,
        "attention output": tokens * 1024 * 2,
        "row sums": tokens * 8 * 4,
    }
    mlp = {item.name: item.bytes for item in saved_tensors(setup(), BlockKind.MLP)}
    assert mlp["mlp hidden"] == tokens * 2 * 4096 * 2
    assert mlp["mlp activation"] == tokens * 4096 * 2


def test_the_papers_34_bytes_are_met_without_its_dropout() -> None:
    """arXiv:2205.05198, equation 1: 34, two of them dropout masks; a plain MLP of four widths, all heads alike."""
    made = setup(model={"kv_heads": 8, "projections": 2})
    tokens = 2 * 1024
    total = sum(item.bytes for kind in (BlockKind.ATTENTION, BlockKind.MLP) for item in saved_tensors(made, kind))
    rows = tokens * 8 * 4
    assert (total - rows) / (tokens * 1024) == pytest.approx(34 - 2)


def test_scores_are_kept_only_by_attention_that_is_not_fused() -> None:
    found = {item.name: item.bytes for item in saved_tensors(setup(fused_attention=False), BlockKind.ATTENTION)}
    assert found["scores"] == 2 * 8 * 1024 * 1024 * 2


def test_sequence_parallelism_divides_the_stream_alone() -> None:
    plain = {item.name: item.bytes for item in saved_tensors(setup(layout=ParallelLayout(tensor=4)), BlockKind.MLP)}
    cut = {
        item.name: item.bytes
        for item in saved_tensors(setup(layout=ParallelLayout(tensor=4, sequence_parallel=True)), BlockKind.MLP)
    }
    assert cut["block input"] == plain["block input"] / 4
    assert cut["mlp hidden"] == plain["mlp hidden"]


def test_mamba_keeps_its_projections_and_outputs() -> None:
    tokens = 2 * 1024
    found = {item.name: item.bytes for item in saved_tensors(setup(), BlockKind.MAMBA)}
    assert found["projections"] == tokens * (2 * 2048 + 2 * 2 * 64 + 32) * 2
    assert found["scan output"] == tokens * 2048 * 2
    assert "states" not in found


def test_full_recompute_keeps_one_input_a_block_and_works_with_one_block() -> None:
    made = setup(recompute=FULL)
    active = activations(made, made.model.layers, 0, last=False)
    stream = 2 * 1024 * 1024 * 2
    assert active.stored == 4 * 2 * stream
    assert active.working > stream
    assert active.routing_stored == 0.0


def test_a_selective_policy_drops_what_it_names() -> None:
    tokens = 2 * 1024
    plain = activations(setup(layers=(E,)), (E,), 0, last=False)
    less = activations(setup(layers=(E,), recompute=frozenset({"moe_act"})), (E,), 0, last=False)
    assert plain.stored - less.stored == tokens * 2 * 512 * 2


@pytest.mark.parametrize(("text", "policy"), [
    ("none", frozenset()),
    ("full", FULL),
    ("grad checkpoint", FULL),
    ("selective", frozenset({"core_attn"})),
    ("selective: moe_act mlp", frozenset({"moe_act", "mlp"})),
    ("selective: layer norm", frozenset({"layernorm"})),
    ("mimo_smart", None),
])  # fmt: skip
def test_recompute_is_read_as_people_write_it(text: str, policy: frozenset[str] | None) -> None:
    assert policy_of(text) == policy


def test_micro_batches_in_flight() -> None:
    made = setup(layout=ParallelLayout(pipeline=4), batch=RankBatch(1, 64, accumulation=8))
    assert [in_flight(made, stage) for stage in range(4)] == [4, 3, 2, 1]
    few = setup(layout=ParallelLayout(pipeline=4), batch=RankBatch(1, 64, accumulation=2))
    assert in_flight(few, 0) == 2
    woven = setup(layout=ParallelLayout(pipeline=4, virtual=2), batch=RankBatch(1, 64, accumulation=8))
    assert in_flight(woven, 0) == 4 * (1 + 3 / 8)


def test_the_loss_holds_logits_three_times_unless_it_is_chunked() -> None:
    whole = activations(setup(), (DENSE,), 0, last=True)
    assert whole.loss == 2048 * 32000 * 10
    chunked = activations(setup(chunked_loss=True), (DENSE,), 0, last=True)
    assert chunked.loss == 1024 * 32000 * 10 + 2048 * 1024 * 2
    assert activations(setup(), (DENSE,), 0, last=False).loss == 0.0


def test_an_mtp_depth_is_a_feature_with_a_layer_and_a_head_of_its_own() -> None:
    made = setup(model={"mtp": (DENSE,), "mtp_depth": 2})
    active = activations(made, (DENSE,), 0, last=True)
    layer = sum(item.bytes for kind in DENSE for item in saved_tensors(made, kind))
    assert active.features_stored == 2 * (layer + 4 * 2048 * 1024 * 2)
    assert active.features_loss == 2 * 2048 * 32000 * 4


# --- what is left --------------------------------------------------------------------------------------------


def test_gathered_parameters_are_two_layers_and_one_layers_gradients() -> None:
    made = setup(layers=(MLP,), layout=ParallelLayout(zero=3, shard=8), framework=FSDP)
    assert communication(made, (MLP,)) == (3 * 1024 * 4096 + 1024) * 3 * 2
    assert communication(setup(), (MLP,)) == 0.0


def test_sequence_parallelism_gathers_into_one_buffer() -> None:
    made = setup(layout=ParallelLayout(tensor=4, sequence_parallel=True))
    assert communication(made, (MLP,)) == 2048 * 1024 * 2


def test_only_attending_layers_own_a_cache() -> None:
    layers = (A, E, M, E, A, R)
    made = setup(layers=layers, serving=True)
    assert attention_map(layers) == (0, 4)
    assert kv_cache(made, layers) == 2 * (2 * 2 * 1024 * 4 * 128 * 2)
    assert kv_cache(setup(layers=layers), layers) == 0.0


def test_recurrent_layers_hold_a_state_whatever_the_context() -> None:
    short = setup(layers=(M,), serving=True, batch=RankBatch(2, 16))
    assert state_pool(short, (M,)) == 2 * (2048 * 64 * 4 + (2048 + 2 * 2 * 64) * 3 * 2)
    long = setup(layers=(M,), serving=True, batch=RankBatch(2, 16_000))
    assert state_pool(long, (M,)) == state_pool(short, (M,))


def test_the_surfaces_at_the_peak_add_up_to_the_total() -> None:
    stage = fullest(setup(layers=(A, E, M, MLP)))
    found = stage.surfaces()
    assert [item.name for item in found] == list(SurfaceName)
    assert sum(item.peak_bytes for item in found) == pytest.approx(stage.total)
    assert sum(item.peak_bytes for item in found if item.name not in OUTSIDE) == pytest.approx(stage.live)


def test_stages_hold_their_own_layers_and_the_first_the_most_micro_batches() -> None:
    made = setup(layout=ParallelLayout(pipeline=2, stages=(2, 2)), batch=RankBatch(2, 1024, accumulation=8))
    first, last = by_stage(made)
    assert first.moments["backward"][SurfaceName.ACTIVATIONS] > last.moments["backward"][SurfaceName.ACTIVATIONS]
    assert last.moments["loss"][SurfaceName.ACTIVATIONS] > last.moments["backward"][SurfaceName.ACTIVATIONS]


def test_a_compiled_step_holds_gradients_beside_activations_and_eager_autograd_does_not() -> None:
    eager = fullest(setup(framework=FSDP, types=Types(2.0, 4.0, 4.0, 0.0)))
    compiled = fullest(setup(framework=XLA, types=Types(2.0, 4.0, 4.0, 0.0)))
    assert eager.moments["backward"][SurfaceName.GRADIENTS] == 0.0
    assert eager.moments["end of backward"][SurfaceName.GRADIENTS] > 0.0
    assert compiled.moments["backward"][SurfaceName.GRADIENTS] > 0.0


def test_serving_has_no_gradients_and_no_optimizer() -> None:
    stage = fullest(setup(serving=True, layers=(A, M)))
    held = {item.name: item.bytes for item in stage.surfaces()}
    assert held[SurfaceName.GRADIENTS] == held[SurfaceName.OTHER_OPTIMIZER] == held[SurfaceName.MATRIX_OPTIMIZER] == 0.0
    assert held[SurfaceName.KV_CACHE] > 0.0
    assert stage.peak == "prefill"


@pytest.mark.parametrize(("names", "wanted"), [
    (("megatron-core",), "megatron"),
    (("torchtitan",), "fsdp"),
    (("", "tpu-torch-xla"), "xla"),
    (("maxtext",), "xla"),
    (("deepspeed",), "deepspeed"),
    (("pytorch",), "torch"),
])  # fmt: skip
def test_a_framework_is_known_by_its_name(names: tuple[str, ...], wanted: str) -> None:
    found = framework_memory_of(*names)
    assert found is not None
    assert found.name == wanted


def test_an_unknown_framework_is_none() -> None:
    assert framework_memory_of("mlx", None) is None
    assert ADAM.states == 2
