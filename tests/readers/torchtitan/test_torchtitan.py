"""torchtitan's step lines in their versions, several ranks, and what the program says around them."""

from __future__ import annotations

import math

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.torchtitan.log import Torchtitan

PREFIX = "[titan] 2026-01-05 10:11:12,345 - root - INFO - "
MESH = PREFIX + "Building device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=4, cp=1, tp=2, ep=1\n"
TRAINER = (
    PREFIX + "Trainer is initialized with local batch size 2, global batch size 16, gradient accumulation steps 1, "
    "sequence length 1000, total steps 100 (warmup 5)\n"
)


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [Torchtitan])
    return found


def step(
    number: int,
    *,
    tps: str = "2,000",
    memory: str = "40.00",
    rank: int | None = 0,
    loss: str = "7.12345",
    mfu: str = "31.50%",
) -> str:
    prefix = "" if rank is None else f"[rank{rank}]:"
    cells = f"step: {number:2}  loss:  {loss}  grad_norm:  1.2500  memory: {memory}GiB(50.00%)"
    return f"{prefix}{PREFIX}{cells}  tps: {tps}  tflops: 311.53  mfu: {mfu}\n"


def test_a_step_line_gives_rates_a_chip_and_a_fraction() -> None:
    steps = read(step(10, tps="12,345")).steps
    assert steps.get(10, "tokens_per_second_per_chip") == 12345
    assert steps.get(10, "tflops_per_second_per_chip") == 311.53
    assert steps.get(10, "mfu") == pytest.approx(0.315)
    assert (steps.get(10, "loss"), steps.get(10, "grad_norm")) == (7.12345, 1.25)


def test_words_a_second_of_2024_are_tokens_a_second() -> None:
    found = read(
        "2024-05-01 01:02:03 - root - INFO - step: 20  loss:  5.4321  memory: 20.50GiB(25.9%)  wps: 1,234  mfu: 8.91%\n"
    )
    assert found.steps.get(20, "tokens_per_second_per_chip") == 1234
    assert found.memory[0].peak_reserved_bytes == round(20.5 * 2**30)


@pytest.mark.parametrize(
    "line",
    [
        "step:  3  loss: 8.0  memory:  1.21GiB(0.86%)  tps: 5,756  tflops: 0.41  mfu: N/A",
        "[2026-02-28 14:29:23,662][I][components/metrics:515:log] step:  3  loss: 8.0  tps: 5,756  mfu: N/A",
        "\x1b[31mstep:  3  \x1b[32mloss: 8.0  \x1b[38;2;54;234;195mmemory:  1.21GiB(0.86%)  \x1b[34mtps: 5,756\x1b[39m",
        "[31mstep:  3  [32mloss: 8.0  [38;2;54;234;195mmemory:  1.21GiB(0.86%)  [34mtps: 5,756  mfu: N/A[39m",
        "Step:  3  Loss: 8.0  Memory:  1.21GiB(0.86%)  WPS: 5,756  MFU: N/A",
        "step: 3 global_avg_loss: 8.0 memory: 1.21GiB(0.86%) tps: 5,756```",
        "[I][train] step=3 global_avg_loss=8.0 throughput(tps)=5756",
    ],
)
def test_every_way_to_print_a_step_reads_alike(line: str) -> None:
    steps = read(line + "\n").steps
    assert (steps.numbers(), steps.get(3, "loss"), steps.get(3, "tokens_per_second_per_chip")) == ([3], 8.0, 5756)
    assert steps.get(3, "mfu") is None


def test_a_step_time_follows_where_batch_length_and_mesh_are_stated() -> None:
    found = read(MESH + TRAINER + step(5, tps="500"))
    assert found.steps.get(5, "step_seconds") == pytest.approx(16 * 1000 / 16 / 500)


def test_without_batch_no_step_time_is_made_up() -> None:
    assert read(MESH + step(5)).steps.get(5, "step_seconds") is None


def test_the_mesh_gives_degrees_and_chips() -> None:
    stated = read(MESH + TRAINER).stated
    assert {path: stated[path].value for path in ("parallelism.tensor", "parallelism.data", "hardware.chips")} == {
        "parallelism.tensor": 2,
        "parallelism.data": 8,
        "hardware.chips": 16,
    }


def test_the_older_mesh_lists_only_the_axes_above_one() -> None:
    stated = read("2024-11-01 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [8, 4]\n").stated
    assert (stated["hardware.chips"].value, stated["parallelism.tensor"].value) == (32, 4)
    assert stated["parallelism.pipeline"].value == 1


def test_ranks_interleaved_are_one_step_at_the_slowest_rate() -> None:
    found = read(step(1, rank=0, tps="900") + step(1, rank=1, tps="800") + step(1, rank=2, tps="850"))
    assert len(found.steps) == 1
    assert found.steps.get(1, "tokens_per_second_per_chip") == 800


def test_each_ranks_largest_pool_stands_with_the_capacity() -> None:
    capacity = PREFIX + "CUDA capacity: NVIDIA H200 with 139.81GiB memory\n"
    found = read(
        capacity + step(1, rank=3, memory="50.00") + step(2, rank=3, memory="60.50") + step(3, rank=3, memory="20.00")
    )
    (row,) = found.memory
    assert (row.chip, row.peak_reserved_bytes, row.step) == (3, round(60.5 * 2**30), 2)
    assert row.bytes_limit == round(139.81 * 2**30)


def test_two_records_glued_into_one_line_are_two_steps() -> None:
    found = read(step(1, rank=0).strip() + step(2, rank=1, tps="77"))
    assert found.steps.numbers() == [1, 2]
    assert found.steps.get(2, "tokens_per_second_per_chip") == 77
    assert [row.chip for row in found.memory] == [0, 1]


def test_a_record_that_the_terminal_wrapped_is_whole() -> None:
    head, _, tail = step(4).partition("  tps: ")
    found = read(f"{head}\n    tps: {tail}")
    assert found.steps.get(4, "tokens_per_second_per_chip") == 2000


def test_a_run_that_starts_again_replaces_its_steps() -> None:
    found = read(step(1) + step(2, tps="100") + step(3) + step(2, tps="300") + step(3))
    assert found.steps.restarts == 1
    assert (len(found.steps), found.steps.get(2, "tokens_per_second_per_chip")) == (3, 300)


def test_validation_is_no_training_step() -> None:
    found = read(step(10) + PREFIX + "validate step: 11  loss:  6.0000  memory: 30.00GiB(40.00%)  tps: 9,999\n")
    assert found.steps.numbers() == [10]


def test_the_first_step_and_a_profiled_one_are_not_steady() -> None:
    log = step(1) + step(2) + PREFIX + "Dumping profiler traces at step 2\n" + step(3) + step(4)
    assert read(log).not_steady == {1: "warmup", 2: "profile", 3: "profile"}


def test_an_unknown_chip_makes_the_printed_mfu_a_contradiction() -> None:
    found = read(PREFIX + "Peak flops undefined for: NVIDIA L40S, fallback to A100\n" + step(1))
    assert [remark.kind for remark in found.remarks] == ["contradiction"]


def test_a_nan_loss_is_divergence_and_stays_a_nan() -> None:
    found = read(step(1) + step(2, loss="    nan"))
    assert found.diverged is True
    assert math.isnan(found.steps.get(2, "loss") or 0.0)


def test_the_printed_configuration_is_read_through_the_ranks_prefix() -> None:
    lines = [
        PREFIX + "Running with configs: {",
        '  "model": {"name": "llama3", "flavor": "8B", "converters": ["float8"]},',
        '  "training": {"local_batch_size": 3, "global_batch_size": -1, "seq_len": 4096,',
        '    "mixed_precision_param": "bfloat16"},',
        '  "parallelism": {"data_parallel_shard_degree": -1, "context_parallel_degree": 2},',
        '  "activation_checkpoint": {"mode": "selective", "selective_ac_option": "op"},',
        '  "compile": {"enable": true, "backend": "inductor"}',
        "}",
    ]
    noise = "[rank1]:something else\n"
    stated = read(noise.join(f"[rank0]:{line}\n" for line in lines)).stated
    values = {path: item.value for path, item in stated.items()}
    assert values["batch.micro_batch"] == 3
    assert values["parallelism.context"] == 2
    assert values["numerics.recompute"] == "selective: op"
    assert values["compile.posture"] == "regional"
    assert values["numerics.compute_dtype"] == "fp8"
    assert "batch.global_batch" not in values
    assert "parallelism.shard" not in values


def test_arguments_as_a_python_dictionary_are_read_too() -> None:
    line = PREFIX + "Running with args: {'training': {'batch_size': 8, 'seq_len': 2048, 'compile': False}, 'x': None}\n"
    stated = read(line).stated
    assert stated["batch.micro_batch"].value == 8
    assert stated["compile.posture"].value == "eager"


def test_what_the_program_prints_stands_before_its_command_line() -> None:
    command = "+ torchrun train.py --training.local_batch_size 4 --training.seq_len=1000 --training.steps 10\n"
    found = read(command + TRAINER + step(1))
    assert found.stated["batch.micro_batch"].value == 2
    assert not found.remarks


def test_tokens_a_step_of_the_newest_form_give_a_step_time() -> None:
    trainer = PREFIX + (
        "Trainer is initialized with 4096 tokens per DP rank, 65536 tokens per train step, gradient accumulation "
        "steps 2, maximum context length 2048, total steps 10 (warmup 2)\n"
    )
    found = read(MESH + trainer + step(2, tps="4,096"))
    assert found.steps.get(2, "step_seconds") == 1.0
    assert found.stated["batch.accumulation"].value == 2


def test_other_programs_that_print_memory_or_rates_are_not_read() -> None:
    assert scan([b"peak 12.00GiB(50%)\nbatch_size = 4\nModel foo: 1,000 total parameters\n"], [Torchtitan]) == []


def test_in_a_log_of_megatron_only_the_memory_of_such_lines_counts() -> None:
    megatron = (
        " iteration   16/  100 | consumed samples: 64 | elapsed time per iteration (ms): 656.0 | lm loss: 3.0 |\n"
    )
    found = read(step(16, rank=1) + megatron + step(17, rank=1))
    assert (len(found.steps), found.diverged) == (0, None)
    assert [row.chip for row in found.memory] == [1]


def test_a_switch_without_a_value_takes_no_other_option_for_one() -> None:
    command = "torchrun train.py --compile.enable --training.global_batch_size=48 --training.seq_len 512\n"
    stated = read(command + step(1)).stated
    assert stated["batch.global_batch"].value == 48
    assert stated["batch.sequence_length"].value == 512


def test_a_record_broken_before_its_memory_is_whole() -> None:
    found = read(
        step(10).replace("  memory:", "\n  memory:") + step(20, tps="3,000").replace("  memory:", "\n  memory:")
    )
    assert found.steps.numbers() == [10, 20]
    assert found.steps.get(10, "loss") == 7.12345
    assert found.steps.get(20, "tokens_per_second_per_chip") == 3000
    assert [row.peak_reserved_bytes for row in found.memory] == [40 << 30]


def test_a_record_may_break_between_a_name_and_its_figure() -> None:
    text = step(10)
    first, second = text.index(" 40.00GiB"), text.index(" 31.50%")
    found = read(text[:first] + "\n" + text[first:second] + "\n" + text[second:])
    assert found.steps.get(10, "mfu") == pytest.approx(0.315)
    assert found.steps.get(10, "tokens_per_second_per_chip") == 2000
    assert [row.peak_reserved_bytes for row in found.memory] == [40 << 30]


def test_a_validation_glued_behind_a_record_gives_no_figure() -> None:
    validation = f"[rank0]:{PREFIX}validate step: 10  loss:  6.0000  memory: 20.00GiB(25.00%)  tps: 9,000\n"
    assert read(step(10).rstrip("\n") + validation).steps.get(10, "tokens_per_second_per_chip") == 2000


def test_a_number_that_a_terminal_broke_is_one() -> None:
    assert read(step(10).replace("tps: 2,000", "tps: 2,\n000")).steps.get(10, "tokens_per_second_per_chip") == 2000


@pytest.mark.parametrize("share", ["640/644 = 99.3789%", "640/644", "640 / 644"])
def test_a_step_with_the_last_one_beside_it_is_a_step(share: str) -> None:
    found = read(f"{PREFIX}step: {share}  loss:  6.2116  memory: 87.04GiB(93.48%)  tps: 52,142  mfu: 3.09%\n")
    assert (found.steps.numbers(), found.steps.column("tokens_per_second_per_chip")) == ([640], [52142])


@pytest.mark.parametrize("mark", ["", "> ", "# ", ">"])
def test_arguments_folded_over_several_lines_are_read(mark: str) -> None:
    arguments = "[rank0]:2025-03-12 10:11:12,131 - root - INFO - Running with args: {'metrics': {'log_freq': 10},\n"
    rest = " 'training': {'batch_size': 2, 'compile': False,\n 'seq_len': 1000}}\n"
    found = read("".join(mark + line for line in (arguments + rest + step(10)).splitlines(keepends=True)))
    assert found.stated["batch.sequence_length"].value == 1000
    assert found.steps.numbers() == [10]


def test_arguments_that_were_cut_end_at_a_step() -> None:
    text = PREFIX + "Running with args: {'training': {'seq_len': 1000,\n"
    assert read(text + step(10) + step(20)).steps.numbers() == [10, 20]


def test_a_line_glued_before_a_record_is_read_too() -> None:
    stated = read(TRAINER.rstrip("\n") + step(10)).stated
    assert stated["batch.sequence_length"].value == 1000
    assert read(step(10) + TRAINER.rstrip("\n") + step(20)).steps.numbers() == [10, 20]


@pytest.mark.parametrize("broken", ["  loss:\n", "  lo\nss:  ", "\n  loss:  "])
def test_a_record_that_was_broken_before_its_first_figure_is_one(broken: str) -> None:
    text = step(10).replace("  loss:  ", broken).replace("  mfu:", "\nmfu:") + step(20)
    found = read(text)
    assert found.steps.numbers() == [10, 20]
    assert found.steps.column("loss") == [7.12345] * 2
    assert found.steps.column("mfu") == pytest.approx([0.315] * 2)


@pytest.mark.parametrize("width", [72, 80, 88, 100, 120])
def test_a_record_that_a_terminal_broke_within_a_name_is_whole(width: int) -> None:
    lines = [step(number).rstrip("\n") for number in (10, 20)]
    broken = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    found = read("\n".join(broken) + "\n").steps
    assert found.numbers() == [10, 20]
    assert (found.column("grad_norm"), found.column("tokens_per_second_per_chip")) == ([1.25] * 2, [2000.0] * 2)


def test_a_pool_of_nothing_is_no_memory() -> None:
    found = read(step(1, memory="0.00") + step(2, memory="0.00"))
    assert found.memory == []
    assert found.memory_unavailable is not None
    mixed = read(step(1, memory="0.00") + step(2))
    assert [row.peak_reserved_bytes for row in mixed.memory] == [40 * 2**30]
    assert mixed.memory_unavailable is None


def test_a_rank_without_the_last_stage_prints_no_loss() -> None:
    found = read(step(1, loss="-1.0000") + step(2, loss="-1.0000"))
    assert (found.steps.column("loss"), found.diverged) == ([None, None], None)
    assert found.steps.get(2, "mfu") == pytest.approx(0.315)
    assert any("last stage" in remark.text for remark in found.remarks)


def test_of_two_ranks_the_one_that_has_a_loss_gives_it() -> None:
    found = read(step(1, rank=7) + step(1, loss="-1.0000"))
    assert found.steps.get(1, "loss") == 7.12345
