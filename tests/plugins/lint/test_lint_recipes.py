"""Lint follows a link from a claim to a recipe's log in the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.judging.rulebook import Rulebook
from receipts.plugins.lint.check import Checker
from receipts.plugins.lint.page import page
from receipts.plugins.lint.verbs import pages

TIERING = Path(__file__).resolve().parents[4] / "shared/cases/published/tables/maxtext-tiering.md"
STEP = (
    "completed step: 11, seconds: 4.000, TFLOP/s/device: 459.000, "
    "Tokens/s/device: 1024.000, total_weights: 65536, loss: 3.5\n"
)


def linted(file: Path) -> list[tuple[int, str]]:
    """Line and finding of every refuted statement; no store is opened for one."""
    checker = Checker(Rulebook(), lambda: pytest.fail("no statement names a receipt"))
    results = [result for name, text in pages([str(file)]) for result in checker.check(page(text, name))]
    return [(item.place[1], f"{item.code} {item.found}") for item in results if item.state == "refuted"]


def tree(root: Path, tokens: str, mfu: str) -> Path:
    recipe = root / "recipes" / "training" / "v6e-256" / "tiny"
    recipe.mkdir(parents=True)
    (recipe / "README.md").write_text(f"# Tiny\n\nExpect:\n```\n{STEP}```\n", encoding="utf-8")
    tiers = root / "docs" / "tiers.md"
    tiers.parent.mkdir()
    link = "[Link](https://github.com/acme/recipes/tree/main/training/v6e-256/tiny)"
    tiers.write_text(
        f"# Tiers\n\n| Model | Recipe | MFU | tokens/sec/device |\n| --- | --- | --- | --- |\n"
        f"| Tiny | {link} | {mfu} | {tokens} |\n",
        encoding="utf-8",
    )
    return tiers


def test_a_claim_that_its_recipe_contradicts_is_refuted(tmp_path: Path) -> None:
    mfu, rate = linted(tree(tmp_path, "1,100", "53.1%"))
    assert "K103 the recipe that it links to says 50.00 %" in mfu[1]
    assert "says 1,024 tokens/s/chip" in rate[1]


def test_a_claim_that_its_recipe_bears_out_is_not(tmp_path: Path) -> None:
    assert linted(tree(tmp_path, "1,020", "50.0%")) == []


@pytest.mark.skipif(not TIERING.is_file(), reason="published tables")
def test_one_row_of_the_tiering_page_disagrees_with_its_recipe() -> None:
    assert [line for line, _ in linted(TIERING)] == [24, 24]
