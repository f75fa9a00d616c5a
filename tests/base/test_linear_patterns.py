"""Patterns of a person's own cost time linear in the text."""

from __future__ import annotations

import re

import pytest

from receipts.base.untrusted_text import compile_linear, expanded


def test_a_pattern_that_backtracks_for_ever_ends() -> None:
    assert compile_linear("(a+)+$").search("a" * 50_000 + "b") is None


def test_groups_read_as_those_of_re() -> None:
    text, source = "Step 12 loss 0.5", r"step (?P<step>\d+)(?: lr (?P<lr>\S+))?"
    ours, theirs = compile_linear(source, ignore_case=True).search(text), re.search(source, text, re.IGNORECASE)
    assert ours is not None
    assert theirs is not None
    assert ours.groupdict() == theirs.groupdict() == {"step": "12", "lr": None}


@pytest.mark.parametrize("text", ["(a", "(?=a)b", r"(a)\1"])
def test_what_re2_does_not_know_says_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"missing \)|invalid"):
        compile_linear(text)


def test_a_template_may_hold_any_letters() -> None:
    match = compile_linear("(\\d+)x(?:(\\d+)|y)").search("µ 16xy")
    assert match is not None
    assert expanded(match, "\\1 × \\g<0>\\2 µ") == "16 × 16xy µ"
