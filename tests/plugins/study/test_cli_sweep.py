"""``receipts sweep``."""

from __future__ import annotations

import pytest

from command_line import Shell

pytestmark = pytest.mark.slow


@pytest.fixture
def grid(shell: Shell) -> Shell:
    """A grid of three cells: a base, one axis away, and two axes away."""
    shell.store("grid-a")
    shell.store("grid-b", numerics__learning_rate=0.001)
    shell.store("grid-c", numerics__learning_rate=0.001, numerics__buffer_dtype="bf16", numerics__schedule="cosine")
    return shell


def test_a_cell_two_axes_away_is_refused_with_the_reason(grid: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    said = grid("sweep", "label=grid*", "--vary", "learning_rate,numerics.schedule", "--base", "grid-a")
    assert said.code == 0
    (line,) = [line for line in said.lines if "grid-c" in line]
    assert "refused" in line
    cell = line.split()[0]
    assert f"  {cell}: 3 axes: numerics.buffer_dtype, numerics.learning_rate, numerics.schedule" in said.lines
    assert said.lines[0].startswith("2 cells against cell 0: 1 rejected")


def test_links_are_cells_one_axis_apart(grid: Shell) -> None:
    data = grid("sweep", "label=grid*", "--vary", "learning_rate,numerics.schedule", "--base", "grid-a", "--json").json
    labels = [cell["launches"][0] for cell in data["cells"]]
    links = {(labels[link["a"]], labels[link["b"]], link["axis"]) for link in data["links"]}
    assert (grid.made["grid-a"], grid.made["grid-b"], "numerics.learning_rate") in links
    assert not any({grid.made["grid-a"], grid.made["grid-c"]} == {a, b} for a, b, _ in links)


def test_json_carries_coordinates_and_refusals_of_the_table(grid: Shell) -> None:
    words = ("sweep", "label=grid*", "--vary", "learning_rate", "--base", "grid-a")
    data, text = grid(*words, "--json").json, grid(*words).out
    assert data["vary"] == ["numerics.learning_rate"]
    assert all(cell["coordinates"]["numerics.learning_rate"] in text for cell in data["cells"])
    assert all(cell["refused"] in text for cell in data["cells"] if cell["refused"])


def test_files_need_no_store(shell: Shell) -> None:
    shell.unmade()
    paths = [shell.write("one"), shell.write("two", numerics__learning_rate=0.001)]
    assert shell("sweep", *paths, "--vary", "learning_rate").code == 0
    assert not (shell.folder / "store.sqlite").exists()


def test_options_that_no_leaf_has_are_varied_by_their_names(shell: Shell) -> None:
    for name, lr, heads in (("in-a", "1e-3", "8"), ("in-b", "1e-2", "8"), ("in-c", "1e-2", "2")):
        inputs = {"program": "t.py", "capture": "whole", "options": {"lr": lr, "heads": heads}}
        shell.store(name, schema_version="1.1", inputs=inputs)
    words = ("sweep", "label=in-*", "--base", "in-a", "--json", "--vary")
    data = shell(*words, "inputs.lr,inputs.heads").json
    assert data["vary"] == ["inputs.lr", "inputs.heads"]
    at = {cell["launches"][0]: tuple(cell["coordinates"].values()) for cell in data["cells"]}
    assert [at[shell.made[name]] for name in ("in-a", "in-b", "in-c")] == [("0.001", "8"), ("0.01", "8"), ("0.01", "2")]
    # An option that varies unasked makes two configurations of one cell.
    refused = {cell["coordinates"]["inputs.lr"]: cell["refused"] for cell in shell(*words, "inputs.lr").json["cells"]}
    assert refused == {"0.001": "", "0.01": "more than one configuration: vary inputs.heads as well"}


def test_a_mistyped_axis_is_answered_with_those_near_it(grid: Shell) -> None:
    said = grid("sweep", "label=grid*", "--vary", "learning_rte")
    assert said.code == 2
    assert "did you mean numerics.learning_rate" in said.err


def test_no_axis_is_refused(grid: Shell) -> None:
    assert grid("sweep", "label=grid*", "--vary", " , ").code == 2
