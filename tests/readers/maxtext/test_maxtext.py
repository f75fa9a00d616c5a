"""MaxText's log and metrics files: every form of the step line, what is not steady, configuration, memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.maxtext.log import MaxText, MaxTextMetrics


def log(*lines: str) -> Reading:
    """The reading of a log of these lines."""
    (reading,) = scan(["\n".join(lines).encode() + b"\n"], [MaxText])
    return reading


def step(number: int, seconds: float = 2.0, *, loss: str = "5.250", weights: int = 4096) -> str:
    """A step line of the form of 2025: a step of 200 TFLOPs and 1,000 tokens a device."""
    return (
        f"completed step: {number}, seconds: {seconds:.3f}, TFLOP/s/device: {200 / seconds:.3f}, "
        f"Tokens/s/device: {1000 / seconds:.3f}, total_weights: {weights}, loss: {loss}"
    )


def run(times: Sequence[float], first: int = 0) -> list[str]:
    return [step(number, seconds) for number, seconds in enumerate(times, first)]


STEADY = [2.0] * 8


@pytest.mark.parametrize(
    "line",
    [
        "completed step: 7, seconds: 2.500, TFLOP/s: 80.000, loss: 5.250",
        "completed step: 7, seconds: 2.500, TFLOP/s/device: 80.000, loss: 5.250",
        "completed step: 7, seconds: 2.500, live slice count: 3, TFLOP/s/device: 80.000, Tokens/s/device: 400.000, "
        "total_weights: 4096, loss: 5.250, lm_loss: 5.1, perplexity: 190.6, moe_lb_loss: 0.15",
        "step: 7, seconds: 2.500, TFLOP/s/device: 80.000, Tokens/s/device: 400.000, total_weights: 4096, loss: 5.250",
        'completed step: 7, seconds: 2.500, TFLOP/s/device: 80.000, loss: 5.250"',
        "I0202 10:11:12.131415 140110937163584 metric_logger.py:265] completed step: 7, seconds: 2.500, "
        "TFLOP/s/device: 80.000, loss: 5.250",
        "(run_maxtext_train pid=812, ip=10.1.0.4) completed step: 7, seconds: 2.500, TFLOP/s/device: 80.000, "
        "loss: 5.250 [repeated 9x across cluster]",
        "\x1b[36m(train pid=1)\x1b[0m completed step: 7, loss: 5.250, TFLOP/s/device: 80.000, seconds: 2.500",
    ],
)
def test_a_step_line_of_any_version_gives_its_cells_by_name(line: str) -> None:
    steps = log(line).steps
    assert steps.numbers() == [7]
    assert steps.get(7, "step_seconds") == 2.5
    assert steps.get(7, "tflops_per_second_per_chip") == 80.0
    assert steps.get(7, "loss") == 5.25


def test_the_loss_of_no_token_is_none() -> None:
    found = log(step(1, loss="0.000", weights=0), step(2, loss="0.000", weights=0), step(3, loss="4.500"))
    assert [found.steps.get(number, "loss") for number in (1, 2, 3)] == [None, None, 4.5]
    assert found.steps.get(2, "step_seconds") == 2.0


def test_lines_after_the_first_are_read_like_the_first() -> None:
    steps = log(*run([2.0, 2.5, 4.0])).steps
    assert steps.column("step_seconds") == [2.0, 2.5, 4.0]
    assert steps.column("tokens_per_second_per_chip") == [500.0, 400.0, 250.0]
    assert steps.column("loss") == [5.25, 5.25, 5.25]


def test_a_cell_that_appears_later_is_not_taken_for_another() -> None:
    later = "completed step: 2, seconds: 2.000, live slice count: 1, TFLOP/s/device: 90.000, loss: 4.000"
    assert log(step(0), step(1), later).steps.get(2, "tflops_per_second_per_chip") == 90.0


def test_a_loss_that_is_not_printed_is_absent() -> None:
    steps = log("completed step: 3, seconds: 2.000, TFLOP/s/device: 50.0, main_model_loss: 4.500").steps
    assert steps.get(3, "loss") is None


def test_a_line_that_was_wrapped_is_one_step() -> None:
    reading = log("completed step: 3, seconds: 2.000, TFLOP/s/device: 50.0,", "  loss: 4.500, mtp_loss: 0.500")
    assert reading.steps.get(3, "loss") == 4.5
    assert reading.steps.get(3, "step_seconds") == 2.0


def test_two_records_glued_on_one_line_are_two_steps() -> None:
    assert log(step(0), step(1), step(2) + step(3)).steps.numbers() == [0, 1, 2, 3]


def test_evaluation_steps_are_no_training_steps() -> None:
    reading = log(
        step(0),
        "Completed eval step: 0, seconds: 0.100, running loss=5.2",
        "eval metrics after step: 0, loss=5.125, total_weights=4096.0",
        "Completed eval after train step 4, loss=4.750, perplexity=115.6",
    )
    assert reading.steps.numbers() == [0]
    assert reading.stated["measurement.loss.validation"].value == 4.75


def test_a_nan_loss_is_divergence() -> None:
    reading = log(step(0), step(1), step(2, loss="nan"))
    assert reading.diverged is True
    assert math.isnan(reading.steps.get(2, "loss") or 0.0)


def test_a_finite_run_did_not_diverge_and_one_without_losses_is_unknown() -> None:
    assert log(step(0), step(1)).diverged is False
    assert log("completed step: 3, seconds: 2.0, TFLOP/s/device: 50.0").diverged is None


def test_the_first_step_and_the_one_after_it_are_not_steady() -> None:
    assert log(*run([30.0, 2.0, *STEADY])).not_steady == {0: "compile", 1: "warmup"}


def test_steps_at_a_compiles_pace_follow_the_first() -> None:
    assert log(*run([30.0, 9.0, 2.0, *STEADY])).not_steady == {0: "compile", 1: "compile", 2: "warmup"}


def test_a_dispatch_time_and_the_step_that_pays_it_back_are_impossible() -> None:
    reading = log(*run([2.0, 2.0, 2.0, 2.0, 0.1, 3.9, *STEADY], first=10))
    assert reading.not_steady == {14: "impossible", 15: "impossible"}


def test_a_rate_above_the_chips_peak_is_impossible_in_a_file_of_two_steps() -> None:
    backend = ["System Information: Jax Backend: PJRT C API", "TFRT TPU v6 lite", "Built on Apr 6 2026"]
    rate = "completed step: 9, seconds: 1.000, TFLOP/s/device: 2000.000, loss: 1.0"
    reading = log(*backend, step(8), rate)
    assert reading.stated["hardware.accelerator"].value == "tpu-v6e"
    assert reading.not_steady[9] == "impossible"


def test_a_dispatch_time_is_told_among_three_steps() -> None:
    assert sorted(log(*run([0.25, 4.0, 4.0], first=1)).not_steady) == [1, 2]


def test_a_first_line_in_the_middle_of_a_run_is_steady() -> None:
    assert log(*run(STEADY, first=100)).not_steady == {}


def test_hidden_profiler_steps_count_and_are_not_steady() -> None:
    hidden = "completed profiler activation/deactivation step: 5, total_weights: 4096, loss: 5.000"
    reading = log(*run(STEADY, first=10), hidden.replace("5,", "18,", 1), step(19))
    assert len(reading.steps) == 10
    assert reading.not_steady == {18: "profile"}


def test_the_steps_that_the_configuration_profiles_are_not_steady() -> None:
    config = ["Config param profiler: xplane", "Config param profiler_steps: 2"]
    config.append("Config param skip_first_n_steps_for_profiler: 4")
    reading = log(*config, *run([30.0, *STEADY]))
    assert [at for at, reason in reading.not_steady.items() if reason == "profile"] == [4, 5, 6]


def test_an_evaluation_delays_the_step_after_it() -> None:
    lines = run([2.0] * 5, first=20)
    lines += ["eval metrics after step: 24, loss=5.1, total_weights=64.0", step(25, 6.0), *run(STEADY, first=26)]
    assert log(*lines).not_steady == {25: "eval"}


def test_rampup_steps_have_no_rate_and_are_not_steady() -> None:
    ramp = "[Rampup Batch Size Phase], completed step: 3, seconds: 1.200, total_weights: 2048, loss: 6.000"
    reading = log(ramp, *run(STEADY, first=4))
    assert reading.steps.get(3, "tflops_per_second_per_chip") is None
    assert reading.not_steady == {3: "warmup"}


def test_after_an_elastic_restart_the_last_record_of_a_step_stands() -> None:
    lines = run([2.0] * 6, first=100)
    lines += ["Slice down event detected. Retrying.", "Elastic attempt 2 out of 10"]
    lines += ["Restoring checkpoint from gs://bucket/run/102.", step(102, 40.0), *run(STEADY, first=103)]
    reading = log(*lines)
    assert reading.steps.restarts == 1
    assert reading.steps.get(104, "step_seconds") == 2.0
    assert len(reading.steps) == 11
    assert reading.not_steady == {102: "compile", 103: "warmup"}


def test_of_several_hosts_in_one_log_the_slowest_times_a_step() -> None:
    hosts = [f"(train pid={pid}, ip=10.0.0.{pid}) {step(3, seconds)}" for pid, seconds in ((1, 2.0), (2, 2.5))]
    reading = log(*hosts)
    assert len(reading.steps) == 1
    assert reading.steps.get(3, "step_seconds") == 2.5
    assert reading.steps.skew(3) == pytest.approx(0.2)


def test_hosts_without_a_prefix_are_told_by_equal_losses() -> None:
    reading = log(step(3, 2.0), step(3, 2.5), step(4, 2.0, loss="5.1"), step(4, 2.2, loss="5.1"))
    assert reading.steps.restarts == 0
    assert reading.steps.column("step_seconds") == [2.5, 2.2]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "Per train step:",
            " Total TFLOPs: 12.50 ",
            " split as 94.00% learnable weight flops and 6.00% attention flops",
        ],
        ["Per train step: Total TFLOPs: 12.50"],
        ["Per train step, total TFLOPs will be 12.50, split as 96.1% learnable weight flops and 3.9% attention flops"],
    ],
)
def test_the_flops_of_a_step_are_stated_in_each_form(lines: list[str]) -> None:
    assert log(*lines).stated["measurement.flops_per_step_per_chip"].value == 12.5e12


def test_flops_that_print_as_zero_state_nothing() -> None:
    assert log("Per train step:", " Total TFLOPs: 0.00 ").stated == {}


CONFIG = """\
Config param base_emb_dim: 512
Config param emb_dim: 1024
Config param num_decoder_layers: 6
Config param num_query_heads: 8
Config param num_kv_heads: 4
Config param head_dim: 64
Config param mlp_dim: 2048
Config param mlp_activations: ['silu', 'linear']
Config param vocab_size: 32000
Config param max_target_length: 2048
Config param per_device_batch_size: 2
Config param global_batch_size_to_train_on: 16
Config param gradient_accumulation_steps: 1
Config param dtype: bfloat16
Config param weight_dtype: float32
Config param quantization:
Config param opt_type: OptimizerType.ADAMW
Config param learning_rate: 0.0003
Config param remat_policy: minimal
Config param attention: flash
Config param hardware: tpu
Config param dataset_type: DatasetType.SYNTHETIC
Config param model_name: default
Config param num_experts: 1
Config param mesh_axes: ['data', 'stage', 'fsdp', 'tensor', 'expert']
Config param ici_fsdp_parallelism: -1
Config param ici_tensor_parallelism: 2
Config param scan_layers: True
Num_devices: 8, shape (1, 1, 4, 2, 1)"""


def stated(text: str) -> dict[str, object]:
    return {path: value.value for path, value in log(*text.splitlines()).stated.items()}


def test_a_configuration_dump_states_the_receipts_leaves() -> None:
    leaves = stated(CONFIG)
    wanted = {
        "model.hidden": 1024,
        "model.depth": 6,
        "model.heads": 8,
        "model.kv_heads": 4,
        "model.head_dim": 64,
        "model.ffn": 2048,
        "model.ffn_projections": 3,
        "model.vocabulary": 32000,
        "batch.sequence_length": 2048,
        "batch.global_batch": 16,
        "numerics.compute_dtype": "bfloat16",
        "numerics.parameter_dtype": "float32",
        "numerics.optimizer": "adamw",
        "numerics.learning_rate": 0.0003,
        "numerics.recompute": "minimal",
        "path.intended.attention": "pallas_splash",
        "path.intended.runtime": "pjrt-tpu",
        "data.dataset": "synthetic",
        "features.scan_layers": True,
        "hardware.chips": 8,
    }
    assert {path: leaves.get(path) for path in wanted} == wanted
    assert "model.name" not in leaves
    assert "model.experts" not in leaves


def test_degrees_are_those_of_the_mesh_that_was_built() -> None:
    leaves = stated(CONFIG)
    assert leaves["parallelism.shard"] == 4
    assert leaves["parallelism.tensor"] == 2
    assert leaves["parallelism.pipeline"] == 1
    assert leaves["parallelism.mesh_axes"] == "fsdp:4,tensor:2"


def test_an_automatic_degree_without_a_mesh_is_not_stated() -> None:
    leaves = stated(CONFIG.replace("Num_devices", "Devices"))
    assert "parallelism.shard" not in leaves
    assert leaves["parallelism.tensor"] == 2


def test_a_replica_of_several_devices_takes_their_sequences_together() -> None:
    assert stated(CONFIG)["batch.micro_batch"] == 4


def test_a_quantised_run_computes_in_its_quantised_type() -> None:
    leaves = stated(CONFIG.replace("quantization:", "quantization: QuantizationType.INT8"))
    assert leaves["numerics.compute_dtype"] == "int8"


def test_attention_on_a_gpu_is_another_kernel() -> None:
    assert stated(CONFIG.replace("hardware: tpu", "hardware: gpu"))["path.intended.attention"] == "pallas_flash"


def test_a_choice_that_is_left_to_maxtext_is_no_intent() -> None:
    assert "path.intended.attention" not in stated(CONFIG.replace("attention: flash", "attention: autoselected"))


def test_experts_state_their_own_widths() -> None:
    more = "\nConfig param num_experts_per_tok: 2\nConfig param moe_mlp_dim: 768\nConfig param capacity_factor: -1.0"
    leaves = stated(CONFIG.replace("num_experts: 1", "num_experts: 16") + more)
    assert (leaves["model.experts"], leaves["model.top_k"], leaves["model.expert_ffn"]) == (16, 2, 768)
    assert "model.capacity_factor" not in leaves


def test_devices_follow_from_weights_of_synthetic_data() -> None:
    line = "Unified tuning params for model are: {'per_device_batch_size': 4, 'max_target_length': 512, "
    reading = log(step(0, weights=16384), line + "'dataset_type': 'synthetic', 'attention': 'flash'}")
    assert reading.stated["hardware.chips"].value == 8


def test_devices_do_not_follow_from_weights_of_real_data() -> None:
    line = "Unified tuning params for model are: {'per_device_batch_size': 4, 'max_target_length': 512}"
    assert "hardware.chips" not in log(step(0, weights=16384), line).stated


def test_device_memory_is_in_gib_whatever_is_printed() -> None:
    reading = log(
        "Memstats: After params initialized:",
        "\tUsing (GB) 10.5 / 31.25 (33.600000%) on TPU_3(process=0,(1,1,0,0))",
        "I0205 08:54:24.56 13 max_utils.py:697]    Using (GB) 6.0 / 71.25 (8.421053%) on cuda:1",
    )
    assert [(row.chip, row.phase) for row in reading.memory] == [(3, "post_init"), (1, "post_init")]
    assert reading.memory[0].bytes_used == 10.5 * 2**30
    assert reading.memory[0].bytes_limit == 31.25 * 2**30


def test_host_memory_is_no_chips_memory() -> None:
    reading = log(step(0), "\tUsing (GB) 100.0 / 400.0 (25.000000%) -->  Available:300.0")
    assert reading.memory == []


def test_unavailable_memory_says_so() -> None:
    reading = log("Memstats: After params initialized:", "\tMemstats unavailable, error: 'NoneType' object …")
    assert reading.memory_unavailable is not None
    assert reading.memory_unavailable.startswith("error: 'NoneType'")


@pytest.mark.parametrize(
    "line",
    [
        "Total memory size: 14.0 GB, Output size: 6.0 GB, Temp size: 8.0 GB, Argument size: 6.0 GB, "
        "Host temp size: 0.0 GB.",
        "[train] Total estimated memory size: 14.0 GB, estimated output size: 6.0 GB, estimated temp size: 8.0 GB, "
        "estimated argument size: 6.0 GB, Estimated host temp size: 0.0 GB.",
        f"Output size: {6 << 30}, temp size: {8 << 30}, argument size: {6 << 30}, host temp size: 0, in bytes.",
    ],
)
def test_the_compilers_plan_is_bytes_in_each_form(line: str) -> None:
    compiled = log(step(0), line).compile
    assert (compiled.output_bytes, compiled.temp_bytes, compiled.argument_bytes) == (6 << 30, 8 << 30, 6 << 30)


def test_the_plan_names_its_total_in_both_forms() -> None:
    for word in ("", "estimated "):
        line = f"Total {word}memory size: 14.0 GB, {word}output size: 6.0 GB, {word}temp size: 8.0 GB"
        assert log(step(0), line).counters["total_bytes"] == 14 << 30


def test_compile_times_of_libtpu_add_up() -> None:
    lines = [
        f"I0731 1 x_compiler_base.cc:75] END_TO_END stage duration: {text}" for text in ("1m2.5s", "500ms", "250us")
    ]
    compiled = log(step(0), *lines).compile
    assert compiled.seconds == pytest.approx(63.00025)
    assert compiled.compiles == 3


def test_compile_times_alone_are_not_maxtexts() -> None:
    assert scan([b"I0731 1 x_compiler_base.cc:75] END_TO_END stage duration: 5s\n"], [MaxText]) == []


def test_versions_parameters_and_cuda_are_stated() -> None:
    reading = log(
        "System Information: Jax Version: 0.7.2",
        "System Information: Jaxlib Version: 0.7.2",
        "System Information: Jax Backend: cuda 12030",
        "number parameters: 7.250 billion",
    )
    assert {path: item.value for path, item in reading.stated.items()} == {
        "wheels.jax": "0.7.2",
        "wheels.jaxlib": "0.7.2",
        "platform.cuda": "12.3",
        "model.parameters_total": 7_250_000_000,
    }


def test_a_markdown_table_of_steps_is_read_with_its_notes() -> None:
    head = ["| step | s/step | TFLOP/s/device | Tokens/s/device | loss | notes |", "|---:|---:|---:|---:|---:|---|"]
    rows = [f"| {n} | 2.000 | 100.000 | 4,096.5 | 5.5 | steady |" for n in range(5, 10)]
    rows.append("| 10 | **6.500** | 30.000 | 1,000.0 | 5.4 | **profiler STOP** |")
    rows.append("| 11 | 2.000 | 100.000 | 4,096.5 | 5.3 | post-profile |")
    reading = log(*head, *rows, "", step(12))
    assert len(reading.steps) == 8
    assert reading.steps.get(6, "tokens_per_second_per_chip") == 4096.5
    assert reading.steps.get(10, "step_seconds") == 6.5
    assert reading.not_steady == {10: "profile"}


@pytest.mark.parametrize("word", ["nan", "inf", "1.5"])
def test_a_row_of_a_table_without_a_whole_step_is_none(word: str) -> None:
    head = ["| step | s/step | TFLOP/s/device |", "|---:|---:|---:|"]
    reading = log(*head, f"| {word} | 2.0 | 100.0 |", "| 4 | 2.0 | 100.0 |")
    assert reading.steps.numbers() == [4]
    assert not reading.remarks


@pytest.mark.parametrize("end", ["|", "||", "| |", "| left | over |"])
def test_a_row_of_a_table_may_have_fewer_or_more_cells_than_its_head(end: str) -> None:
    head = ["| step | s/step | TFLOP/s/device | notes |", "|---:|---:|---:|---|"]
    reading = log(*head, f"| 4 | 2.0 | 100.0 {end}", "| 5 | 2.5 | 80.0 | profiled |")
    assert reading.steps.column("step_seconds") == [2.0, 2.5]
    assert reading.not_steady == {5: "profile"}


def test_a_line_of_absurd_length_and_numbers_is_survived() -> None:
    reading = log(step(0), "completed step: 1, seconds: 1e999, TFLOP/s/device: " + "9" * 100_000 + ", loss: 1.0")
    assert reading.steps.numbers() == [0, 1]


def metrics(*lines: str) -> Reading:
    (reading,) = scan(["\n".join(lines).encode() + b"\n"], [MaxTextMetrics])
    return reading


def row(number: int, seconds: float = 0.5, loss: str = "3.5") -> str:
    return (
        f'{{"learning/loss": {loss}, "learning/grad_norm": 1.5, "perf/step_time_seconds": {seconds}, '
        f'"perf/per_device_tflops": 20.0, "perf/per_device_tflops_per_sec": {20 / seconds}, '
        f'"perf/per_device_tokens": 1000.0, "perf/per_device_tokens_per_sec": {1000 / seconds}, '
        f'"step": {number}.0, "run_name": "small"}}'
    )


def test_metrics_lines_give_steps_and_the_flops_of_one() -> None:
    reading = metrics(row(4), row(5, 0.25))
    assert reading.steps.numbers() == [4, 5]
    assert reading.steps.get(5, "tflops_per_second_per_chip") == 80.0
    assert reading.steps.get(4, "grad_norm") == 1.5
    assert reading.stated["measurement.flops_per_step_per_chip"].value == 20e12
    assert reading.stated["run.label"].value == "small"


def test_pythons_nan_in_a_metrics_line_is_divergence() -> None:
    assert metrics(row(4), row(5, loss="NaN")).diverged is True


def test_an_evaluations_line_is_no_step() -> None:
    reading = metrics(row(4), '{"eval/avg_loss": 3.25, "eval/total_weights": 64.0, "step": 4.0}')
    assert reading.steps.numbers() == [4]
    assert reading.stated["measurement.loss.validation"].value == 3.25


def test_metrics_know_what_is_not_steady_too() -> None:
    assert metrics(row(0, 20.0), *(row(n) for n in range(1, 8))).not_steady == {0: "compile", 1: "warmup"}


def test_a_metrics_line_that_is_cut_is_told_and_left_out() -> None:
    reading = metrics(row(4), row(5)[:-40])
    assert reading.steps.numbers() == [4]
    assert [remark.kind for remark in reading.remarks] == ["broken"]


def test_a_line_glued_to_the_next_ones_prefix_keeps_its_loss() -> None:
    glued = f"{step(3, loss='5.125')}I0203 04:05:08.124 1 metric_logger.py:181] {step(4, loss='5.000')}"
    reading = log(glued)
    assert [reading.steps.get(number, "loss") for number in (3, 4)] == [5.125, 5.0]


def test_a_table_is_read_by_its_heads_with_units_and_shares() -> None:
    reading = log(
        "| Step | Time (s) | TFLOP/s/device | MFU % | Tokens/s/device | Loss |",
        "|---|---|---|---|---|---|",
        "| 3 | 4.5 s | 225.0 | 10.00 | 1,820 | 9.25 |",
    )
    assert reading.steps.get(3, "step_seconds") == 4.5
    assert reading.steps.get(3, "mfu") == pytest.approx(0.1)
    assert reading.steps.get(3, "tokens_per_second_per_chip") == 1820


def test_a_metrics_object_over_several_lines_is_one_step() -> None:
    page = b'# {"learning/grad_norm": 0.5,\n#  "learning/loss": 2.25, "perf/step_time_seconds": 1.5,\n#  "step": 9.0}\n'
    (reading,) = scan([page], [MaxTextMetrics])
    assert reading.records == 1
    assert [reading.steps.get(9, name) for name in ("loss", "grad_norm", "step_seconds")] == [2.25, 0.5, 1.5]


def test_a_cut_metrics_object_costs_its_own_step_only() -> None:
    page = b'{"learning/loss": 2.25, "perf/step_ti\n{"learning/loss": 2.0, "step": 1.0}\n'
    (reading,) = scan([page], [MaxTextMetrics])
    assert reading.steps.numbers() == [1]
    assert [remark.kind for remark in reading.remarks] == ["broken"]


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        ("Capture range started in the application.", "Capture range ended in the application."),
        ("profiler_session.cc:136] Profiler session started.", "profiler_session.cc:150] Profiler session tear down."),
    ],
)
def test_steps_that_a_profiler_captures_are_not_steady(opened: str, closed: str) -> None:
    reading = log(*run(STEADY[:4]), opened, *run([2.0, 2.1], 4), closed, *run(STEADY, 6))
    assert {number for number, reason in reading.not_steady.items() if reason == "profile"} == {4, 5}


@pytest.mark.parametrize("behind", ["Memstats: After step:", "I0102 03:04:05", "(pid=7)", "[rank1]"])
def test_what_is_glued_behind_a_loss_is_none_of_it(behind: str) -> None:
    assert log(*run(STEADY), step(8) + behind).steps.get(8, "loss") == 5.25


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_record_that_a_terminal_broke_within_a_figure_is_whole(width: int) -> None:
    whole = [step(number, 2.125) for number in (5, 6)]
    broken = [line.rstrip("\n")[at : at + width] for line in whole for at in range(0, len(line.rstrip("\n")), width)]
    found, wanted = log(*broken).steps, log(*whole).steps
    assert found.numbers() == wanted.numbers()
    for name in ("step_seconds", "tokens_per_second_per_chip", "tflops_per_second_per_chip", "loss"):
        assert found.column(name) == wanted.column(name)


def test_a_line_behind_a_record_that_was_cut_is_no_piece_of_it() -> None:
    found = log(step(5).rstrip("\n").rpartition(", loss")[0], "saved a checkpoint at gs: 5.100", step(6)).steps
    assert found.column("loss") == [None, 5.25]


def test_a_record_quoted_in_a_text_keeps_its_loss() -> None:
    assert log("`" + step(9).strip() + "`").steps.column("loss") == [5.25]


def test_a_figure_with_a_footnote_in_a_table_is_not_steady() -> None:
    head = ["| Step | 耗时 (s) | TFLOP/s/device | Loss |", "|---|---|---|---|"]
    rows = [f"| {at} | {'6.10*' if at == 6 else '**2.00**'} | 200.0 | 5.250 |" for at in range(3, 12)]
    reading = log(*head, *rows)
    assert reading.steps.get(6, "step_seconds") == 6.1
    assert reading.not_steady == {6: "stall"}


def test_the_batch_of_a_step_is_read() -> None:
    assert log(step(7) + ", lr: 3.0e-4, global_batch_size: 512").steps.get(7, "global_batch") == 512
