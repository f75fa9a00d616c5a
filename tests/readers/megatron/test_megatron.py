"""Megatron-LM's iteration line in its versions: units, missing cells, glued, wrapped and cut records."""

from __future__ import annotations

import math

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import DEFECT, scan
from receipts.readers.megatron.log import Megatron


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [Megatron])
    return found


def line(
    step: int,
    ms: float = 500.0,
    *,
    date: str = "[2025-03-04 05:06:07] ",
    loss: str = " lm loss: 5.250000E+00 |",
    skipped: int = 0,
    nans: int = 0,
    norm: str = " grad norm: 1.250 |",
) -> str:
    return (
        f" {date}iteration {step:8d}/    1000 | consumed samples: {step * 64:12d} |"
        f" elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 321.5 |"
        f" learning rate: 1.500000E-04 | global batch size:    64 |{loss} loss scale: 1.0 |{norm}"
        f" number of skipped iterations: {skipped:3d} | number of nan iterations: {nans:3d} |\n"
    )


def test_a_line_of_today_reads_in_seconds_and_floating_point_operations() -> None:
    steps = read(line(7, 1234.5)).steps
    assert steps.get(7, "step_seconds") == 1.2345
    assert steps.get(7, "tflops_per_second_per_chip") == 321.5
    assert (steps.get(7, "loss"), steps.get(7, "grad_norm"), steps.get(7, "global_batch")) == (5.25, 1.25, 64.0)


def test_version_1_has_neither_samples_nor_a_batch() -> None:
    text = (
        " iteration      200/  320000 | elapsed time per iteration (ms): 812.4 | learning rate: 9.375E-06 |"
        " lm loss: 8.113504E+00 | loss scale: 131072.0 | number of skipped iterations:   0 |"
        " number of nan iterations:   0 |\n"
    )
    found = read(text)
    assert (found.source, found.steps.get(200, "step_seconds")) == ("megatron", 0.8124)
    assert found.steps.get(200, "global_batch") is None


def test_optional_cells_may_stand_anywhere() -> None:
    text = (
        "0:  [2026-02-01 10:00:00.123456] iteration       12/      50 | consumed samples:          768 |"
        " skipped samples:           64 | elapsed time per iteration (ms): 250.0 |"
        " throughput per GPU (TFLOP/s/GPU): 400.1 | energy per GPU (J/iter/GPU): 150.2 |"
        " power per GPU (W/GPU): 600.8 | global batch size:    64 | lm loss: 2.000000E+00 |"
        " z_loss: 1.000000E-04 | load_balancing_loss: 1.010000E+00 | mtp_1 loss: 3.000000E+00 | loss scale: 1.0 |"
        " grad norm: 0.500 | num zeros: 12 | params norm: 900.125 | max attention logit: 12.000 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )
    found = read(text)
    assert found.steps.get(12, "loss") == 2.0
    assert found.steps.get(12, "tflops_per_second_per_chip") == 400.1


def test_a_rate_of_zero_is_unknown() -> None:
    text = line(3).replace("321.5", "0.0")
    assert read(text).steps.get(3, "tflops_per_second_per_chip") is None


@pytest.mark.parametrize("label", ["loss", "lm_loss", "masked lm loss"])
def test_other_losses_are_the_loss_where_there_is_no_language_model(label: str) -> None:
    assert read(line(3, loss=f" {label}: 1.250000E+00 |")).steps.get(3, "loss") == 1.25


def test_a_loss_left_out_of_a_step_that_trained_is_divergence() -> None:
    found = read(line(5) + line(6, loss="") + line(7, loss=""))
    assert found.diverged is True
    assert found.steps.get(6, "loss") is None
    assert any("iteration 6" in remark.text for remark in found.remarks)


def test_an_interval_of_skipped_iterations_has_no_loss_and_has_not_diverged() -> None:
    text = "".join(line(step, loss="", norm="", skipped=10) for step in (10, 20)) + line(30, skipped=1)
    assert read(text).diverged is False


def test_an_interval_that_trained_in_part_and_shows_no_loss_has_diverged() -> None:
    text = line(10) + line(20, loss="", skipped=4)
    assert read(text).diverged is True


def test_overflow_alone_says_nothing_of_divergence() -> None:
    assert read(line(1, loss="", norm="", skipped=1) + line(2, loss="", norm="", skipped=1)).diverged is None


def test_a_nan_iteration_is_divergence() -> None:
    assert read(line(5) + line(6, loss="", skipped=1, nans=1)).diverged is True


@pytest.mark.parametrize(
    "words",
    [
        "AssertionError: Rank 114: found NaN in local forward loss calculation. Device: 2, node: n7",
        "[rank3]: RuntimeError: Rank 3, node n7, device 3, iteration 6: Unexpected result nan"
        " (message='found NaN in local forward loss calculation')",
        "ERROR:megatron.core.rerun_state_machine:Unexpected result inf on rank 3 at iteration #6 invocation #2"
        " (message='found Inf in local grad norm for bucket #0 in backward pass')",
    ],
)
def test_what_megatrons_own_check_found_is_divergence(words: str) -> None:
    found = read(line(5) + words + "\n")
    assert found.diverged is True
    assert [remark.text for remark in found.remarks if "check found" in remark.text]


def test_the_source_of_the_check_is_no_divergence() -> None:
    source = "    f'Rank {global_rank}: found NaN in local forward loss calculation. '\n"
    assert read(line(5) + source).diverged is False


def test_a_printed_nan_is_kept_as_nan() -> None:
    found = read(line(5) + line(6, norm=" grad norm: nan |"))
    norm = found.steps.get(6, "grad_norm")
    assert norm is not None
    assert math.isnan(norm)
    assert found.diverged is True


def test_records_glued_together_are_two() -> None:
    steps = read(line(5).rstrip() + line(6, 700.0)).steps
    assert steps.numbers() == [5, 6]
    assert steps.get(6, "step_seconds") == 0.7


def test_text_glued_behind_a_record_is_no_part_of_it() -> None:
    text = line(5).rstrip() + "Number of parameters in transformer layers in billions:  6.98\n"
    assert read(text).steps.get(5, "loss") == 5.25


@pytest.mark.parametrize("width", range(75, 260, 7))
def test_a_record_wrapped_at_a_column_reads_whole(width: int) -> None:
    text = line(5, 812.5).rstrip()
    wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    steps = read(wrapped + "\ntime (ms) | forward: 1.0\n").steps
    names = ("step_seconds", "tflops_per_second_per_chip", "loss", "grad_norm", "global_batch")
    assert [steps.get(5, name) for name in names] == [0.8125, 321.5, 5.25, 1.25, 64.0]


def test_a_record_wrapped_between_words_reads_whole() -> None:
    text = line(5).replace("lm loss: ", "lm loss:\n")
    assert read(text).steps.get(5, "loss") == 5.25


def test_a_dated_record_wrapped_within_a_label_has_the_blank_that_the_break_took() -> None:
    text = f" [2026-01-02 03:04:05]{line(5)}".replace("global batch ", "global batch\n")
    assert read(text).steps.get(5, "global_batch") == 64.0


def test_a_record_cut_by_the_end_of_a_job_keeps_what_was_printed_whole() -> None:
    text = line(5)
    cut = text[: text.index("grad norm: 1.25") + len("grad norm: 1.2")]
    steps = read(cut).steps
    assert steps.get(5, "loss") == 5.25
    assert steps.get(5, "grad_norm") is None


def test_seven_steps_of_one_shape_read_as_the_first_does() -> None:
    found = read("".join(line(step, 500.0 + step) for step in range(20, 27)))
    assert found.steps.column("step_seconds") == [0.52, 0.521, 0.522, 0.523, 0.524, 0.525, 0.526]
    assert found.steps.column("loss") == [5.25] * 7


def test_the_first_step_of_a_run_is_no_steady_one() -> None:
    found = read(line(1, 9000.0) + line(2) + line(3) + line(4))
    assert found.not_steady == {1: "warmup"}


def test_a_log_that_begins_in_the_middle_has_no_first_step() -> None:
    assert read("".join(line(step) for step in range(400, 410))).not_steady == {}


def test_the_second_record_still_holds_the_first_where_the_clock_is_not_reset() -> None:
    date = "[2026-08-01 10:00:00.123456] "
    text = line(1, 9000.0, date=date) + "".join(line(step, date=date) for step in (100, 200, 300))
    assert read(text).not_steady == {1: "warmup", 100: "warmup"}


def test_the_first_average_since_the_start_is_no_steady_one() -> None:
    assert read(line(10, 5000.0) + line(20) + line(30)).not_steady == {10: "warmup"}


def test_a_step_far_outside_the_spread_is_a_stall() -> None:
    text = "".join(line(step, 2000.0 if step == 55 else 500.0 + step % 3) for step in range(50, 60))
    assert read(text).not_steady == {55: "stall"}


def test_a_restart_counts_and_its_first_step_is_a_start() -> None:
    again = "[before the start of training step] datetime: 2025-03-04 05:06:07 \n"
    text = "".join(line(step) for step in range(50, 56)) + again + "".join(line(step) for step in range(53, 58))
    found = read(text)
    assert (found.steps.restarts, len(found.steps)) == (1, 8)
    assert found.not_steady == {53: "warmup"}


def test_steps_under_a_profiler_are_not_steady() -> None:
    stage = "STAGE:2025-01-01 00:00:00 12:12 ActivityProfilerController.cpp:314] Completed Stage: "
    text = line(8) + line(9) + stage + "Warm Up\n" + line(10) + stage + "Collection\n" + line(11)
    assert read(text).not_steady == {10: "profile"}


def test_several_ranks_that_print_a_step_merge_into_the_slowest() -> None:
    text = f"[rank0]:{line(5, 500.0)}[rank1]:{line(5, 510.0)}[rank1]:{line(6, 520.0)}[rank0]:{line(6, 530.0)}"
    steps = read(text).steps
    assert steps.restarts == 0
    assert steps.get(6, "step_seconds") == 0.53


def test_a_pair_of_current_and_average_is_the_current_one() -> None:
    text = line(5).replace("(ms): 500.0", "(ms): 500.0/512.5").replace("321.5", "321.5/310.0")
    steps = read(text).steps
    assert (steps.get(5, "step_seconds"), steps.get(5, "tflops_per_second_per_chip")) == (0.5, 321.5)


def test_fallbacks_to_torch_are_told() -> None:
    text = "WARNING: Apex is not installed. Falling back to Torch Norm\n" + line(5)
    assert [remark.text for remark in read(text).remarks] == [
        "WARNING: Apex is not installed. Falling back to Torch Norm"
    ]


def test_a_log_of_something_else_has_no_reading() -> None:
    text = "NCCL version 2.21.5+cuda12.4\nI ran for 3 iterations, memory (MB) unknown\n"
    assert scan([text.encode()], [Megatron]) == []


@pytest.mark.parametrize(
    "text",
    [
        "iteration 1/2 | elapsed time per iteration (ms): " + "9" * 400 + " | lm loss: 1e999 |",
        "iteration " + "9" * 500 + "/1 | elapsed time per iteration (ms): 1.0 |",
        "[Rank 1] (after 1 iterations) memory (MB) | allocated: nan | max allocated: ",
        "consumed samples: | | | iteration 1/ | iteration 2/3 |",
        "iteration 1/2 | elapsed time per iteration (ms): -- | consumed samples: x |",
        "---------- arguments ----------\n" + "  a .... [\n" * 50,
        "Step Time : s GPU utilization: MODEL_TFLOP/s/GPU",
    ],
)
def test_a_broken_line_stops_no_reading(text: str) -> None:
    (reading,) = scan([text.encode() + b"\n", line(9).encode()], [Megatron])
    assert not any(DEFECT in remark.text for remark in reading.remarks)
    assert reading.steps.get(9, "step_seconds") == 0.5


def test_the_first_form_has_no_colons_and_no_closing_cells() -> None:
    text = (
        " iteration      100/   20000 | elapsed time per iteration (ms): 480.0 | learning rate 1.010E-06"
        " | lm loss 9.500000E+00 | nsp loss 6.400000E-01 |\n"
        "after 100 iterations memory (MB) | allocated: 1.0 | max allocated: 2.0 | cached: 3.0 | max cached: 4.0\n"
    )
    found = read(text)
    assert (found.steps.get(100, "loss"), found.steps.get(100, "step_seconds")) == (9.5, 0.48)
    assert [row.peak_bytes for row in found.memory] == [2 << 20]


def test_tokens_a_second_alone_do_not_make_a_log_deepspeeds() -> None:
    found = read(line(7).replace(" lm loss", " tokens per gpu per second (tgs): 812.500 | lm loss"))
    assert found.source == "megatron"
    assert found.steps.get(7, "tokens_per_second_per_chip") == 812.5
