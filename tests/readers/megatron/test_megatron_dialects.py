"""Which program wrote a Megatron log: Megatron-LM, Megatron-Bridge, or a fork of Megatron-DeepSpeed."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.megatron.log import Megatron

END = " number of skipped iterations:   0 | number of nan iterations:   0 |"


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [Megatron])
    return found


def bridge(step: int, ms: float) -> str:
    return (
        f" [2026-01-01 00:00:0{step % 10}] iteration {step:8d}/      50 | consumed samples: {step * 8:12d} |"
        f" elapsed time per iteration (ms): {ms:.1f} | learning rate: 3.000000E-05 | global batch size:     8 |"
        f" lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 0.125 |{END}\n"
    )


def test_the_seconds_of_the_bloom_fork_are_seconds() -> None:
    text = (
        "[default7]: iteration      100/  115311 | consumed samples:       204800 | consumed tokens:    419430400 |"
        " elapsed time per iteration (s): 105.25 | learning rate: 6.000E-05 | global batch size:  2048 |"
        f" lm loss: 2.125000E+00 | grad norm: 0.250 | num zeros: 0.0 |{END}"
        " samples per second: 19.458 | TFLOPs: 148.50 |\n"
    )
    found = read(text)
    assert (found.source, found.steps.get(100, "step_seconds")) == ("megatron-deepspeed", 105.25)
    assert found.steps.get(100, "tflops_per_second_per_chip") == 148.5


@pytest.mark.parametrize(
    "rate", ["TFLOPs=49.50", "[LM]-TFLOPs=49.50 | [DS]-TFLOPs=73.25", "[LM]TFLOPs=49.50 | [DS]TFLOPs=73.25"]
)
def test_the_form_with_equals_signs_and_its_spellings_of_a_rate(rate: str) -> None:
    text = (
        "[2025-01-01 00:00:00.123456][INFO][training_log:661] -  iteration=       3/  317892 | consumed_samples="
        "        2304 | consumed_tokens=     9437184 | elapsed_time_per_iteration_ms=10893.5"
        " | learning_rate=1.88743e-08 | global_batch_size=  768"
        " | lm loss=11.125000 | loss_scale=1.0 | grad_norm=6.250 | actual_seqlen= 4096 |"
        " number_of_skipped_iterations=  0 | number_of_nan_iterations=  0 | samples_per_second=70.500 |"
        f" tokens_per_gpu_per_second_tgs=1203.625 | {rate} |\n"
    )
    found = read(text)
    steps = found.steps
    assert (found.source, steps.get(3, "step_seconds"), steps.get(3, "loss")) == ("megatron-deepspeed", 10.8935, 11.125)
    assert (steps.get(3, "tflops_per_second_per_chip"), steps.get(3, "tokens_per_second_per_chip")) == (49.5, 1203.625)
    assert found.stated["batch.sequence_length"].value == 4096


def test_a_batch_is_read_in_the_spelling_of_a_fork() -> None:
    (reading,) = scan([bridge(3, 250.0).replace("global batch size", "gloabl batch size").encode()], [Megatron])
    assert reading.steps.get(3, "global_batch") == 8


def test_swift_prints_the_largest_pool_beside_megatrons_own_lines() -> None:
    own = "[Rank 3] (after 1 iterations) memory (MB) | allocated: 64.0 | max allocated: 96.0 | max reserved: 128.0\n"
    first, second = (bridge(n, 900.0).replace(" learning", f" memory(GiB): {60 + n}.25 | learning") for n in (1, 2))
    rows = read(first + own + second).memory
    assert [(row.chip, row.peak_reserved_bytes) for row in rows] == [(None, 62.25 * 2**30), (3, 128 * 2**20)]


def test_a_norm_of_the_engine_that_is_not_printed_is_unknown() -> None:
    text = (
        " iteration       42/    1000 | consumed samples:        43008 | elapsed time per iteration (ms): 13665.4 |"
        f" learning rate: 1.494E-04 | global batch size:  1024 | lm-loss: 7.500000E+00 | loss scale: -1.0 |"
        f" grad norm: 0.000 |{END}\n"
    )
    found = read(text)
    assert (found.source, found.steps.get(42, "loss")) == ("megatron-deepspeed", 7.5)
    assert found.steps.get(42, "grad_norm") is None


def test_the_samples_of_neox_stand_before_the_record() -> None:
    text = (
        "samples/sec: 38.512 | iteration     5330/  143000 | elapsed time per iteration (ms): 26500.5 |"
        " learning rate: 5.977E-04 | approx flops per GPU: 126.5TFLOPS | lm_loss: 2.500000E+00 | loss scale: 65536.0 |"
        f"{END}\n"
    )
    found = read(text)
    assert (found.source, found.steps.get(5330, "tflops_per_second_per_chip")) == ("megatron-deepspeed", 126.5)


def test_effective_flops_belong_to_the_record_before() -> None:
    text = (
        " iteration       20/    1000 | elapsed time per iteration (ms): 28716.5 | learning rate: 1.500E-04 |"
        f" lm loss: 2.250000E+01 | loss scale: 1024.0 |{END}\n"
        "time (ms) | forward: 5495.35 | optimizer: 243.03 | batch generator: 1.00"
        " Effective Tera Flops per GPU: 0.25 and total parameters 29.998 B\n"
    )
    found = read(text)
    assert (found.source, found.steps.get(20, "tflops_per_second_per_chip")) == ("megatron-deepspeed", 0.25)


def test_a_step_time_goes_with_the_record_of_its_time_whichever_comes_first() -> None:
    text = (
        "Step Time : 9.25s GPU utilization: 600.5MODEL_TFLOP/s/GPU\n"
        + bridge(11, 9250.4)
        + bridge(12, 8100.0)
        + "job/0 Step Time : 8.10s GPU utilization: 700.5MODEL_TFLOP/s/GPU\n"
    )
    found = read(text)
    assert found.source == "megatron-bridge"
    assert found.steps.column("tflops_per_second_per_chip") == [600.5, 700.5]
    assert found.steps.get(11, "step_seconds") == pytest.approx(9.2504)


def test_a_mean_at_the_end_is_no_step() -> None:
    found = read("Step Time : 4.50s GPU utilization: 240.0MODEL_TFLOP/s/GPU\nAverage Step Time: 4.097s\n")
    assert found.steps.column("step_seconds") == [4.5]


def test_step_times_alone_are_numbered_by_their_order() -> None:
    text = "".join(
        f"Step Time : {seconds}s GPU utilization: {rate}MODEL_TFLOP/s/GPU\n"
        for seconds, rate in [(80.25, 12.5), (9.5, 110.0), (4.25, 245.5), (4.0, 0.0), (4.5, 240.0)]
    )
    found = read(text)
    assert found.steps.column("step_seconds") == [80.25, 9.5, 4.25, 4.0, 4.5]
    assert found.steps.get(4, "tflops_per_second_per_chip") is None
    assert found.not_steady == {1: "warmup", 2: "warmup"}


def test_the_summary_of_differences_states_what_it_shows() -> None:
    text = (
        "job/0 ======================================================================\n"
        "job/0 Configuration Summary (Non-Default Values vs Megatron Core)\n"
        "job/0 ======================================================================\n"
        "job/0 \n"
        "job/0 [optimizer] Non-default values (vs Mcore OptimizerConfig):\n"
        "job/0   lr: 0.0003  (Mcore default: None)\n"
        "job/0   use_distributed_optimizer: True  (Mcore default: False)\n"
        "other/1 a line of another process\n"
        "job/0 \n"
        "job/0 [model] Non-default values (vs Mcore TransformerConfig):\n"
        "job/0   attention_backend: <AttnBackend.fused: 2>  (Mcore default: <AttnBackend.auto: 5>)\n"
        "job/0   fp8: 'hybrid'  (Mcore default: None)\n"
        "job/0   fp8_recipe: 'mxfp8'  (Mcore default: 'delayed')\n"
        "job/0   hidden_size: 4096  (Mcore default: 0)\n"
        "job/0   num_moe_experts: 8  (Mcore default: None)\n"
        "job/0   tensor_model_parallel_size: 2  (Mcore default: 1)\n"
        "job/0 ----------------------------------------------------------------------\n"
        "job/0 Other Configuration Values:\n"
        "job/0 ----------------------------------------------------------------------\n"
        "job/0 \n"
        "job/0 [train]:\n"
        "job/0   global_batch_size: 128\n"
        "job/0   micro_batch_size: 2\n"
        "job/0 \n"
        "job/0 [dataset]:\n"
        "job/0   seq_length: 8192\n"
        "job/0 ======================================================================\n"
        "job/0 training starts\n" + bridge(3, 100.0)
    )
    found = read(text)
    values = {path: leaf.value for path, leaf in found.stated.items()}
    assert found.source == "megatron-bridge"
    assert (values["parallelism.tensor"], values["model.hidden"], values["model.experts"]) == (2, 4096, 8)
    assert (values["batch.global_batch"], values["batch.micro_batch"], values["batch.sequence_length"]) == (
        128,
        2,
        8192,
    )
    assert (values["numerics.fp8_recipe"], values["numerics.learning_rate"]) == ("mxfp8", 0.0003)
    assert (values["path.intended.attention"], values["parallelism.strategy"]) == ("te_fused", "zero1")
    assert "parallelism.pipeline" not in values
    assert len(found.steps) == 1


@pytest.mark.parametrize(
    "prefix",
    [
        " [2026-01-01 00:00:03] ",
        "[lrdn3321:3]: [2026-01-01 00:00:03] ",
        "[20260101 00:00:03][rank-31/32][INFO ] [--------trainer.py:2488] :  ",
    ],
)
def test_a_megatron_log_with_dates_is_megatrons(prefix: str) -> None:
    text = prefix + bridge(3, 100.0)[len(" [2026-01-01 00:00:03] ") :]
    found = read(text)
    assert (found.source, found.steps.get(3, "loss")) == ("megatron", 2.5)


@pytest.mark.parametrize(
    ("loss", "source"), [("", "megatron"), (" mtp_1 loss: 2.250000E+00 |", "megatron-bridge")], ids=["one", "depths"]
)
def test_a_record_quoted_without_its_date_is_bridges_where_it_has_losses_of_depths(loss: str, source: str) -> None:
    text = bridge(3, 100.0)[len(" [2026-01-01 00:00:03] ") :].replace(" loss scale:", f"{loss} loss scale:")
    assert read(text).source == source
    # The time at which a collector took a line is not the program's date.
    assert read(f"2026-01-02T03:04:05.123456789Z stdout F {text}").source == source


@pytest.mark.parametrize(("word", "rate"), [("112.5TFLOPS", 112.5), ("1.5PFLOPS", 1500.0), ("250.0GFLOPS", 0.25)])
def test_the_rate_of_gpt_neox_has_its_unit_beside_it(word: str, rate: float) -> None:
    head = " samples/sec: 7.8 | iteration 5/ 9 | elapsed time per iteration (ms): 10.0 |"
    text = f"{head} approx flops per GPU: {word} |{END}\n"
    assert read(text).steps.get(5, "tflops_per_second_per_chip") == rate


def test_a_step_time_after_the_first_record_goes_with_it_and_not_with_an_earlier_one() -> None:
    text = bridge(11, 8100.0) + bridge(12, 8100.0) + "Step Time : 8.10s GPU utilization: 700.5MODEL_TFLOP/s/GPU\n"
    assert read(text).steps.column("tflops_per_second_per_chip") == [None, 700.5]


@pytest.mark.parametrize("date", ["[xxxx-xx-xx xx:xx:xx] ", "[YYYY-MM-DD HH:MM:SS] "])
def test_a_date_that_was_taken_out_is_a_date(date: str) -> None:
    text = f" {date}iteration 5/ 9 | elapsed time per iteration (ms): 10.0 | learning rate: 1.500000E-04 |{END}\n"
    assert read(text).source == "megatron"


@pytest.mark.parametrize(
    "label", ["tokens/s/GPU inst/harmonic mean", "Tokens per second per GPU (Tok/s/GPU)", "tok/s/device"]
)
def test_tokens_a_second_of_a_chip_by_any_name(label: str) -> None:
    head = " [2026-01-02 03:04:05] iteration 5/ 9 | elapsed time per iteration (ms): 10.0 |"
    text = f"{head} {label}: 2503.5/2228.0 |{END}\n"
    assert read(text).steps.get(5, "tokens_per_second_per_chip") == 2503.5


def test_a_start_glued_before_a_record_is_before_it() -> None:
    start = "[before the start of training step] datetime: 2026-01-01 00:00:00 "
    text = bridge(11, 10.0) + bridge(12, 10.0) + start + bridge(13, 10.0) + bridge(14, 10.0)
    glued = read(text)
    assert glued.not_steady == read(text.replace(start, start + "\n")).not_steady
    assert glued.steps.numbers() == [11, 12, 13, 14]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_cells_behind_the_last_count_are_read_where_a_terminal_broke_the_record(width: int) -> None:
    cells = (
        "elapsed time per iteration (ms): 6042.9 | learning rate: 8.800E-05 | global batch size:   512 | "
        f"lm loss: 6.812345E+00 |{END} samples per second: 84.727 | tokens per gpu per second (tgs): 2711.270 | "
        "TFLOPs: 121.47 |"
    )
    line = f" iteration      110/   11444 | consumed samples:        56320 | {cells}"
    found = read("".join(f"{line[at : at + width]}\n" for at in range(0, len(line), width))).steps
    assert found.get(110, "tokens_per_second_per_chip") == 2711.27
    assert found.get(110, "tflops_per_second_per_chip") == 121.47


def test_the_memory_that_primus_prints_in_a_record_is_kept_at_its_highest() -> None:
    usage = (
        "rocm mem usage/free/total/usage_ratio: {}.50GB/90.00GB/191.98GB/53.10% |"
        " elapsed time per iteration (ms): 250.5/251.5 |"
    )
    text = "".join(
        bridge(step, 250.5).replace("elapsed time per iteration (ms): 250.5 |", usage.format(used))
        for step, used in ((11, 101), (12, 102), (13, 100))
    )
    found = read(text)
    assert found.steps.get(12, "step_seconds") == 0.2505
    assert [(row.step, row.bytes_used, row.phase) for row in found.memory] == [(12, round(102.5 * 2**30), "steady")]
