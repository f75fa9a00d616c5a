"""Published tables: cells are read right or refused, and rows whose figures disagree are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import InputError, UsageError
from receipts.plugins.exchange.notebook import SHIPPED, ImportedTable, import_file, mapping_path

TABLES = Path(__file__).resolve().parents[4] / "shared/cases/published/tables"
HEAD = "# Speed\n\n## 26.02 NeMo Container\n\n#### Model: Tiny[^1]\n\n"
COLUMNS = (
    "| System | #-GPUs | Precision | GBS | MBS | Sequence Length | Tokens / sec / GPU | Model TFLOP / sec / GPU |\n"
)
RULE = "| --- " * 8 + "|\n"


def page(tmp_path: Path, *rows: str, columns: str = COLUMNS) -> ImportedTable:
    file = tmp_path / "speed.md"
    file.write_text(HEAD + columns + RULE + "\n".join(rows) + "\n\n[^1]: 328004 is no part of it.\n", encoding="utf-8")
    return import_file(file, mapping_path("megatron-bridge"))


@pytest.mark.parametrize(
    "cell", ["475[^1]", "**475**", "475<sup>1</sup>", "475*", "475 [1]", "475†", "475 †", "~475", "`475`"]
)
def test_a_footnote_is_no_digit(tmp_path: Path, cell: str) -> None:
    table = page(tmp_path, f"| DGX-H200 | 8 | BF16 | 64 | 1 | 4096 | {cell} | 100 |")
    assert table.receipts[0].parsed.stated["measurement.stated.tokens_per_second_per_chip"] == 475.0


@pytest.mark.parametrize("cell", ["10⁶", "10<sup>6</sup>", "1.2×10⁶"])
def test_a_power_of_ten_is_not_read_as_ten(tmp_path: Path, cell: str) -> None:
    table = page(tmp_path, f"| DGX-H200 | 8 | BF16 | 64 | 1 | 4096 | {cell} | 100 |")
    assert "measurement.stated.tokens_per_second_per_chip" not in table.receipts[0].parsed.stated
    assert [item.to for item in table.unread] == ["measurement.stated.tokens_per_second_per_chip"]


@pytest.mark.parametrize("cell", ["-", "n/a", "—", "TBD"])
def test_a_dash_states_nothing(tmp_path: Path, cell: str) -> None:
    table = page(tmp_path, f"| DGX-H200 | 8 | BF16 | 64 | {cell} | 4096 | 9,216 | 100 |")
    stated = table.receipts[0].parsed.stated
    assert "batch.micro_batch" not in stated
    assert stated["measurement.stated.tokens_per_second_per_chip"] == 9216.0


@pytest.mark.parametrize("cell", ["400-500", "see below", "<475"])
def test_what_is_no_number_stays_unread(tmp_path: Path, cell: str) -> None:
    table = page(tmp_path, f"| DGX-H200 | 8 | BF16 | 64 | 1 | 4096 | {cell} | 100 |")
    assert [item.text for item in table.unread] == [cell]


def test_a_quoted_figure_proves_nothing_and_names_its_release(tmp_path: Path) -> None:
    stated = page(tmp_path, "| DGX-H200 | 8 | BF16 | 64 | 1 | 4096 | 475 | 100 |").receipts[0].parsed.stated
    assert (stated["run.provenance"], stated["wheels.nvidia-release"]) == ("quoted", "26.02")
    assert (stated["model.name"], stated["hardware.accelerator"]) == ("Tiny", "H200")


def test_a_second_run_in_brackets_names_no_recipe(tmp_path: Path) -> None:
    row = "| DGX-H200 | 8 | FP8-CS (FP8-MX) | 64 | 1 | 4096 | 30624 (29521) | 1576 (1519) |"
    stated = page(tmp_path, row).receipts[0].parsed.stated
    assert stated["numerics.fp8_recipe"] == "FP8-CS"
    assert stated["measurement.stated.tokens_per_second_per_chip"] == 30624.0


def test_columns_are_known_however_they_are_spelled(tmp_path: Path) -> None:
    columns = COLUMNS.replace("Tokens / sec / GPU", "Tokens/sec/GPU").replace("#-GPUs", "# GPUs")
    table = page(tmp_path, "| DGX-H200 | 8 | BF16 | 64 | 1 | 4096 | 475 | 100 |", columns=columns)
    stated = table.receipts[0].parsed.stated
    assert (stated["hardware.chips"], stated["measurement.stated.tokens_per_second_per_chip"]) == (8, 475.0)


def test_a_row_with_other_work_for_a_token_is_named(tmp_path: Path) -> None:
    rows = [f"| DGX-H200 | {gpus} | BF16 | 64 | 1 | 4096 | {gpus}00 | {gpus * 20} |" for gpus in (8, 16, 32)]
    table = page(tmp_path, *rows, "| DGX-H200 | 64 | BF16 | 64 | 1 | 4096 | 6400 | 2560 |")
    assert [(item.where, item.found) for item in table.disagreements] == [("line 12", "0.4")]


def test_a_page_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fits no row"):
        page(tmp_path, "| a | b |", columns="| Who | Where |\n")


STEP = "completed step: 4, seconds: 2.000, TFLOP/s/device: 300.000, Tokens/s/device: {rate}, total_weights: 1048576"


def recipe(tmp_path: Path, text: str, mapping: str = "tpu-recipes") -> ImportedTable:
    file = tmp_path / "README.md"
    file.write_text(text, encoding="utf-8")
    return import_file(file, mapping_path(mapping))


@pytest.mark.parametrize(
    ("words", "accelerator", "chips"),
    [
        ("--device_type=v6e-256 --num_slices=2", "tpu-v6e", 512),
        ("--device_type=v5p-128 --num_slices=2", "tpu-v5p", 128),
        ("# Training Tiny on TPU v5p-64\n--device_type=${TYPE} --num_slices=1", "tpu-v5p", 32),
    ],
)
def test_a_recipe_counts_chips_and_not_cores(tmp_path: Path, words: str, accelerator: str, chips: int) -> None:
    (made,) = recipe(tmp_path, f"{words}\n{STEP.format(rate='1024.0')}\n").receipts
    assert (made.parsed.stated["hardware.accelerator"], made.parsed.stated["hardware.chips"]) == (accelerator, chips)


def test_a_recipe_whose_log_is_of_another_batch_is_named(tmp_path: Path) -> None:
    words = '"per_device_batch_size": 3,\n"max_target_length": 1024,\n'
    assert not recipe(tmp_path, words + STEP.format(rate="1536.0")).disagreements
    (item,) = recipe(tmp_path, words + STEP.format(rate="1024.0")).disagreements
    assert (item.found, item.expected) == ("2048", "3072")


def test_the_summary_of_a_folder_is_a_table_of_recipes(tmp_path: Path) -> None:
    head = '| <div style="width:9px;">Model ID</div> | Number of chips | GBS | Sequence length | Precision |'
    head += " Step time (seconds) | TFLOPs/sec/chip | Tokens/sec/chip |\n" + "| --- " * 8 + "|\n"
    rows = "| tiny | 64 | 256 | 8192 | fp8_full | 2.00 | 1,200.50 | 16,384.00 |\n"
    rows += "| wide | 64 | 256 | 8192 | bf16 | 4.00 | 600.25 | N/A |\n"
    found = recipe(tmp_path, f"# Recipes for Ironwood TPU\n\n{head}{rows}")
    one, other = (item.parsed.stated for item in found.receipts)
    assert (one["model.name"], one["hardware.accelerator"], one["hardware.chips"]) == ("tiny", "tpu-v7", 64)
    assert (one["numerics.compute_dtype"], one["measurement.stated.tokens_per_second_per_chip"]) == ("fp8", 16384.0)
    assert "measurement.stated.tokens_per_second_per_chip" not in other
    assert not found.disagreements


def test_an_mfu_that_does_not_follow_is_named_with_its_peak(tmp_path: Path) -> None:
    step = STEP.format(rate="1024.0")
    text = f"# Pretrain Tiny-7B workloads on A3 Mega nodes\n{step}\n{{}} = ---- = ---- = {{}}\n MAX TFLOP H100   1000\n"
    good, bad = (
        recipe(tmp_path, text.format("MFU", share), "gpu-recipes") for share in ("0.300 = 30.0%", "0.31 = 31%")
    )
    stated = good.receipts[0].parsed.stated
    assert (stated["hardware.accelerator"], stated["model.name"]) == ("h100-sxm", "Tiny-7B")
    assert (stated["measurement.stated.mfu"], stated["measurement.stated.peak_flops_per_second"]) == (0.3, 1e15)
    assert not good.disagreements
    assert [(item.found, item.expected) for item in bad.disagreements] == [("0.31", "0.3")]


def test_a_folder_of_a_mappings_name_hides_it_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tpu-recipes").mkdir()
    monkeypatch.chdir(tmp_path)
    assert mapping_path("tpu-recipes").is_file()


def test_a_table_may_stand_below_its_system_and_precision(tmp_path: Path) -> None:
    columns = (
        "| Model | Task | #GPUs | GBS | MBS | LBS | GA | Seq Length | PP | Model TFLOPs/sec/GPU | Tokens/sec/GPU |"
    )
    columns += " Time per Global Step (s) |\n" + "| --- " * 12 + "|\n"
    rows = "".join(
        f"| Tiny | {task} | 8 | 64 | 1 | 4 | 2 | 4096 | 4 | 100 | 16,384 | 2.00 |\n" for task in ("SFT", "LoRA")
    )
    text = "# Performance\n\n- at FP8 precision\n  - Container: [NeMo24.07](https://x.y)\n  - System: DGX-H100\n\n"
    one, other = (item.parsed.stated for item in recipe(tmp_path, text + columns + rows, "megatron-bridge").receipts)
    assert (one["hardware.accelerator"], one["numerics.compute_dtype"]) == ("H100", "fp8")
    assert (one["path.intended.framework"], one["wheels.nvidia-release"]) == ("nemo", "24.07")
    assert (one["features.task"], other["features.task"]) == ("SFT", "LoRA")
    assert (one["measurement.stated.step_seconds"], "batch.accumulation" in one) == (2.0, False)


def test_a_container_and_a_precision_hold_for_every_table_of_their_section(tmp_path: Path) -> None:
    """NeMo's pages from 25.04 on: one container, a table for each system, and a second run in brackets."""
    text = "## Pre-Training\n\nPerformance of various models using FP8 precision.\n\n- Container: NeMo 25.07\n"
    for system, degree in (("DGX-GB200", "1 (0)"), ("DGX-H100", "1")):
        text += f"- System: {system}\n\n| Model | #-GPUs | FSDP | Tokens / sec / GPU |\n" + "| --- " * 4 + "|\n"
        text += f"| LLAMA3-8B | 8 | {degree} | 31737 (30341) |\n\n"
    for receipt, accelerator in zip(recipe(tmp_path, text, "megatron-bridge").receipts, ("GB200", "H100"), strict=True):
        stated = receipt.parsed.stated
        assert (stated["hardware.accelerator"], stated["numerics.compute_dtype"]) == (accelerator, "fp8")
        assert (stated["path.intended.framework"], stated["wheels.nvidia-release"]) == ("nemo", "25.07")
        assert stated["features.FSDP"] == "1"


def test_a_degree_that_is_zero_is_none(tmp_path: Path) -> None:
    """DFM's pages write 0 for a model without virtual stages or experts."""
    text = "#### System: DGX-H100, Precision: BF16\n\n"
    text += "| Model | #-GPUs | GBS | DP | TP | SP | VP | EP | Model TFLOP / sec / GPU |\n"
    text += "| --- " * 9 + "|\n| Tiny | 16 | 64 | 8 | 2 | 1 | 0 | 0 | 325.77 |\n"
    (receipt,) = recipe(tmp_path, text, "megatron-bridge").receipts
    stated = receipt.parsed.stated
    assert not {"parallelism.expert", "parallelism.virtual_pipeline"} & stated.keys()
    assert (stated["parallelism.data"], stated["parallelism.sequence"]) == (8, True)
    assert stated["numerics.compute_dtype"] == "bf16"


def test_a_row_of_another_peak_than_its_platforms_is_named(tmp_path: Path) -> None:
    text = "## TPU v5p\n\n| No. of params | Accelerator Type | TFLOP/chip/sec | MFU |\n" + "| --- " * 4 + "|\n"
    rows = [("128", "3.28e+02", "71.47"), ("256", "3.15e+02", "68.68"), ("2048", "2.49e+02", "64.05")]
    text += "".join(f"| 32B | v5p-{cores} | {flops} | {mfu}% |\n" for cores, flops, mfu in rows)
    imported = recipe(tmp_path, text, "maxtext-tiering")
    assert len(imported.receipts) == 3
    assert ["388.7" in str(item) for item in imported.disagreements] == [True]


def test_sizes_that_stand_side_by_side_are_rows(tmp_path: Path) -> None:
    text = "## TPU v5e\n\n| Hardware | 16B TFLOP/sec/chip | 16B MFU | 32B TFLOP/sec/chip | 32B MFU |\n"
    text += "| --- " * 5 + "|\n| 4x v5e-256 | 117 | 59.14% | 126 | 64.10% |\n"
    one, other = (item.parsed.stated for item in recipe(tmp_path, text, "maxtext-tiering").receipts)
    assert (one["hardware.accelerator"], one["hardware.chips"]) == ("tpu-v5e", 1024)
    assert (one["measurement.stated.mfu"], other["measurement.stated.mfu"]) == (0.5914, pytest.approx(0.641))
    assert (one["model.parameters_total"], other["model.parameters_total"]) == (16 * 10**9, 32 * 10**9)


@pytest.mark.parametrize(("machine", "chips"), [("1x v5p-128", 64), ("2x v5p-512", 512), ("8x v4-128", 512)])
def test_a_size_may_be_a_heading_and_a_slice_be_named_for_its_cores(tmp_path: Path, machine: str, chips: int) -> None:
    text = (
        f"# Configs on TPU {machine[3:6]}\n\n### 32B model\n| Hardware | TFLOP/sec/chip | MFU |\n| --- | --- | --- |\n"
    )
    (made,) = recipe(tmp_path, f"{text}| {machine} | 328 | 71.47% |\n", "maxtext-tiering").receipts
    stated = made.parsed.stated
    assert (stated["model.parameters_total"], stated["hardware.chips"]) == (32 * 10**9, chips)
    assert machine[3:5] in stated["hardware.accelerator"]


def test_the_name_of_a_library_is_no_degree(tmp_path: Path) -> None:
    text = "## Llama 3 numbers\n\nOn Llama 3 with FSDP2 on 64 A100 (80GB) GPUs.\n\n"
    text += "| Model size | Batch size | Activation checkpoiting | WPS | MFU |\n" + "| --- " * 5 + "|\n"
    (made,) = recipe(tmp_path, text + "| 8B | 1 | no | 2904 | 56.8% |\n", "torchtitan").receipts
    stated = made.parsed.stated
    assert (stated["hardware.chips"], stated["model.name"], "parallelism.shard" in stated) == (64, "Llama 3 8B", False)
    assert (stated["numerics.recompute"], stated["measurement.stated.mfu"]) == ("none", 0.568)


TURNED = """## Measured

| Tiny 70b 24.09 BF16 (TP=4, PP=9, VP=7, MBS=1) | Speed on 32x H100 GPUs (GBS=128) | 64x H100 GPUs (GBS=256) |
|---|---|---|
| PP | 1 | 9 |
| VP | n/a | 7 |
| Training step time (seconds per step) | 8.00 | 8.00 |  | |
| Throughput in tokens per second | 65536 | 131072 |
Model flops utilization | 50.0% | 50.0%
"""


def test_a_column_may_be_a_run(tmp_path: Path) -> None:
    one, other = (item.parsed.stated for item in recipe(tmp_path, TURNED, "dgxc-benchmarking").receipts)
    assert (one["hardware.accelerator"], one["hardware.chips"], other["hardware.chips"]) == ("H100", 32, 64)
    assert (one["batch.global_batch"], other["batch.global_batch"]) == (128, 256)
    assert (one["parallelism.pipeline"], "parallelism.virtual_pipeline" in one) == (1, False)
    assert (other["parallelism.pipeline"], other["parallelism.virtual_pipeline"]) == (9, 7)
    assert (one["model.name"], one["wheels.nvidia-release"], one["batch.micro_batch"]) == ("Tiny 70b", "24.09", 1)
    rates = [item["measurement.stated.tokens_per_second"] for item in (one, other)]
    assert (rates, other["measurement.stated.mfu"]) == ([65536.0, 131072.0], 0.5)


def test_a_run_whose_mfu_is_not_of_its_rate_is_named(tmp_path: Path) -> None:
    table = recipe(tmp_path, TURNED.replace("131072", "262144"), "dgxc-benchmarking")
    assert {item.says for item in table.disagreements} == {"MFU × GPUs over tokens/s", "tokens in a sample"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TURNED.replace("| VP | n/a | 7 |", "| PP | 1 | 7 |"), "row 'PP' occurs twice"),
        (TURNED.replace("| 65536 | 131072 |", "| 65536 |"), "fewer cells"),
    ],
)
def test_a_run_whose_cells_have_no_one_place_is_refused(tmp_path: Path, text: str, says: str) -> None:
    table = recipe(tmp_path, text, "dgxc-benchmarking")
    assert not table.receipts
    assert [says in item.problems[0].what for item in table.refused] == [True, True]


def test_mappings_that_ship_are_named() -> None:
    assert mapping_path("torchtitan").is_file()
    with pytest.raises(UsageError, match="llm-foundry"):
        mapping_path("llm-foundr")
    assert len(list(SHIPPED.glob("*.toml"))) == 7


@pytest.mark.skipif(not TABLES.is_dir(), reason="published tables")
def test_published_tables_are_read_whole_and_seven_rows_divide_by_another_peak() -> None:
    table = import_file(TABLES / "llm-foundry-benchmarking.md", mapping_path("llm-foundry"))
    assert (len(table.receipts), len(table.refused), len(table.unread)) == (216, 0, 0)
    assert {item.says for item in table.disagreements} == {"the peak that MFU divides by (TFLOP/s)"}
    fp8 = [item.row.where for item in table.receipts if item.parsed.stated["numerics.compute_dtype"] == "fp8"]
    assert [item.where for item in table.disagreements] == fp8
    assert len(fp8) == 7
    for name, rows in (("llama3_h100_202412_torchtitan", 18), ("asyncTP_llama3_h100_2025-06_torchtitan", 12)):
        reports = import_file(TABLES / f"torchtitan/benchmarks/{name}.md", mapping_path("torchtitan"))
        assert (len(reports.receipts), len(reports.refused), len(reports.unread)) == (rows, 0, 0)
    bridge = import_file(TABLES / "megatron-bridge-performance.md", mapping_path("megatron-bridge"))
    assert (len(bridge.receipts), len(bridge.unread), bridge.disagreements) == (18, 0, ())
    recipe = import_file(
        TABLES / "gpu-recipes/training/a3ultra/llama3-1-405b/maxtext-pretraining-gke/README.md",
        mapping_path("gpu-recipes"),
    )
    assert [(item.found, item.expected) for item in recipe.disagreements] == [("903.017", "508.371")]
