"""What the program answers to a mistake: every wrong word at once, what each of them may be, and what to do next."""

from __future__ import annotations

import pytest

from command_line import Shell, shell

__all__ = ["shell"]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "nobody", "no-one"),
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
    said = shell("compare", "nobody", "gone.json")
    assert said.code == 2
    assert "no receipt is called 'nobody'" in said.err
    assert "gone.json: there is no such file" in said.err


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
        (("backup", "nowhere/lab.sqlite"), "there is no folder"),
    ],
)
def test_the_answer_shows_what_would_be_right(shell: Shell, words: tuple[str, ...], answer: str) -> None:
    shell.store("a")
    said = shell(*words)
    assert said.code == 2
    assert answer in said.err
