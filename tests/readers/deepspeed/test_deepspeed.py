"""DeepSpeed's own lines: steps, samples a second, overflow, memory, configuration; alone and under other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.evidence import read as file_evidence
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.deepspeed.log import DeepSpeed

LOG = "[2024-03-02 04:05:06,789] [INFO] [logging.py:96:log_dist] [Rank 0] "
TIMER = "[2024-03-02 04:05:06,790] [INFO] [timer.py:260:stop] "
CONFIG = "[2024-03-02 04:05:00,000] [INFO] [config.py:996:print]   "


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [DeepSpeed])
    return found


def throughput(step: int, rate: float = 64.0, *, used: float = 1.5, peak: float = 7.25) -> str:
    head = f"epoch=0/micro_step={step * 2}/global_step={step}, RunningAvgSamplesPerSec=99.0, CurrSamplesPerSec={rate}"
    return f"{TIMER}{head}, MemAllocated={used}GB, MaxMemAllocated={peak}GB\n"


BATCH = CONFIG + "train_batch_size ............. 128\n"


def test_a_step_takes_the_global_batch_over_its_current_rate() -> None:
    assert read(BATCH + throughput(10)).steps.get(10, "step_seconds") == 2.0


def test_the_global_batch_may_follow_from_its_factors() -> None:
    factors = [
        CONFIG + "gradient_accumulation_steps .. 4\n",
        CONFIG + "train_micro_batch_size_per_gpu  8\n",
        CONFIG + "world_size ................... 4\n",
    ]
    assert read("".join(factors) + throughput(10)).steps.get(10, "step_seconds") == 2.0


def test_without_a_batch_a_step_has_no_time() -> None:
    found = read(throughput(10))
    assert found.steps.numbers() == [10]
    assert found.steps.get(10, "step_seconds") is None


def test_gigabytes_are_of_1024_and_the_largest_peak_stands() -> None:
    (row,) = read(throughput(1, peak=9.5) + throughput(2, peak=7.0, used=2.0)).memory
    assert (row.peak_bytes, row.bytes_used) == (round(9.5 * 2**30), 2 * 2**30)


def test_see_memory_usage_keeps_the_largest_line_because_it_resets_the_peaks() -> None:
    line = LOG + "MA {} GB         Max_MA {} GB         CA {} GB         Max_CA {} GB \n"
    (row,) = read(line.format(3.0, 20.5, 22.0, 23) + line.format(1.0, 4.0, 5.0, 6)).memory
    assert (row.peak_bytes, row.peak_reserved_bytes) == (round(20.5 * 2**30), 23 * 2**30)
    assert row.bytes_used == 2**30


def test_blanks_that_a_page_put_into_a_label_do_not_hide_it() -> None:
    line = throughput(3).replace("MemAllocated=1.5", "MemAl      located=1.5")
    assert read(BATCH + line).memory[0].bytes_used == round(1.5 * 2**30)


@pytest.mark.parametrize(("text", "numbers"), [("0/40, RunningAvg", [40]), ("0/50, ", [])])
def test_of_older_timers_only_the_current_rate_tells_a_step(text: str, numbers: list[int]) -> None:
    current = ", CurrSamplesPerSec=64.0, MemAllocated=1.0GB, MaxMemAllocated=2.0GB" if numbers else ""
    found = read(f"{BATCH}worker-0: [INFO 2020-02-06 19:53:56] {text}SamplesPerSec=50.0{current}\n")
    assert found.steps.numbers() == numbers


def test_pipeline_steps_carry_loss_and_mean_time() -> None:
    found = read("steps: 10 loss: 2.1234 extra: 0.1000 iter time (s): 1.250 samples/sec: 51.200\n")
    assert (found.steps.get(10, "loss"), found.steps.get(10, "step_seconds")) == (2.1234, 1.25)


def test_pipeline_steps_of_forks_with_totals_and_memory_read_too() -> None:
    line = "step:   12 /   100 loss: nan iter time (s): 0.500 samples/sec: 8.0 eta: 1m peak alloc (MB): 100.5 \n"
    found = read(line)
    assert found.steps.numbers() == [12]
    assert found.diverged is True
    assert found.memory[0].peak_bytes == round(100.5 * 2**20)


def test_steps_whose_every_step_was_skipped_are_not_steady() -> None:
    log = "".join(
        LOG + f"step={step}, skipped={skipped}, lr=[0.1], mom=[(0.9, 0.99)]\n"
        for step, skipped in ((10, 10), (20, 12), (21, 13), (22, 13))
    )
    found = read(log)
    assert found.not_steady == {10: "skipped", 21: "skipped"}
    assert found.counters["skipped_steps"] == 13


def test_an_overflow_told_in_the_same_moment_is_of_the_reported_step() -> None:
    overflow = "[2024-03-02 04:05:06,786] [INFO] [loss_scaler.py:183] [deepspeed] OVERFLOW! Rank 0 Skipping step.\n"
    early = overflow.replace("06,786", "01,000")
    assert read(overflow + LOG + "step=10, skipped=1, lr=[0]\n").not_steady == {10: "skipped"}
    assert read(early + LOG + "step=10, skipped=1, lr=[0]\n").not_steady == {}


def test_where_megatron_tells_iterations_deepspeed_claims_no_steps() -> None:
    megatron = (
        " iteration        1/     100 | consumed samples: 8 | elapsed time per iteration (ms): 9.0 | lm loss: 1.0 |\n"
    )
    found = read(BATCH + throughput(5) + megatron + throughput(6))
    assert len(found.steps) == 0
    assert found.memory


def test_timers_of_both_forms_add_up_in_seconds() -> None:
    new = "[Rank 0] time (ms) | fwd: 100.00 | bwd: 200.50 | step: 10.00\n"
    old = LOG + "rank=0 time (ms) | fwd: 50.00 | bwd: 20.00\n"
    timings = read(new + old).timings
    assert timings["fwd"].samples == 2
    assert timings["fwd"].seconds == pytest.approx(0.15)


def test_a_bare_timer_line_is_megatrons() -> None:
    assert scan([b"time (ms) | forward: 100.00 | backward: 200.00\n"], [DeepSpeed]) == []


def test_the_users_json_reads_with_trailing_commas_and_behind_a_worker() -> None:
    lines = [
        "[2024-01-01 00:00:00,000] [INFO] [config.py:962:print_user_config]   json = {",
        '    "train_batch_size": 64,',
        '    "bf16": {"enabled": true,},',
        '    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "bucket": 5.000000e+08,},',
        '    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},',
        "}",
    ]
    values = {path: item.value for path, item in read("\n".join(f"worker-1: {line}" for line in lines)).stated.items()}
    assert values["batch.global_batch"] == 64
    assert values["parallelism.strategy"] == "zero3"
    assert values["numerics.compute_dtype"] == "bf16"
    assert values["features.zero_offload_optimizer"] == "cpu"
    assert values["numerics.learning_rate"] == 1e-4


def test_a_batch_that_is_auto_is_not_stated() -> None:
    found = read('{"train_batch_size": "auto", "x": 1}\n' + throughput(1))
    assert "batch.global_batch" not in found.stated


def test_the_summary_of_collectives_counts_by_operator() -> None:
    table = [
        "Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)",
        "all_reduce",
        "                    4.0 B               6                   10.50               1.84",
        "                    2.01 MB             4                   9.50                1.70",
        "broadcast",
        "                    1.0 KB              3                   1.00                0.33",
        "something else",
        "                    1.0 KB              3                   1.00                0.33",
    ]
    timings = read("\n".join(table)).timings
    assert timings["comm.all_reduce"].samples == 10
    assert timings["comm.all_reduce"].seconds == pytest.approx(0.02)
    assert timings["comm.broadcast"].samples == 3


def test_the_flops_profiler_tells_ranks_and_the_batch_of_one() -> None:
    rows = {"world size": "6", "data parallel size": "3", "model parallel size": "2", "batch size per GPU": "24"}
    table = "".join(f"{name + ':':<72}{value:<8}\n" for name, value in rows.items())
    stated = read("Profile Summary at step 7:\n" + table + f"{'iter latency:':<72}512.5 ms\n").stated
    assert stated["hardware.chips"].value == 6
    assert stated["parallelism.data"].value == 3
    assert stated["batch.micro_batch"].value == 24


def test_records_glued_on_one_line_are_as_many() -> None:
    text = f"{LOG}step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]{throughput(10).rstrip()}{throughput(20, 32.0)}"
    steps = read(BATCH + text).steps
    assert steps.numbers() == [10, 20]
    assert steps.column("step_seconds") == [2.0, 4.0]


def test_a_record_of_the_pipeline_engine_glued_behind_a_report_is_read() -> None:
    text = f"{LOG}step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]steps: 10 loss: 2.5000 iter time (s): 0.500 "
    steps = read(f"{text}samples/sec: 128.000\n").steps
    assert (steps.get(10, "loss"), steps.get(10, "step_seconds")) == (2.5, 0.5)


def test_a_record_behind_a_progress_bar_is_one_record() -> None:
    text = f" 51%|█████     | 507/1000 [15:32<16:42,  2.03s/it]{throughput(10)}"
    assert read(BATCH + text).steps.column("step_seconds") == [2.0]


def test_an_overflow_told_with_the_timer_is_of_its_step() -> None:
    overflow = f"{TIMER.replace('06,790', '06,789')}[deepspeed] OVERFLOW! Rank 0 Skipping step.\n"
    found = read(BATCH + throughput(7) + overflow + throughput(8) + throughput(9))
    assert found.not_steady == {8: "skipped"}


def test_a_line_glued_behind_a_size_of_the_configuration_is_none_of_it() -> None:
    text = BATCH.rstrip("\n") + " Loading extension module utils...\n"
    assert read(text + throughput(10)).steps.get(10, "step_seconds") == 2.0


@pytest.mark.parametrize("mark", ["", "> "])
def test_a_throughput_line_folded_behind_its_commas_is_one(mark: str) -> None:
    folded = "".join(throughput(step).replace("] epoch", "]\nepoch").replace(", ", ",\n") for step in (10, 20))
    found = read("".join(mark + line for line in (BATCH + folded + "after,\n").splitlines(keepends=True)))
    assert found.steps.numbers() == [10, 20]
    assert found.steps.column("step_seconds") == [2.0, 2.0]
    assert [row.peak_bytes for row in found.memory] == [round(7.25 * (1 << 30))]


def test_a_throughput_line_that_was_cut_does_not_take_the_next_one() -> None:
    cut = throughput(10).partition(" CurrSamples")[0] + "\n"
    found = read(BATCH + cut + throughput(20))
    assert found.steps.column("step_seconds") == [2.0]


def test_an_overflow_in_the_words_of_2021_counts() -> None:
    overflow = f"{LOG}Overflow detected. Skipping step. Attempted loss scale: 8.0, reducing to 4.0\n"
    assert read(BATCH + overflow + throughput(10)).counters == {"overflow_steps": 1}


def test_a_batch_that_is_stated_below_the_steps_gives_their_times() -> None:
    assert read(throughput(10) + BATCH).steps.get(10, "step_seconds") == 2.0


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120])
def test_a_throughput_line_that_a_terminal_broke_is_whole(width: int) -> None:
    lines = [TIMER.strip() + " " + throughput(step, 63.125).split("] ", 3)[-1].strip() for step in (10, 20)]
    broken = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    found = read(BATCH + "\n".join(broken) + "\n")
    assert found.steps.column("step_seconds") == [128 / 63.125] * 2
    assert found.memory[0].peak_bytes == round(7.25 * 2**30)


def test_a_throughput_line_quoted_in_a_text_keeps_its_memory() -> None:
    quoted = throughput(3).rstrip("\n") + '".'
    assert read(f'It reports "{quoted}\n').memory[0].peak_bytes == round(7.25 * 2**30)


def timed(*steps: float, rank: int = 0) -> str:
    """Lines of the engine's timers: two micro batches, and then the whole step."""
    micro = f"[Rank {rank}] time (ms) | fwd_microstep: 9.00 | bwd_microstep: 9.00 | step_microstep: 0.02\n"
    whole = "[Rank {}] time (ms) | fwd: {:.2f} | bwd: 20.00 | bwd_inner: 15.00 | bwd_allreduce: 5.00 | step: 5.00\n"
    return "".join(2 * micro + whole.format(rank, seconds * 1e3 - 25) for seconds in steps)


def test_the_timers_of_the_engine_are_steps_where_no_line_has_their_time() -> None:
    found = read(timed(0.5, 0.1, 0.2) + timed(9, rank=1))
    assert [found.steps.get(step, "step_seconds") for step in found.steps.numbers()] == pytest.approx([0.5, 0.1, 0.2])
    assert found.not_steady == {1: "warmup"}
    assert "update" in found.stated["measurement.timer"].value


def test_the_timers_of_the_engine_do_not_move_steps_that_have_a_time() -> None:
    assert read(BATCH + throughput(2) + timed(0.5, 0.1)).steps.column("step_seconds") == [2.0]


def test_timers_that_are_not_as_many_as_the_steps_are_no_steps() -> None:
    assert read(f"{LOG}step=10, skipped=0, lr=[0.1], mom=[0.9]\n" + timed(0.5)).steps.column("step_seconds") == [None]


def test_timers_of_a_log_that_was_cut_before_the_last_ones_are_those_of_the_steps_before() -> None:
    lines = "".join(f"{LOG}step={step}, skipped=0, lr=[0.1], mom=[0.9]\n" for step in (1, 2, 3))
    assert read(lines + timed(0.5, 0.25)).steps.column("step_seconds") == [0.5, 0.25, None]


@pytest.mark.parametrize("around", ['{{"stage": 9, "config": {}}}', "{}"])
def test_a_configuration_in_a_file_of_its_own(tmp_path: Path, around: str) -> None:
    config = (
        '{\n "train_batch_size": 64,\n "train_micro_batch_size_per_gpu": 4,\n "bf16": {"enabled": true},\n'
        ' "zero_optimization": {"stage": 3},\n "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}\n}\n'
    )
    path = tmp_path / "config.json"
    path.write_text(around.replace("{{", "{").replace("}}", "}").replace("{}", config), encoding="utf-8")
    (found,) = file_evidence(path).readings
    assert {name: item.value for name, item in found.stated.items()} == {
        "batch.global_batch": 64,
        "batch.micro_batch": 4,
        "parallelism.strategy": "zero3",
        "numerics.compute_dtype": "bf16",
        "numerics.optimizer": "AdamW",
        "numerics.learning_rate": 0.001,
    }


def test_a_timer_of_a_run_without_an_accelerator_prints_no_memory() -> None:
    assert read(throughput(10, used=0.0, peak=0.0)).memory == []


def test_one_optimizer_in_three_spellings_is_no_contradiction() -> None:
    found = read(
        "[logging.py:96:log_dist] [Rank 0] DeepSpeed Basic Optimizer = FusedAdam\n"
        "[INFO] [config.py:752:print]   optimizer_name ............... adamw\n"
        '[INFO] [config.py:754:print]   json = {\n    "optimizer": {"type": "AdamW"}\n}\n'
    )
    assert found.stated["numerics.optimizer"].value == "adamw"
    assert not found.others


def test_the_class_names_an_optimizer_that_no_setting_names() -> None:
    found = read("DeepSpeed Basic Optimizer = FusedLamb\n[INFO] [config.py:752:print]   optimizer_name ........ None\n")
    assert found.stated["numerics.optimizer"].value == "FusedLamb"


def test_a_configuration_within_a_list_of_another_document_is_read(tmp_path: Path) -> None:
    (path := tmp_path / "job.json").write_text(
        '{"job": {"args": [{"deepspeed": {"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}}]}}'
    )
    (found,) = file_evidence(path).readings
    assert found.stated["parallelism.strategy"].value == "zero2"
