"""``receipts rules``."""

from __future__ import annotations

import pytest

from command_line import Shell


def test_every_rule_is_listed_in_both_forms(shell: Shell) -> None:
    data, said = shell("rules", "--json").json, shell("rules")
    assert len(data["list"]) > 50
    assert all(item["code"] in said.out for item in data["list"])
    assert data["rules"][:12] in said.err


@pytest.mark.parametrize("word", ["C101", "c101", "many_axes"])
def test_code_and_name_print_the_page(shell: Shell, word: str) -> None:
    said = shell("rules", word)
    assert said.lines[0] == "# C101 many_axes"
    assert "*Rejected.*" in said.out
    (item,) = shell("rules", word, "--json").json["list"]
    assert item["page"] in said.out


@pytest.mark.parametrize(("word", "near"), [("C11", "C11"), ("many_axis", "many_axes")])
def test_a_mistyped_rule_is_answered_with_those_near_it(shell: Shell, word: str, near: str) -> None:
    said = shell("rules", word)
    assert said.code == 2
    assert "did you mean" in said.err
    assert near in said.err.partition("did you mean")[2]
