"""``receipts init``."""

from __future__ import annotations

import json

import pytest

import rule_cases
from command_line import Shell


@pytest.mark.parametrize("lane", rule_cases.rulebook().lanes.names())
def test_a_skeleton_is_a_receipt_that_states_too_little(shell: Shell, lane: str) -> None:
    assert shell("init", lane, "-o", "run.json").code == 0
    said = shell("check", "run.json")
    assert said.code in (1, 3), said.err
    assert json.loads((shell.folder / "run.json").read_text(encoding="utf-8"))["run"]["lane"] == lane


def test_without_a_file_it_goes_to_standard_output(shell: Shell) -> None:
    assert shell("init", "cpu-torch").json["schema_version"] == "1.1"


def test_an_existing_file_is_kept(shell: Shell) -> None:
    (shell.folder / "run.json").write_text("mine", encoding="utf-8")
    said = shell("init", "cpu-torch", "-o", "run.json")
    assert said.code == 2
    assert (shell.folder / "run.json").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_is_not_there_is_refused(shell: Shell) -> None:
    said = shell("init", "cpu-torch", "-o", "none/run.json")
    assert said.code == 2
    assert "none/run.json" in said.err


def test_a_mistyped_lane_is_answered_with_those_near_it(shell: Shell) -> None:
    said = shell("init", "cpu-torc")
    assert said.code == 2
    assert "did you mean cpu-torch" in said.err
