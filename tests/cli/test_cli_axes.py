"""``receipts axes``."""

from __future__ import annotations

import pytest

from command_line import Shell
from receipts.ingest.leaves import read_setting, taken
from receipts.receipt.leaves import leaves


def test_every_leaf_is_listed_in_both_forms(shell: Shell) -> None:
    rows = shell("axes", "--json").json
    text = shell("axes").out
    assert len(rows) > 200
    assert all(row["path"] in text for row in rows)


def test_a_prefix_and_a_role_narrow_it(shell: Shell) -> None:
    rows = shell("axes", "batch", "--role", "axis", "--json").json
    assert {row["path"] for row in rows} == {"batch.micro_batch", "batch.global_batch", "batch.sequence_length"}


def test_a_mistyped_axis_is_answered_with_those_near_it(shell: Shell) -> None:
    said = shell("axes", "batch.micro_btch")
    assert said.code == 2
    assert "did you mean batch.micro_batch" in said.err


def test_a_role_that_is_not_there_is_refused(shell: Shell) -> None:
    assert shell("axes", "--role", "axes").code == 2


def test_one_leaf_says_its_type_its_values_and_an_example(shell: Shell) -> None:
    said = shell("axes", "compile.posture")
    assert "allowed       eager, regional, whole_graph, xla_lazy, xla_step, jit" in said.lines
    assert "example       --set compile.posture=eager" in said.lines
    assert "an integer of at least 1" in shell("axes", "batch.micro_batch").out


@pytest.mark.parametrize("path", [leaf.path.replace("*", "NAME") for leaf in leaves() if "[]" not in leaf.path])
def test_the_example_of_a_leaf_is_a_value_for_it(path: str) -> None:
    takes = taken(path)
    if takes is None or takes.type == "a list of objects" or path in ("schema_version", "wheels.complete"):
        pytest.skip("it is stated in the document")
    problem, _ = read_setting(path, takes.example)
    assert problem is None, (path, takes)


def test_a_refused_setting_says_what_the_leaf_takes(shell: Shell) -> None:
    (shell.folder / "run.log").write_text("step 1 loss 2.0\n", encoding="utf-8")
    said = shell("ingest", "run.log", "--set", "hardware.chips=many")
    assert said.code == 2
    assert "it takes an integer of at least 1; such as --set hardware.chips=4" in " ".join(said.err.split())
