"""The arguments dump: its forms, and the leaves that Megatron's names stand for."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.megatron.log import Megatron


def dump(arguments: dict[str, str], prefix: str = "", column: int = 48) -> str:
    """A dump as Megatron prints it: dots up to a column, none where the name reaches it."""
    rows = [f"{prefix}  {name} {'.' * (column - len(name))} {value}" for name, value in arguments.items()]
    head, tail = f"{'-' * 24} arguments {'-' * 24}", f"{'-' * 20} end of arguments {'-' * 21}"
    return "\n".join([prefix + head, *rows, prefix + tail]) + "\n"


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [Megatron])
    return found


def leaves(arguments: dict[str, str]) -> dict[str, object]:
    return {path: leaf.value for path, leaf in read(dump(arguments)).stated.items()}


def test_names_empty_values_and_values_with_blanks() -> None:
    text = dump(
        {
            "config_logger_dir": "",
            "data_path": "['/data/a b', '/data/c']",
            "inference_dynamic_batching_cuda_graph_mixed_prefill_count": "16",
            "num_layers": "12",
        }
    )
    found = read(text).stated
    assert found["model.depth"].value == 12
    assert found["data.dataset"].value == "/data/a b /data/c"
    assert found["model.depth"].place.line == 5


@pytest.mark.parametrize("prefix", ["[rank0]:", "0: ", "[default3]:", "2025-01-01T00:00:00Z "])
def test_a_dump_behind_a_prefix(prefix: str) -> None:
    assert (
        read(dump({"hidden_size": "4096", "tensor_model_parallel_size": "8"}, prefix))
        .stated["parallelism.tensor"]
        .value
        == 8
    )


def test_the_column_of_the_first_version_is_nearer() -> None:
    text = dump({"hidden_size": "1024", "apply_residual_connection_post_layernorm": "False"}, column=32)
    assert read(text).stated["model.hidden"].value == 1024


def test_gpt_neox_says_behind_each_value_who_set_it() -> None:
    rows = {"pipe_parallel_size": "2", "train_micro_batch_size_per_gpu": "8", "train_batch_size": "64"}
    text = dump({name: f"{value}{'.' * 24}updated" for name, value in rows.items()}, column=33)
    found = {path: leaf.value for path, leaf in read(text).stated.items()}
    names = ("parallelism.pipeline", "batch.micro_batch", "batch.global_batch")
    assert [found[name] for name in names] == [2, 8, 64]


def test_an_optimizer_that_is_a_dictionary_is_its_type() -> None:
    assert (
        leaves({"world_size": "8", "optimizer": "{'type': 'Adam', 'params': {'lr': 1e-4}}"})["numerics.optimizer"]
        == "Adam"
    )


def test_ranks_that_dump_at_once_say_the_same() -> None:
    first, second = dump({"seed": "7", "rank": "0"}, "[rank0]:"), dump({"seed": "7", "rank": "1"}, "[rank1]:")
    mixed = "\n".join(a + "\n" + b for a, b in zip(first.splitlines(), second.splitlines(), strict=True)) + "\n"
    found = read(mixed)
    assert found.stated["numerics.seed"].value == 7
    assert not [remark for remark in found.remarks if remark.kind == "contradiction"]


def test_a_wrapped_list_is_read_to_its_end() -> None:
    text = dump({"data_path": "['/data/one',"}).replace("['/data/one',", "['/data/one',\n'/data/two']")
    assert read(text).stated["data.dataset"].value == "/data/one /data/two"


def test_degrees_and_batch() -> None:
    found = leaves(
        {
            "world_size": "64",
            "tensor_model_parallel_size": "4",
            "pipeline_model_parallel_size": "4",
            "context_parallel_size": "2",
            "expert_model_parallel_size": "8",
            "expert_tensor_parallel_size": "1",
            "data_parallel_size": "2",
            "num_layers": "32",
            "num_layers_per_virtual_pipeline_stage": "2",
            "virtual_pipeline_model_parallel_size": "4",
            "sequence_parallel": "True",
            "micro_batch_size": "1",
            "global_batch_size": "256",
            "seq_length": "8192",
            "encoder_seq_length": "8192",
        }
    )
    assert found["hardware.chips"] == 64
    assert [found[f"parallelism.{name}"] for name in ("tensor", "pipeline", "context", "expert", "expert_tensor")] == [
        4,
        4,
        2,
        8,
        1,
    ]
    assert (found["parallelism.virtual_pipeline"], found["parallelism.sequence"]) == (4, True)
    assert (found["batch.micro_batch"], found["batch.global_batch"], found["batch.sequence_length"]) == (1, 256, 8192)


def test_virtual_stages_follow_from_layers_where_their_number_is_not_kept() -> None:
    arguments = {
        "num_layers": "32",
        "pipeline_model_parallel_size": "4",
        "num_layers_per_virtual_pipeline_stage": "4",
        "virtual_pipeline_model_parallel_size": "None",
    }
    assert leaves(arguments)["parallelism.virtual_pipeline"] == 2


def test_without_groups_every_head_has_its_own_keys() -> None:
    plain = {"num_attention_heads": "32", "num_query_groups": "1", "group_query_attention": "False"}
    assert leaves(plain)["model.kv_heads"] == 32
    assert leaves({**plain, "num_query_groups": "8", "group_query_attention": "True"})["model.kv_heads"] == 8


def test_a_dense_model_says_so_and_has_no_routing() -> None:
    router = {"moe_aux_loss_coeff": "0.01", "mtp_loss_scaling_factor": "0.1", "mtp_num_layers": "None"}
    found = leaves({"num_experts": "None", "moe_router_topk": "2", "moe_token_dispatcher_type": "allgather", **router})
    assert not {"numerics.router_auxiliary_loss", "numerics.mtp_loss_weight"} & found.keys()
    assert (found["model.experts"], found["path.intended.dispatch"]) == (0, "none")
    assert "model.top_k" not in found


def test_experts() -> None:
    found = leaves(
        {
            "num_experts": "64",
            "moe_router_topk": "6",
            "moe_expert_capacity_factor": "1.25",
            "moe_ffn_hidden_size": "1408",
            "moe_shared_expert_intermediate_size": "None",
            "moe_token_dispatcher_type": "flex",
            "moe_enable_deepep": "True",
            "moe_grouped_gemm": "True",
            "moe_router_pre_softmax": "False",
            "moe_router_dtype": "fp32",
            "moe_aux_loss_coeff": "0.0001",
            "moe_z_loss_coeff": "None",
            "mtp_num_layers": "2",
            "mtp_loss_scaling_factor": "0.1",
        }
    )
    assert (found["model.router_order"], found["numerics.router_dtype"]) == ("top_k", "fp32")
    assert (found["numerics.router_auxiliary_loss"], found["numerics.mtp_loss_weight"]) == (0.0001, 0.1)
    assert "numerics.router_z_loss" not in found
    assert (found["model.experts"], found["model.top_k"], found["model.capacity_factor"]) == (64, 6, 1.25)
    assert (found["model.expert_ffn"], found["model.shared_expert_ffn"]) == (1408, 0)
    assert (found["path.intended.dispatch"], found["features.moe_grouped_gemm"]) == ("deepep", True)


def test_a_hybrid_pattern_names_its_alphabet() -> None:
    found = leaves({"hybrid_override_pattern": "M-M*-M-", "mamba_state_dim": "128", "mamba_num_groups": "8"})
    assert (found["model.pattern"], found["model.alphabet"], found["model.ssm_state"]) == ("M-M*-M-", "nemo", 128)


@pytest.mark.parametrize(
    ("arguments", "dtype", "recipe"),
    [
        ({"fp8": "hybrid", "fp8_recipe": "delayed", "bf16": "True"}, "fp8", "delayed"),
        ({"fp8": "None", "fp8_recipe": "delayed", "bf16": "True", "fp16": "False"}, "bf16", None),
        ({"fp16": "True", "bf16": "False"}, "fp16", None),
        ({"fp16": "False", "bf16": "False"}, "fp32", None),
        ({"fp4": "e2m1", "fp8": "None", "bf16": "True"}, "fp4", None),
    ],
)
def test_the_type_of_the_matmuls(arguments: dict[str, str], dtype: str, recipe: str | None) -> None:
    found = leaves(arguments)
    assert (found["numerics.compute_dtype"], found.get("numerics.fp8_recipe")) == (dtype, recipe)


@pytest.mark.parametrize(
    ("arguments", "recompute"),
    [
        ({"recompute_granularity": "None", "recompute_method": "None"}, "none"),
        (
            {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": "1"},
            "full: uniform 1",
        ),
        (
            {"recompute_granularity": "selective", "recompute_modules": "['core_attn', 'moe']"},
            "selective: core_attn moe",
        ),
        ({"checkpoint_activations": "True", "checkpoint_num_layers": "1"}, "full"),
        ({"activations_checkpoint_method": "uniform"}, "full: uniform"),
    ],
)
def test_recompute_in_old_and_new_words(arguments: dict[str, str], recompute: str) -> None:
    assert leaves(arguments)["numerics.recompute"] == recompute


def test_automatic_attention_is_no_path() -> None:
    found = leaves({"transformer_impl": "transformer_engine", "attention_backend": "AttnBackend.auto"})
    assert "path.intended.attention" not in found
    assert (found["path.intended.gemm"], found["features.attention_backend"]) == ("te", "auto")


@pytest.mark.parametrize(("backend", "path"), [("flash", "te_flash"), ("fused", "te_fused"), ("unfused", "te_unfused")])
def test_a_backend_that_is_named_is_the_intended_path(backend: str, path: str) -> None:
    arguments = {"transformer_impl": "transformer_engine", "attention_backend": f"AttnBackend.{backend}"}
    assert leaves(arguments)["path.intended.attention"] == path


def test_sharding_graphs_and_overlap() -> None:
    found = leaves(
        {
            "use_distributed_optimizer": "True",
            "overlap_grad_reduce": "True",
            "overlap_param_gather": "True",
            "tp_comm_overlap": "False",
            "cuda_graph_impl": "transformer_engine",
            "cuda_graph_scope": "['attn', 'moe_router']",
        }
    )
    assert found["parallelism.strategy"] == "zero1"
    assert found["path.intended.overlap"] == "overlap_grad_reduce+overlap_param_gather"
    assert found["compile.cuda_graph_implementation"] == "transformer_engine"
    assert found["compile.cuda_graph_scope"] == ["attn", "moe_router"]


def test_made_up_data_are_synthetic() -> None:
    found = leaves({"mock_data": "True", "data_path": "None", "tokenizer_type": "NullTokenizer"})
    assert (found["data.dataset"], found["data.kind"], found["data.tokenizer"]) == (
        "mock",
        "synthetic",
        "NullTokenizer",
    )


@pytest.mark.parametrize(
    "text",
    [
        "using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 4,"
        " pipeline-model-parallel size: 2 \n",
        "> using world size: 16, data-parallel size: 2, context-parallel size: 1, hierarchical context-parallel sizes:"
        " None, tensor-model-parallel size: 4, pipeline-model-parallel size: 2\n",
        "using world size: 16, data-parallel size: 2, hierarchical context-parallel sizes: Nonetensor-model-parallel"
        " size: 4, encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 2\n",
        "using world size: 16, data-parallel-size: 2, sequence-parallel size: 1, tensor-model-parallel size: 4,"
        " pipeline-model-parallel size: 2 \n",
    ],
)
def test_the_line_of_the_world_size_in_its_forms(text: str) -> None:
    found = {path: leaf.value for path, leaf in read(text).stated.items()}
    names = ("hardware.chips", "parallelism.data", "parallelism.tensor", "parallelism.pipeline")
    assert [found[name] for name in names] == [16, 2, 4, 2]


def test_one_shard_is_the_model_only_where_nothing_divides_it() -> None:
    count = " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 125000000\n"
    whole = (
        "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
    )
    assert read(whole + count).stated["model.parameters_total"].value == 125_000_000
    assert (
        "model.parameters_total"
        not in read(whole.replace("tensor-model-parallel size: 1", "tensor-model-parallel size: 2") + count).stated
    )


def test_a_rounded_total_is_stated_in_its_own_words() -> None:
    text = dump({"num_layers": "2"}) + "Total number of parameters in billions: 8.03\n"
    leaf = read(text).stated["model.parameters_total"]
    assert (leaf.value, leaf.text) == (8_030_000_000, "8.03 billion")


def test_arguments_of_a_profiled_run_mark_its_steps() -> None:
    records = "".join(
        f" iteration {step:8d}/      20 | consumed samples: {step:12d} | elapsed time per iteration (ms): 100.0 |"
        " lm loss: 1.000000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(8, 16)
    )
    arguments = {"profile": "True", "profile_step_start": "10", "profile_step_end": "12"}
    assert read(dump(arguments) + records).not_steady == {11: "profile", 12: "profile"}
