"""NeMo's printed steps and its progress bar: steps over epochs, sticky figures, bytes, and the layout around them."""

from __future__ import annotations

import math

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import DEFECT, scan
from receipts.readers.megatron.nemo import Nemo


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [Nemo])
    return found


def line(step: int, seconds: str = "2.5", *, epoch: int = 0, iteration: int | None = None, rest: str = "") -> str:
    at = step if iteration is None else iteration
    return (
        f"Training epoch {epoch}, iteration {at}/99 | lr: 1e-05 | global_batch_size: 64 | global_step: {step} |"
        f" reduced_train_loss: 6.859e+00 | train_step_timing in s: {seconds} |"
        f" consumed_samples: {step * 64 + 64}{rest}\n"
    )


@pytest.mark.parametrize("prefix", ["", "0: ", "ining-demo/0 [default0]:", "i.finetune/0 "])
def test_a_printed_step_behind_any_prefix(prefix: str) -> None:
    found = read("".join(prefix + line(step, f"{2 + step / 8}") for step in range(4)))
    assert found.steps.numbers() == [0, 1, 2, 3]
    assert found.steps.column("step_seconds") == [2.0, 2.125, 2.25, 2.375]
    assert found.steps.get(3, "loss") == 6.859
    assert found.stated["batch.global_batch"].value == 64


def test_the_global_step_counts_over_epochs() -> None:
    found = read(line(18) + line(19, epoch=1, iteration=0) + line(20, epoch=1, iteration=1))
    assert (found.steps.numbers(), found.steps.restarts) == ([18, 19, 20], 0)


def test_without_a_global_step_the_samples_count() -> None:
    text = line(19, epoch=1, iteration=0).replace(" | global_step: 19", "")
    assert read(text).steps.numbers() == [19]


def test_without_either_the_iterations_go_on_in_the_next_epoch() -> None:
    text = "".join(
        f"Training epoch {epoch}, iteration {at}/2 | reduced_train_loss: 1.5 | train_step_timing in s: 0.5\n"
        for epoch in (0, 1)
        for at in (0, 1, 2)
    )
    assert read(text).steps.numbers() == [0, 1, 2, 3, 4, 5]


def test_a_later_validation_changes_no_step() -> None:
    text = line(9) + "Validation: iteration 1/4\nValidation: iteration 2/4\n" + line(10, rest=" | val_loss: 0.7394")
    found = read(text)
    assert found.steps.numbers() == [9, 10]
    assert found.steps.get(10, "loss") == 6.859


def test_steps_that_go_back_are_a_restart() -> None:
    found = read("".join(line(step) for step in (5, 6, 7, 5, 6, 7, 8)))
    assert (found.steps.restarts, len(found.steps)) == (1, 4)
    assert found.not_steady == {5: "warmup"}


def test_a_rate_by_chip_and_its_floating_point_operations() -> None:
    text = line(3, rest=" | TFLOPS_per_GPU: 512.5 | tokens_per_sec_per_gpu: 1.234e+04")
    steps = read(text).steps
    assert (steps.get(3, "tflops_per_second_per_chip"), steps.get(3, "tokens_per_second_per_chip")) == (512.5, 12340.0)


def test_memory_is_in_bytes_and_of_no_named_chip() -> None:
    text = line(3, rest=" | peak_memory_usage: 70000000000 | memory_allocated: 40000000000")
    text += line(4, rest=" | peak_memory_usage: 71000000000 | memory_allocated: 40000000001")
    *_, row = read(text).memory
    assert (row.chip, row.step, row.peak_bytes, row.bytes_used) == (None, 4, 71_000_000_000, 40_000_000_001)


def test_a_loss_that_is_nan_is_divergence() -> None:
    found = read(line(3) + line(4).replace("6.859e+00", "nan"))
    loss = found.steps.get(4, "loss")
    assert found.diverged is True
    assert loss is not None
    assert math.isnan(loss)


def test_start_and_slow_second_step_are_not_steady() -> None:
    found = read(line(0, "40.5") + line(1, "9.5") + "".join(line(step, "2.5") for step in range(2, 9)))
    assert found.not_steady == {0: "warmup", 1: "warmup"}


def test_a_progress_bar_overwrites_itself() -> None:
    bars = "\r".join(
        f"Epoch 0: :  {done}%|█▌        | {done}/50 [00:10<00:30, reduced_train_loss=2.125, global_step={done - 1}.00,"
        f" consumed_samples={done * 8}.0, train_step_timing in s={done}.250]"
        for done in (3, 4, 4)
    )
    steps = read(bars + "\n").steps
    assert (steps.numbers(), steps.column("step_seconds")) == ([2, 3], [3.25, 4.25])


def test_a_step_printed_in_three_digits_takes_the_bars_count() -> None:
    text = (
        "Epoch 0: :  60%|██████    | 6024/10000 [4:26:54<2:56:09, v_num=0, reduced_train_loss=0.0252,"
        " global_step=6.02e+3, consumed_samples=9.64e+4, train_step_timing in s=2.590, val_loss=0.0917]\n"
    )
    assert read(text).steps.numbers() == [6023]


def test_the_delta_callback_adds_times() -> None:
    assert read("Step 7: train_step_timing in s=1.25\n").steps.get(7, "step_seconds") == 1.25


def test_torchrun_states_hosts_and_chips() -> None:
    text = "  min_nodes        : 2\n  max_nodes        : 2\n  nproc_per_node   : 8\n" + line(3)
    stated = read(text).stated
    assert (stated["hardware.hosts"].value, stated["hardware.chips"].value) == (2, 16)


def test_an_elastic_number_of_hosts_is_unknown() -> None:
    text = "  min_nodes        : 1\n  max_nodes        : 4\n  nproc_per_node   : 8\n" + line(3)
    assert "hardware.hosts" not in read(text).stated


def test_groups_of_ranks_show_the_degrees() -> None:
    text = (
        "[NeMo I 2025-01-01 00:00:00 megatron_init:412] Rank 0 has data parallel group : [0, 4]\n"
        "[NeMo I 2025-01-01 00:00:00 megatron_init:418] Rank 0 has combined group of data parallel and context"
        " parallel : [0, 4]\n"
        "[NeMo I 2025-01-01 00:00:00 megatron_init:451] Rank 0 has tensor model parallel group: [0, 1]\n"
        "[NeMo I 2025-01-01 00:00:00 megatron_init:471] Rank 0 has pipeline model parallel group: [0, 2]\n"
        "All distributed processes registered. Starting with 8 processes\n"
    )
    stated = read(text + line(3)).stated
    names = ("parallelism.data", "parallelism.tensor", "parallelism.pipeline", "hardware.chips")
    assert [stated[name].value for name in names] == [2, 2, 2, 8]


def test_lines_of_a_recipe_state_its_shape() -> None:
    found = read(f"{line(3)}\n  micro_batch_size: 2\n  seq_length: 8192\n  num_layers: many more\n")
    assert {path: found.stated[path].value for path in ("batch.micro_batch", "batch.sequence_length")} == {
        "batch.micro_batch": 2,
        "batch.sequence_length": 8192,
    }
    assert "model.depth" not in found.stated


def test_the_recipes_formula_states_the_sequence_length_of_its_step() -> None:
    text = (
        line(49, "12.5")
        + "(sequence length) * (global batch size) / (training_step_timing) = (throughput in tokens per second)\n"
        + "```\n\nE.g. 4096 * 64 / 12.5 = 20972\n"
    )
    found = read(text)
    assert (found.stated["batch.sequence_length"].value, found.steps.get(49, "tokens_per_second")) == (4096, 20972.0)


def test_a_formula_about_another_run_states_nothing() -> None:
    text = line(49, "12.5") + "(sequence length) * (global batch size) / (t)\nE.g. 4096 * 128 / 11.5 = 45591\n"
    assert "batch.sequence_length" not in read(text).stated


def test_the_experiment_configuration_of_nemo_1() -> None:
    dump = [
        "    ************** Experiment configuration ***********",
        "",
        "name: megatron_gpt",
        "trainer:",
        "  devices: 8",
        "  num_nodes: 4",
        "  precision: bf16-mixed",
        "model:",
        "  tensor_model_parallel_size: 4",
        "  sequence_parallel: true",
        "  encoder_seq_length: 4096",
        "  activations_checkpoint_granularity: selective",
        "  transformer_engine: true",
        "  fp8: false",
        "  optim:",
        "    name: distributed_fused_adam",
        "    lr: 0.0002",
        "  data:",
        "    data_prefix:",
        "    - 1.0",
        "    - /data/text_document",
    ]
    text = "".join(f"0: {row}\n" for row in dump) + "0: GPU available: True (cuda), used: True\n0: " + line(3)
    values = {path: leaf.value for path, leaf in read(text).stated.items()}
    assert (values["hardware.chips"], values["hardware.hosts"], values["parallelism.tensor"]) == (32, 4, 4)
    assert (values["batch.sequence_length"], values["numerics.compute_dtype"]) == (4096, "bf16")
    assert (values["numerics.recompute"], values["numerics.learning_rate"]) == ("selective", 0.0002)
    assert values["numerics.optimizer"] == "distributed_fused_adam"


@pytest.mark.parametrize(
    "text",
    [
        "Training epoch 0, iteration 1/2 | global_step: 1e400 | train_step_timing in s: " + "9" * 400,
        "Training epoch 0, iteration 1/2 |||| : | train_step_timing in s:",
        "Epoch 0: : " + "[" * 1000 + "train_step_timing in s=1",
        "Training epoch " + "1, iteration " * 2000,
        "reduced_train_loss=" * 2000,
    ],
)
def test_a_broken_line_stops_no_reading(text: str) -> None:
    (reading,) = scan([text.encode() + b"\n", line(9).encode()], [Nemo])
    assert not any(DEFECT in remark.text for remark in reading.remarks)
    assert 9 in reading.steps.numbers()


def test_memory_of_the_performance_scripts_is_the_largest_of_each_pool() -> None:
    rests = [f" | max_memory_reserved: {9000 + n % 2} | max_memory_allocated: {8000 - n}" for n in range(3)]
    found = read("".join(line(step, rest=rest) for step, rest in enumerate(rests)))
    assert [(row.phase, row.peak_bytes, row.peak_reserved_bytes) for row in found.memory] == [("steady", 8000, 9001)]


@pytest.mark.parametrize("mark", ["", "# ", "> "])
def test_a_record_that_a_page_wrapped_before_its_bars_is_one(mark: str) -> None:
    whole = line(5, "3.25", rest=" | TFLOPS_per_GPU: 1.5e+03")
    head, first, second = whole[: whole.index("| global_step")], whole.index("| global_step"), whole.index("| consumed")
    found = read(f"{mark}{head}\n{mark}{whole[first:second]}\n{mark}{whole[second:]}\nafter it\n{line(6)}")
    assert found.steps.numbers() == [5, 6]
    assert (found.steps.get(5, "step_seconds"), found.steps.get(5, "loss")) == (3.25, 6.859)
    assert found.steps.get(5, "tflops_per_second_per_chip") == 1500.0


def test_a_record_cut_before_its_loss_does_not_take_the_next_one() -> None:
    cut = line(5)
    found = read(cut[: cut.index("| reduced")] + "\n" + line(6, "4.0"))
    assert (found.steps.get(5, "step_seconds"), found.steps.get(6, "step_seconds")) == (None, 4.0)


def test_a_record_whose_last_cell_is_a_line_of_its_own_is_one() -> None:
    whole = line(5, rest=" | TFLOPS_per_GPU: 1.5e+03").rstrip("\n")
    at = whole.rindex("| ") + 2
    found = read(f"{whole[:at]}\n{whole[at:]}\n{line(6)}")
    assert found.steps.column("tflops_per_second_per_chip") == [1500.0, None]


@pytest.mark.parametrize("width", [60, 80, 97, 120])
def test_a_record_that_a_terminal_broke_within_names_and_figures_is_whole(width: int) -> None:
    whole = line(19, "2.575") + line(20, "2.625")
    pieces = [text[at : at + width] for text in whole.splitlines() for at in range(0, len(text), width)]
    found, wanted = read("\n".join(pieces) + "\n").steps, read(whole).steps
    assert found.numbers() == wanted.numbers()
    assert found.column("step_seconds") == wanted.column("step_seconds")
    assert found.column("loss") == wanted.column("loss")


def test_a_bar_may_spell_a_loss_that_is_no_number_with_a_decimal() -> None:
    found = read("Epoch 0: :   3%|3 | 30/900 [01:42<55:37, reduced_train_loss=nan.0, train_step_timing in s=0.5]\n")
    assert found.diverged
    assert found.steps.column("step_seconds") == [0.5]
