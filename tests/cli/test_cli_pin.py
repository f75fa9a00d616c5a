"""``receipts pin``."""

from __future__ import annotations

from command_line import Shell


def test_a_pin_is_usable_wherever_an_id_is(shell: Shell) -> None:
    receipt = shell.store("one")
    shell.store("two", numerics__learning_rate=0.001)
    assert shell("pin", "@golden", receipt, "--note", "the base").code == 0
    assert shell("show", "@golden", "--json").json["id"] == receipt
    assert shell("repro", "@golden", "--json").json["id"] == receipt
    assert shell("compare", "@golden", "two", "--json").json["a"] == [receipt]


def test_history_keeps_every_move_and_the_removal(shell: Shell) -> None:
    first, second = shell.store("one"), shell.store("two")
    shell("pin", "@golden", first)
    shell("pin", "golden", second, "--note", "faster")
    shell("pin", "@golden", "--remove")
    history = shell("pin", "@golden", "--json").json
    assert [item["receipt"] for item in history] == [first, second, None]
    assert [item["note"] for item in history] == [None, "faster", None]
    assert "removed" in shell("pin", "@golden").out
    assert shell("pin", "--json").json == []


def test_a_pin_that_was_removed_names_nothing(shell: Shell) -> None:
    shell("pin", "@golden", shell.store("one"))
    shell("pin", "@golden", "--remove")
    assert shell("show", "@golden").code == 2


def test_a_mistyped_pin_is_answered_with_those_that_there_are(shell: Shell) -> None:
    shell("pin", "@golden", shell.store("one"))
    said = shell("show", "@goldn")
    assert said.code == 2
    assert "golden" in said.err


def test_removing_takes_a_name_alone(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("pin", "--remove").code == 2
    assert shell("pin", "@golden", receipt, "--remove").code == 2


def test_nothing_pinned_says_how_to_pin(shell: Shell) -> None:
    shell.store("one")
    assert "receipts pin @golden ID" in shell("pin").out
