"""``receipts retract``."""

from __future__ import annotations

from command_line import Shell


def test_a_retracted_receipt_stays_with_its_reason(shell: Shell) -> None:
    receipt = shell.store("one")
    said = shell("retract", "one", "--reason", "never ran", "--json")
    assert said.json == {"id": receipt, "retracted": True, "reason": "never ran"}
    assert "no longer stands: never ran" in shell("show", receipt).out


def test_a_reason_is_asked_for(shell: Shell) -> None:
    shell.store("one")
    assert shell("retract", "one").code == 2


def test_what_no_longer_stands_cannot_be_retracted_again(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("retract", receipt, "--reason", "never ran").out == f"retracted {receipt[:12]}: never ran\n"
    assert shell("retract", receipt, "--reason", "again").code == 2
