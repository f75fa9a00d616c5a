"""``receipts purge``."""

from __future__ import annotations

import io
import sys

import pytest

from command_line import Shell
from receipts.base.environment import this_process


def test_a_purged_receipt_leaves_a_tombstone_with_the_reason(shell: Shell) -> None:
    receipt = shell.store("one")
    said = shell("purge", receipt, "--reason", "held a token", "--yes")
    assert said.code == 0
    assert "held a token" in said.out
    gone = shell("show", receipt)
    assert gone.code == 2
    assert "purged" in gone.err
    assert "held a token" in gone.err
    assert f"by {this_process()}" in gone.err
    assert shell("submit", "one.json").code == 2


def test_json_says_what_was_erased(shell: Shell) -> None:
    receipt = shell.store("one")
    said = shell("purge", receipt, "--reason", "held a token", "--yes", "--json")
    assert said.json == {"id": receipt, "purged": True, "reason": "held a token"}


@pytest.mark.parametrize(("answer", "code", "stays"), [("y\n", 0, False), ("n\n", 1, True), ("", 2, True)])
def test_it_asks_first(shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, stays: bool) -> None:
    receipt = shell.store("one")
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    said = shell("purge", receipt, "--reason", "held a token")
    assert said.code == code
    assert "There is no way back" in said.err
    assert (shell("show", receipt).code == 0) is stays


def test_where_nobody_answers_it_names_yes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = shell.store("one")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "--yes" in shell("purge", receipt, "--reason", "x").err
