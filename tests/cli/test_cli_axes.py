"""``receipts axes``."""

from __future__ import annotations

from command_line import Shell


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
