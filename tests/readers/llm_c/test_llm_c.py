"""llm.c's lines: what is a number of the run, and what only looks like one."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.llm_c.log import LlmC


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [LlmC])
    return found


def test_a_step_gives_time_rate_and_share() -> None:
    steps = read(
        "step   20/99 | loss 6.54321 (+0.1z)| norm 1.5 (-0.3z)| lr 6e-04 | 250.50 ms | 45.6% bf16 MFU | 2093000 tok/s\n"
    ).steps
    assert steps.get(20, "step_seconds") == 0.2505
    assert steps.get(20, "tokens_per_second") == 2_093_000
    assert steps.get(20, "mfu") == pytest.approx(0.456)
    assert (steps.get(20, "loss"), steps.get(20, "grad_norm")) == (6.54321, 1.5)


def test_an_average_over_steps_that_are_not_shown_is_none_of_those_that_are() -> None:
    step = "step    {0}/{1} | loss 9.0 (+nanz)| norm 9.0 (+nanz)| lr 1e-06 | 250.0 ms | -100.0% bf16 MFU | 1000 tok/s\n"
    average = "total average iteration time: 240.0 ms\n"
    leaf = "measurement.stated.step_seconds"
    assert read(step.format(1, 2) + step.format(2, 2) + average).stated[leaf].value == pytest.approx(0.24)
    assert leaf not in read(step.format(1, 3) + step.format(2, 3) + average).stated


@pytest.mark.parametrize(("first", "starts"), [("2500.0", [1, 11]), ("251.0", [1])])
def test_a_slow_first_step_behind_a_restart_is_a_start(first: str, starts: list[int]) -> None:
    step = "step    {0}/90 | loss 9.0 (+nanz)| norm 9.0 (+nanz)| lr 1e-06 | {1} ms | -100.0% bf16 MFU | 1000 tok/s\n"
    times = {11: first}
    again = "".join(step.format(number, times.get(number, "250.0")) for number in range(11, 30))
    found = read("".join(step.format(number, "250.0") for number in range(1, 21)) + again)
    assert (sorted(found.not_steady), found.steps.restarts) == (starts, 1)


def test_a_chip_without_a_peak_has_no_mfu() -> None:
    found = read(
        "step    1/9 | loss 11.0 (+nanz)| norm 9.0 (+nanz)| lr 1e-06 | 99.0 ms | -100.0% bf16 MFU | 1000 tok/s\n"
    )
    assert found.steps.get(1, "mfu") is None
    assert found.diverged is False
    assert found.not_steady == {1: "warmup"}


@pytest.mark.parametrize(
    "line",
    [
        "step    3/74: train loss 4.367631 (80.500000 ms, 6350 tok/s)",
        "step    3/10 | train loss 4.367631 | norm 2.5 | lr 1.00e-04 | (80.50 ms | 6350 tok/s)",
        "step    3/74 | train loss 4.367631 | norm 2.5 | lr 1e-4 | 80.50 ms | 30.0% A100 fp16/bf16 MFU | 6350 tok/s",
    ],
)
def test_older_forms_and_the_pytorch_twin_read_alike(line: str) -> None:
    steps = read(line + "\n").steps
    assert steps.get(3, "loss") == 4.367631
    assert steps.get(3, "step_seconds") == pytest.approx(0.0805)
    assert steps.get(3, "tokens_per_second") == 6350


def test_the_first_form_of_a_step_ends_with_its_time() -> None:
    settings = "[GPT-2]\nmax_seq_len: 1024\nnum_layers: 12\nchannels: 768\nbatch size: 4\nsequence length: 512\n"
    found = read(
        settings
        + "val loss 4.531809\nstep 9: train loss 4.25 (took 101.500000 ms)\nval loss 4.5\nnum_layers: 13\n"
        + "step 10: train loss 4.125 (took 101.250000 ms)\n"
    )
    assert found.steps.numbers() == [9, 10]
    assert found.steps.get(10, "step_seconds") == 0.10125
    assert {name: leaf.value for name, leaf in found.stated.items()} == {
        "model.depth": 12,
        "model.hidden": 768,
        "batch.micro_batch": 4,
        "batch.sequence_length": 512,
        "measurement.loss.validation": 4.5,
    }


def test_main_log_gives_losses_and_the_console_stands_before_it() -> None:
    logged = "s:0 tel:11.0\ns:0 trl:10.9 lr:0.0006 norm:1.5\ns:1 trl:10.8 lr:0.0006 norm:1.4\n"
    found = read(logged)
    assert found.steps.get(1, "loss") == 10.8
    assert found.stated["measurement.loss.validation"].value == 11.0
    console = "step    1/9 | loss 10.9 (+nanz)| norm 1.5 (+nanz)| lr 6e-04 | 99.0 ms | 40.0% bf16 MFU | 1000 tok/s\n"
    assert read(logged + console).steps.numbers() == [1]


def test_device_memory_is_what_was_allocated_of_what_there_is() -> None:
    found = read("device memory usage: 100 MiB / 2000 MiB\n")
    (row,) = found.memory
    assert (row.bytes_used, row.bytes_limit) == (100 << 20, 2000 << 20)


def test_the_head_states_batch_and_model() -> None:
    head = (
        "| channels C            | 768                                                |\n"
        "| device                | NVIDIA H100 80GB HBM3                              |\n"
        "batch_size B=64 * seq_len T=1024 * num_processes=8 and total_batch_size=524288\n"
    )
    values = {path: item.value for path, item in read(head).stated.items()}
    assert values["model.hidden"] == 768
    assert values["hardware.accelerator"] == "NVIDIA H100 80GB HBM3"
    assert values["batch.global_batch"] == 512
    assert values["hardware.chips"] == 8


def test_tokens_a_second_of_other_programs_are_not_read() -> None:
    assert scan([b"generated 100 tokens at 20 tok/s\nval loss 3.0\n"], [LlmC]) == []


def test_the_table_may_stand_behind_a_prefix() -> None:
    row = "trainer-0  | | num_layers L          | 24                                                 |\n"
    record = "step    1/9 | loss 9.5 (+nanz)| norm 1.5 (+nanz)| lr 1e-06 | 20.50 ms | 30.1% bf16 MFU | 1000 tok/s\n"
    assert read(row + record).stated["model.depth"].value == 24


def test_records_glued_on_one_line_are_two() -> None:
    def record(step: int, loss: float) -> str:
        return f"step {step:4}/9 | loss {loss} (+nanz)| norm 1.5 (+nanz)| lr 1e-06 | 20.5 ms | 30% bf16 MFU | 10 tok/s"

    steps = read(record(1, 9.5) + record(2, 9.25) + "\n").steps
    assert [steps.get(at, "loss") for at in (1, 2)] == [9.5, 9.25]
    logged = read("s:1 trl:9.5 lr:1e-06 norm:1.50s:2 trl:9.25 lr:1e-06 norm:1.25\n").steps
    assert [logged.get(at, "grad_norm") for at in (1, 2)] == [1.5, 1.25]


def test_a_record_broken_in_two_is_one() -> None:
    text = "step    3/9 | loss 9.5 (+nanz)| norm 1.5 (+nanz)| lr 1e-06 | 20.50 ms | 30.0% bf16 MFU\n | 1000 tok/s\n"
    steps = read(text).steps
    assert steps.numbers() == [3]
    assert (steps.get(3, "mfu"), steps.get(3, "tokens_per_second")) == (0.3, 1000)


def test_a_number_that_a_terminal_broke_is_one() -> None:
    text = "step    3/9 | loss 9.5 (+nanz)| norm 1.5 (+nanz)| lr 1e-06 | 20.50 ms | 30.0% bf16 MFU | 10\n250 tok/s\n"
    assert read(text).steps.get(3, "tokens_per_second") == 10_250


RECORD = "step   20/99 | loss 6.54321 (+0.1z)| norm 1.5 (-0.3z)| lr 6e-04 | 250.50 ms | 45.6% bf16 MFU | 2093000 to"


@pytest.mark.parametrize("rest", ["", "\nval loss 6.5\n", f"\n{RECORD}k/s\n".replace("20/", "21/")])
def test_a_record_cut_before_its_end_keeps_what_was_printed_whole(rest: str) -> None:
    steps = read(RECORD + rest).steps
    assert (steps.get(20, "step_seconds"), steps.get(20, "loss")) == (0.2505, 6.54321)
    assert steps.get(20, "tokens_per_second") is None


def test_the_beginning_of_another_programs_record_is_none() -> None:
    assert not scan([b"step 20 | loss 6.54321 | 250.50 ms\nstep 21 | loss 6.5 | 250.50 ms\n"], [LlmC])


def test_the_table_of_a_log_that_ends_before_its_first_step_is_read() -> None:
    found = read("| micro batch size B | 4        |\n| sequence length T  | 1024     |\n| device             | N7 |\n")
    assert {path: item.value for path, item in found.stated.items()} == {
        "batch.micro_batch": 4,
        "batch.sequence_length": 1024,
        "hardware.accelerator": "N7",
    }
