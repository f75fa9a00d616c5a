"""Published tables: cells are read right or refused, and rows whose figures disagree are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import InputError, UsageError
from receipts.workflows.tables.notebook import ImportedTable, import_file
from receipts.workflows.tables.prepare import SHIPPED, mapping_path

TABLES = Path(__file__).resolve().parents[3] / "shared/cases/published/tables"
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


def test_mappings_that_ship_are_named() -> None:
    assert mapping_path("torchtitan").is_file()
    with pytest.raises(UsageError, match="llm-foundry"):
        mapping_path("llm-foundr")
    assert len(list(SHIPPED.glob("*.toml"))) == 6


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
