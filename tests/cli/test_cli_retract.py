"""``receipts retract``."""

from __future__ import annotations

from command_line import Shell


def test_a_retracted_receipt_stays_with_its_reason(shell: Shell) -> None:
    receipt = shell.store("one")
    said = shell("retract", "one", "--reason", "never ran", "--json")
    assert said.json == {"id": receipt, "retracted": True, "reason": "never ran"}
    assert "no longer stands: never ran" in shell("show", receipt).out


def test_that_it_was_retracted_is_said_first_of_a_receipt_by_its_id_and_by_its_file(shell: Shell) -> None:
    receipt = shell.store("one")
    shell("retract", "one", "--reason", "never ran")
    for words in (("show", receipt), ("show", "one.json"), ("check", receipt), ("check", "one.json")):
        assert shell(*words).lines[0].startswith("RETRACTED  no longer stands: never ran; VALID  "), words
    assert "RETRACTED  no longer stands: never ran" in shell("check", "one.json", "-q").out
    assert shell("show", receipt, "--json").json["superseded"] == {"by": "", "reason": "never ran"}


def test_a_pin_says_that_what_it_points_at_was_retracted(shell: Shell) -> None:
    receipt = shell.store("one")
    shell("pin", "@golden", receipt)
    shell("retract", receipt, "--reason", "never ran")
    for words in (("pin",), ("pin", "@golden")):
        assert "retracted on" in " ".join(shell(*words).out.split()), words
        (pin,) = shell(*words, "--json").json
        assert pin["withdrawn"].endswith(": never ran")
    assert shell("show", "@golden").lines[0].startswith("RETRACTED")
    shell("retract", receipt, "--withdraw", "--reason", "it did")
    assert [pin["withdrawn"] for pin in shell("pin", "--json").json] == [None]


def test_a_reason_is_asked_for(shell: Shell) -> None:
    shell.store("one")
    assert shell("retract", "one").code == 2


def test_what_no_longer_stands_cannot_be_retracted_again(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("retract", receipt, "--reason", "never ran").out == f"retracted {receipt[:12]}: never ran\n"
    assert shell("retract", receipt, "--reason", "again").code == 2


def test_a_retraction_is_withdrawn_with_a_reason_and_can_be_said_again(shell: Shell) -> None:
    receipt = shell.store("one")
    assert "stands: there is no retraction" in shell("retract", receipt, "--withdraw", "--reason", "x").err
    shell("retract", receipt, "--reason", "never ran")
    said = shell("retract", receipt, "--withdraw", "--reason", "it did run")
    assert said.out == f"{receipt[:12]} stands again: it did run\n"
    assert shell("show", receipt).lines[0].startswith("VALID")
    assert [item["id"] for item in shell("list", "--json").json] == [receipt]
    assert shell("retract", receipt, "--withdraw", "--reason", "again").code == 2
    shell("retract", receipt, "--reason", "no, it never ran")
    assert shell("show", receipt).lines[0].startswith("RETRACTED")


def test_a_retraction_is_not_withdrawn_where_another_receipt_of_its_launch_stands(shell: Shell) -> None:
    first = shell.store("one", run__launch="same")
    shell("retract", first, "--reason", "a torn file")
    shell.store("two", run__launch="same", run__label="whole")
    said = shell("retract", first, "--withdraw", "--reason", "it was whole")
    assert said.code == 2
    assert "launch same has another receipt that stands" in said.err
