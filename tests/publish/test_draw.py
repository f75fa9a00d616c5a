"""What pictures share: colours that differ, and text that can be read on them."""

from __future__ import annotations

import pytest

from receipts.publish.svg import CATEGORIES, INK, PAPER, contrast, ink_on


@pytest.mark.parametrize("colour", CATEGORIES)
def test_text_on_a_bar_can_be_read(colour: str) -> None:
    assert contrast(ink_on(colour), colour) >= 4.0


def test_no_two_categories_are_one_colour() -> None:
    assert len(set(CATEGORIES)) == len(CATEGORIES)
    assert INK != PAPER
