"""nanotron's iteration lines: figures of three digits, both units of the batch, any order of the cells."""

from __future__ import annotations

import math

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.nanotron.log import Nanotron

PREFIX = "07/08/2024 09:10:11 [INFO|DP=0|PP=0|TP=0|node-1]: "
NEW = "\x1b[2;3m04/12 10:00:00 [INFO|DP=0|node-1]\x1b[0m: "


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [Nanotron])
    return found


def old(step: int, **changed: str) -> str:
    cells = {
        "consumed_tokens": "4.19M",
        "elapsed_time_per_iteration_ms": "2.05K",
        "tokens_per_sec": "512K",
        "tokens_per_sec_per_gpu": "8K",
        "global_batch_size": "256",
        "lm_loss": "6.54",
        "lr": "0.0003",
        "model_tflops_per_gpu": "402",
        "hardware_tflops_per_gpu": "402",
        "grad_norm": "1.25",
    } | changed
    return f"{PREFIX}iteration: {step} / 500 | " + " | ".join(f"{k}: {v}" for k, v in cells.items()) + "\n"


def new(step: int, **changed: str) -> str:
    cells = {
        "consumed_tokens": "4.19M",
        "time_per_iteration_ms": "2.05K",
        "tokens_per_sec": "512K",
        "tokens_per_sec_per_gpu": "8K",
        "global_batch_size": "1.05M",
        "grad_norm": "3.1K",
        "lr": "0.0003",
        "lm_loss": "6.54",
        "model_tflops_per_gpu": "402",
        "eta": "131 days, 1:45:39",
    } | changed
    return f"{NEW}iteration: {step} / 500 | " + " | ".join(f"{k}: {v}" for k, v in cells.items()) + "\n"


def test_letters_are_of_base_1000_and_times_are_milliseconds() -> None:
    steps = read(old(7)).steps
    assert steps.get(7, "step_seconds") == 2.05
    assert steps.get(7, "tokens_per_second") == 512_000
    assert steps.digits == 3
    assert steps.get(7, "tflops_per_second_per_chip") == 402


def test_before_2025_the_batch_counts_samples() -> None:
    found = read(old(7) + old(8))
    assert found.steps.get(7, "global_batch") == 256
    assert found.stated["batch.global_batch"].value == 256


def test_since_2025_the_batch_counts_tokens_and_is_no_batch_of_samples() -> None:
    found = read(new(7) + new(8))
    assert found.steps.get(8, "global_batch") is None
    assert "batch.global_batch" not in found.stated


def test_cells_are_read_by_name_whatever_their_order_and_letters() -> None:
    steps = read(new(7) + new(8) + old(9)).steps
    assert [steps.get(at, "grad_norm") for at in (7, 8, 9)] == [3100.0, 3100.0, 1.25]
    assert [steps.get(at, "loss") for at in (7, 8, 9)] == [6.54, 6.54, 6.54]


def test_chips_are_the_ratio_of_the_two_rates_where_rounding_leaves_one() -> None:
    assert read(old(7)).stated["hardware.chips"].value == 64
    assert "hardware.chips" not in read(old(7, tokens_per_sec="512K", tokens_per_sec_per_gpu="1.01K")).stated


def test_the_iteration_behind_a_change_of_stage_is_not_steady() -> None:
    change = PREFIX + "[Training Stage: Decay] Clearing the previous training stage's dataloader and datasets\n"
    assert read(old(1) + old(2) + change + old(3) + old(4)).not_steady == {1: "warmup", 3: "stall"}


def test_peaks_are_the_largest_of_lines_that_reset_them() -> None:
    usage = " Memory usage: {}MiB. Peak allocated {}MiB. Peak reserved: {}MiB\n"
    found = read(old(1) + PREFIX + usage.format(10, 900.5, 1000) + PREFIX + usage.format(11, 12.25, 1000))
    assert found.memory[0].peak_bytes == round(900.5 * 2**20)
    assert found.memory[0].peak_reserved_bytes == 1000 * 2**20


def test_memory_cells_are_of_base_1000() -> None:
    found = read(old(5, cuda_memory_allocated="67.4M", cuda_max_memory_reserved="1.5G".replace("G", "B")))
    assert (found.memory[0].bytes_used, found.memory[0].peak_reserved_bytes) == (67_400_000, 1_500_000_000)
    assert found.memory[0].step == 5


def test_the_start_line_states_the_batch_and_the_first_step() -> None:
    start = PREFIX + (
        "[Start training] datetime: 2024-07-08 09:10:11.123456 | mbs: 4 | grad_accum: 2 | global_batch_size: 64 | "
        "sequence_length: 2048 | train_steps: 500 | start_iteration_step: 100 | consumed_train_samples: 6400\n"
    )
    found = read(start + old(101))
    values = {path: item.value for path, item in found.stated.items()}
    assert values["batch.micro_batch"] == 4
    assert values["batch.global_batch"] == 64
    assert values["batch.sequence_length"] == 2048
    assert found.not_steady == {101: "warmup"}


def test_degrees_come_from_the_configuration_and_not_from_ranks_in_a_prefix() -> None:
    dump = [
        "        parallelism=ParallelismArgs(dp=8,",
        "                                    pp=2,",
        "                                    tp=4,",
        "                                    tp_mode=<TensorParallelLinearMode.ALL_REDUCE: 1>,",
        "                                    expert_parallel_size=1),",
        "        model=ModelArgs(pp=99),",
    ]
    found = read("".join(f"{PREFIX}{line}\n" for line in dump) + old(2))
    assert found.stated["parallelism.pipeline"].value == 2
    assert found.stated["parallelism.tensor"].value == 4
    assert "parallelism.tensor" not in read(old(2)).stated


@pytest.mark.parametrize("loss", ["nan", "inf"])
def test_a_loss_that_is_no_number_is_divergence(loss: str) -> None:
    found = read(old(2) + old(3, lm_loss=loss))
    assert found.diverged is True
    assert not math.isfinite(found.steps.get(3, "loss") or 0.0)


def test_a_record_cut_off_by_the_end_of_the_file_keeps_only_whole_cells() -> None:
    cut = old(3).split("tokens_per_sec: ")[0] + "tokens_per_sec: 5"
    steps = read(old(2) + cut).steps
    assert steps.get(3, "step_seconds") == 2.05
    assert steps.get(3, "tokens_per_second") is None


def test_iterations_of_other_programs_are_not_read() -> None:
    assert scan([b"iteration: 5 / 10 | loss: 3.0\niteration: x\n"], [Nanotron]) == []


def test_a_configuration_that_lacks_lines_swallows_no_iteration() -> None:
    cut = [
        "       parallelism=ParallelismArgs(dp=4,",
        "                                   pp=1,",
        "                                   tp=2,",
        "       tokens=TokensArgs(sequence_length=512,",
        "                         micro_batch_size=3,",
    ]
    found = read("".join(f"{PREFIX}{line}\n" for line in cut) + old(1) + old(2))
    assert found.steps.numbers() == [1, 2]
    assert found.stated["parallelism.tensor"].value == 2
    assert found.stated["batch.micro_batch"].value == 3


def test_a_printed_configuration_is_a_record_without_any_iteration() -> None:
    assert read(f"{PREFIX}ParallelismArgs(dp=4, pp=1, tp=2)\n").stated["parallelism.data"].value == 4


def test_a_record_over_three_lines_is_whole() -> None:
    text = old(3, grad_norm="0.75")
    first, second = text.index(" 512K"), text.index(" 402 | grad")
    found = read(text[:first] + "\n" + text[first:second] + "\n" + text[second:] + old(4))
    assert found.steps.numbers() == [3, 4]
    assert found.steps.get(3, "grad_norm") == 0.75
    assert found.steps.get(3, "tokens_per_second") == 512_000


def test_the_configuration_file_states_degrees_and_batch() -> None:
    file = "general:\n  seed: 42\nparallelism:\n  dp: 4\n  tp: 2\n"
    file += "tokens:\n  micro_batch_size: 3\n  sequence_length: 512\nlogging:\n"
    stated = read(file + old(1)).stated
    assert stated["parallelism.data"].value == 4
    assert stated["parallelism.tensor"].value == 2
    assert stated["batch.micro_batch"].value == 3
    assert stated["batch.sequence_length"].value == 512


def test_records_glued_on_one_line_keep_their_own_figures() -> None:
    steps = read(old(5, grad_norm="1.5").rstrip("\n") + old(6, grad_norm="2.5").rstrip("\n") + new(7)).steps
    assert steps.numbers() == [5, 6, 7]
    assert [steps.get(at, "grad_norm") for at in (5, 6)] == [1.5, 2.5]


def test_lines_of_the_logger_glued_on_one_line_are_as_many() -> None:
    usage = f"{PREFIX} Memory usage: 100.00MiB. Peak allocated 200.00MiB. Peak reserved: 300.00MiB"
    found = read(usage + old(5, grad_norm="1.5").rstrip("\n") + "[default0]:" + usage + "\n" + old(6))
    assert found.steps.column("grad_norm") == [1.5, 1.25]
    assert [row.peak_bytes for row in found.memory] == [200 << 20]


def test_a_date_glued_to_a_number_is_none_of_it() -> None:
    text = old(5, grad_norm="2.95").rstrip("\n") + old(6)
    assert "2.9507/08/2024" in text
    assert read(text).steps.column("grad_norm") == [2.95, 1.25]


@pytest.mark.parametrize("width", [80, 100, 120, 132])
def test_a_record_that_a_terminal_broke_within_names_and_figures_is_whole(width: int) -> None:
    whole = old(10) + old(11)
    lines = [line[at : at + width] for line in whole.splitlines() for at in range(0, len(line), width)]
    found, wanted = read("\n".join(lines) + "\n").steps, read(whole).steps
    assert found.numbers() == wanted.numbers()
    for name in ("loss", "step_seconds", "tokens_per_second_per_chip", "tflops_per_second_per_chip"):
        assert found.column(name) == wanted.column(name)


def test_two_records_without_a_prefix_are_told_apart_where_they_are_glued() -> None:
    lines = [old(step, grad_norm=norm).removeprefix(PREFIX).strip() for step, norm in ((7, "1.25"), (8, "1.5"))]
    assert read("".join(lines) + "\n").steps.column("grad_norm") == [1.25, 1.5]
