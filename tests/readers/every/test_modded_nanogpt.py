"""modded-nanogpt's cumulative clock: differences of neighbours, resets, dispatch times, validation lines."""

from __future__ import annotations

import hashlib

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.loops.loop import reader
from receipts.readers.modded_nanogpt.log import ModdedNanogpt, PrintedProgram

LOOPS = [reader("pytorch_loop"), reader("llama2_c")]


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [ModdedNanogpt])
    return found


def line(step: int, milliseconds: int, loss: str = "train_loss:5.0000 ") -> str:
    return f"step:{step}/100 {loss}train_time:{milliseconds}ms step_avg:{milliseconds / max(step, 1):.2f}ms\n"


def test_a_steps_time_is_the_difference_to_its_neighbour() -> None:
    steps = read(line(20, 2000) + line(21, 2105) + line(25, 2600)).steps
    assert steps.get(21, "step_seconds") == pytest.approx(0.105)
    assert steps.get(25, "step_seconds") is None
    assert steps.get(20, "step_seconds") is None


def test_a_validation_line_neither_is_a_step_nor_replaces_one() -> None:
    found = read(line(20, 2000) + line(21, 2100) + line(21, 2190, "val_loss:3.2500 "))
    assert found.steps.numbers() == [20, 21]
    assert found.steps.get(21, "loss") == 5.0
    assert found.stated["measurement.loss.validation"].value == 3.25


def test_what_stands_before_a_reset_of_the_clock_is_not_steady() -> None:
    found = read("".join(line(step, 70_000 + 200 * step) for step in range(1, 11)) + line(11, 214) + line(12, 428))
    assert sorted(found.not_steady) == list(range(1, 11))
    assert found.steps.get(11, "step_seconds") is None
    assert found.steps.get(12, "step_seconds") == pytest.approx(0.214)


def test_dispatch_times_behind_a_synchronisation_are_impossible() -> None:
    log = line(0, 0, "val_loss:10.8 ") + line(1, 150) + line(2, 170)
    log += "".join(line(step, 170 + 100 * (step - 2)) for step in range(3, 30))
    assert read(log).not_steady == {1: "warmup", 2: "impossible"}


def test_seconds_and_tokens_of_forks_are_read() -> None:
    log = "step:200/20000 train_loss:3.5 train_time:10.5s step_avg:52.5ms tok_s:12345\n"
    log += "step:201/20000 train_loss:3.5 train_time:10.75s step_avg:52.5ms tok_s:12345\n"
    steps = read(log).steps
    assert steps.get(201, "step_seconds") == pytest.approx(0.25)
    assert steps.get(201, "tokens_per_second") == 12345


def test_the_foot_tells_peak_memory_and_the_head_the_chips() -> None:
    head = (
        "Running PyTorch 2.9.0.dev20250713+cu126 compiled for CUDA 12.6\n"
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:61:00.0 Off |                    0 |\n"
        "|   1  NVIDIA H100 80GB HBM3          On  |   00000000:62:00.0 Off |                    0 |\n"
    )
    found = read(head + line(1, 100) + "peak memory allocated: 300 MiB reserved: 500 MiB\n")
    assert found.stated["hardware.chips"].value == 2
    assert found.stated["wheels.torch"].value == "2.9.0.dev20250713+cu126"
    (row,) = found.memory
    assert (row.peak_bytes, row.peak_reserved_bytes) == (300 << 20, 500 << 20)


def test_the_copy_of_the_source_at_the_head_is_no_step() -> None:
    source = 'print0(f"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{ms:.0f}ms", console=True)\n'
    assert scan([source.encode()], [ModdedNanogpt]) == []


@pytest.mark.parametrize(
    ("text", "step", "seconds", "rate", "share"),
    [
        ("iter 100: loss 3.2100, time 245.50ms, mfu 36.12%", 100, 0.2455, None, 0.3612),
        ("iter 0: loss 3.2100, time 900.00ms, mfu -100.00%", 0, 0.9, None, None),
        (
            "step 00010/21400 (0.05%) | loss: 3.210000 | grad norm: 1.2345 | lrm: 1.00 | dt: 520.10ms | "
            "tok/sec: 1,008,000 | mfu: 47.91 | total time: 0.50m",
            10,
            0.5201,
            1_008_000,
            0.4791,
        ),
        (
            "step    7 | loss: 3.210000 | lr 6.0e-04 | norm: 1.2 | dt: 330.12ms | tok/sec: 1588000.12",
            7,
            0.33012,
            1588000.12,
            None,
        ),
        ("step 7, loss: 3.21, dt: 330.12ms, tok/sec: 158.5", 7, 0.33012, 158.5, None),
        ("7 | loss 3.2100 | lr 5.000000e-05 | 330.12ms | mfu 0.19%", 7, 0.33012, None, 0.0019),
        ("[rank0]: 7 | loss 3.2100 | ppl 2.50 | lr 5.000000e-05 | 330.12ms", 7, 0.33012, None, None),
        ("step 00007/900 (0.8%) | loss: 3.2100 | lrm: 1.00 | dt: 330ms | tok/s: 15,850", 7, 0.33, 15_850, None),
    ],
)
def test_plain_loops_of_the_family_read_alike(
    text: str, step: int, seconds: float, rate: float | None, share: float | None
) -> None:
    (found,) = scan([text.encode()], LOOPS)
    assert found.steps.get(step, "loss") == 3.21
    assert found.steps.get(step, "step_seconds") == pytest.approx(seconds)
    assert found.steps.get(step, "tokens_per_second") == rate
    assert found.steps.get(step, "mfu") == (None if share is None else pytest.approx(share))


def test_lines_with_rates_but_no_step_are_no_loop() -> None:
    assert scan([b"generated at tok/sec: 50.0\nstep 3 done, tok/sec: 1.0\n"], LOOPS) == []
    assert scan([b"| epoch 001 | loss 15.2 | lr 3e-04 | 13ms\n| epoch 002 | loss 9.5 | ppl 12\n"], LOOPS) == []
    console = b"step   20/99 | loss 9.9 (+0.1z)| norm 1.5 (+nanz)| lr 1e-05 | 4233.11 ms | 41.1% bf16 MFU | 12 tok/s\n"
    assert scan([console], LOOPS) == []


def test_a_fork_tells_its_batch_in_tokens() -> None:
    head = "world_size:4 grad_accum_steps:2\ntrain_batch_tokens:65536 train_seq_len:2048 iterations:100\n"
    stated = read(head + line(1, 50) + line(2, 100)).stated
    assert stated["hardware.chips"].value == 4
    assert stated["batch.accumulation"].value == 2
    assert stated["batch.sequence_length"].value == 2048
    assert stated["batch.global_batch"].value == 32


def test_rows_of_nvidia_smi_count_behind_a_prefix() -> None:
    rows = "".join(
        f"> |   {at}  NVIDIA H100 80GB HBM3          On  |   00000000:6{at}:00.0 Off |  0 |\n" for at in range(2)
    )
    assert read(rows + line(1, 100)).stated["hardware.chips"].value == 2


def test_records_glued_on_one_line_keep_their_own_losses() -> None:
    first, second = line(20, 2000, "train_loss:5.0 "), line(21, 2100, "train_loss:4.0 ")
    steps = read(first.rstrip("\n") + second).steps
    assert [steps.get(at, "loss") for at in (20, 21)] == [5.0, 4.0]
    assert steps.get(21, "step_seconds") == pytest.approx(0.1)


def test_a_validation_is_the_clock_of_the_next_step_where_its_own_was_left_out() -> None:
    steps = read(line(125, 11_000, "val_loss:4.6 ") + line(126, 11_100) + line(127, 11_190)).steps
    assert steps.get(126, "step_seconds") == pytest.approx(0.1)


def test_a_peak_of_memory_glued_behind_a_record_is_read() -> None:
    found = read(line(1, 100) + line(2, 200).rstrip("\n") + "peak memory allocated: 30 MiB reserved: 40 MiB\n")
    assert [(row.peak_bytes, row.peak_reserved_bytes) for row in found.memory] == [(30 << 20, 40 << 20)]
    assert found.steps.get(2, "step_seconds") == pytest.approx(0.1)


def test_a_line_said_twice_is_one_step() -> None:
    lines = [line(step, 100 * step) for step in range(1, 30)]
    found = read("".join(each for each in lines for _ in range(2)))
    assert found.steps.column("step_seconds") == [None, *[pytest.approx(0.1)] * 28]
    assert found.not_steady == {1: "warmup"}


def test_the_training_time_is_that_of_the_last_validation() -> None:
    log = read(
        line(20, 2000) + line(20, 2010, "val_loss:3.5000 ") + line(21, 2100) + line(21, 2190, "val_loss:3.2500 ")
    )
    assert log.stated["measurement.goodput.step_seconds"].value == 2.19


def test_a_printed_program_is_known_by_the_digest_of_its_lines() -> None:
    program = "    code = f.read()  # the file itself\nimport torch\n"
    (reading,) = scan([f"import os\n{program}{'=' * 100}\nRunning Python 3.12\n".encode()], [PrintedProgram])
    assert reading.stated["code.imported_digest"].value == hashlib.sha256(program.encode()).hexdigest()


def test_a_program_without_an_end_states_no_digest() -> None:
    readings = scan([b"    code = f.read()\nimport torch\n"], [PrintedProgram])
    assert all("code.imported_digest" not in reading.stated for reading in readings)


def test_a_log_of_validations_alone_gives_means_over_intervals() -> None:
    found = read("".join(line(step, 60_000 + 160 * step, "val_loss:4.5000 ") for step in (100, 200, 250)))
    assert found.means is not None
    assert found.means.steps == [100, 50]
    assert found.means.seconds == pytest.approx([0.16, 0.16])


def test_every_tenth_step_gives_means_and_no_steps_time() -> None:
    found = read(line(10, 9000) + line(20, 10_000) + line(30, 11_500))
    assert found.steps.column("step_seconds") == [None, None, None]
    assert found.means is not None
    assert found.means.seconds == pytest.approx([0.1, 0.15])


def test_where_single_steps_have_times_there_are_no_means() -> None:
    assert read(line(20, 2000) + line(21, 2105) + line(31, 3200)).means is None


def test_a_head_that_names_the_device_gives_chips() -> None:
    found = read("Running on device_name=NVIDIA H200 with world_size=8\n" + line(20, 2000) + line(21, 2100))
    assert found.stated["hardware.chips"].value == 8
    assert found.stated["hardware.accelerator"].value == "NVIDIA H200"


def test_the_first_step_of_a_second_run_begins_at_its_own_clock() -> None:
    run = line(0, 0, "val_loss:10.8 ") + line(1, 150) + line(2, 250)
    assert read(run + run).steps.get(1, "step_seconds") == pytest.approx(0.15)
