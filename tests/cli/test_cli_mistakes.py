"""What the program answers to a mistake: every wrong word at once, what each of them may be, and what to do next."""

from __future__ import annotations

import pytest

from command_line import Shell, shell

__all__ = ["shell"]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "nobody", "no-one"),
        ("bridge", "nobody", "no-one"),
        ("bisect", "nobody", "no-one"),
        ("chips", "nobody", "no-one"),
        ("report", "compare", "nobody", "no-one"),
    ],
)
def test_every_receipt_that_is_not_there_is_named(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words)
    assert said.code == 2
    first, second = said.err.splitlines()
    assert first.startswith("receipts: no receipt is called 'nobody'")
    assert second.startswith("receipts: no receipt is called 'no-one'")


def test_a_name_and_a_missing_file_are_named_together(shell: Shell) -> None:
    said = shell("chips", "nobody", "gone.json")
    assert said.code == 2
    assert "no receipt is called 'nobody'" in said.err
    assert "gone.json: there is no such file" in said.err


def test_every_axis_of_a_sweep_that_nobody_states_is_named(shell: Shell) -> None:
    said = shell("sweep", shell.write("a"), "--vary", "micro_btch,rain")
    assert said.code == 2
    assert "'micro_btch'" in said.err
    assert "did you mean batch.micro_batch" in said.err
    assert "'rain'" in said.err


def test_a_log_is_not_a_receipt_and_becomes_one_by_ingest(shell: Shell) -> None:
    (shell.folder / "run.log").write_text("step 1 loss 2.0\n")
    said = shell("submit", "run.log")
    assert said.code == 2
    assert "receipts ingest makes one from logs" in said.err
    (shell.folder / "cut.json").write_text('{"run": {')
    assert "written whole" in shell("submit", "cut.json").err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("list", "mfu>30%"), "mfu is a fraction; write mfu>0.3"),
        (("run", "--plan", "label=two words"), "receipts run --plan 'label=two words' -- python"),
        (("plan", "--next", "nowhere"), "nowhere: there is no experiment.json in this folder (receipts plan"),
        (("plan", "--screen", "gone.toml", "--budget", "2000 GPUs"), "write chip-hours, such as 2000chip-h"),
        (("backup", "nowhere/lab.sqlite"), "there is no folder"),
        (("history", "a", "--axis", "rain"), "there is no column or leaf 'rain'"),
    ],
)
def test_the_answer_shows_what_would_be_right(shell: Shell, words: tuple[str, ...], answer: str) -> None:
    if words[0] in ("history", "plan"):
        pytest.importorskip("ruptures")
    shell.store("a")
    said = shell(*words)
    assert said.code == 2
    assert answer in said.err
