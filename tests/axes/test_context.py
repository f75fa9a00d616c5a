"""A common context holds settings that neither side states, of which one value is known under it; and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.cli.group import run
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.verdict import Comparison
from receipts.publish.comparison import page
from receipts.publish.markup import markdown
from receipts.receipt import Document, Parsed
from receipts.store import open_store
from receipts.workflows.submit import submit

OUTCOMES = ("measurement.loss", "measurement.gradient_norm", "run.exit_code")


def side(name: str, seconds: float, count: int = 5, drop: tuple[str, ...] = (), **leaves: Any) -> list[Parsed]:
    changed = {path.replace("__", "."): value for path, value in leaves.items()}
    tree = rule_cases.build({"set": {"run.context": "base", **changed}, "steps": {"seconds": seconds}})
    for path in drop:
        rule_cases.take(tree, path)
    tree["run"]["launch"] = f"{name}-first"
    return rule_cases.group(tree, name, count)


def verdict(a: list[Parsed], b: list[Parsed], facts: Facts | None = None) -> Comparison:
    return compare(a, b, rule_cases.rulebook(), Request(facts=facts or Facts()))


def stored(url: str, receipts: list[Parsed]) -> None:
    with open_store(url) as store:
        documents = [Document(item.raw, item.source) for item in receipts]
        assert all(item.stored for item in submit(documents, store, rule_cases.rulebook()))


def test_a_setting_that_neither_side_states_is_held_and_counted() -> None:
    drop = ("numerics.learning_rate",)
    found = verdict(side("a", 0.8, drop=drop), side("b", 0.7, drop=drop, numerics__schedule="linear"))
    assert found.status == "accepted"
    assert "numerics.learning_rate" in found.difference.held
    assert found.owed == "1 setting that no side states, equal by their common base base"
    assert found.owed in markdown(page(found, rule_cases.rulebook().rules))


def test_silence_about_how_launches_ended_is_not_held() -> None:
    """B trains nothing. Left out of all ten receipts, that is open, and the gate stays shut."""
    wrong = {"measurement__loss__finite": False, "run__exit_code": 1}
    assert verdict(side("a", 0.8), side("b", 0.7, numerics__schedule="linear", **wrong)).status == "rejected"
    silent = verdict(side("a", 0.8, drop=OUTCOMES), side("b", 0.7, drop=OUTCOMES, numerics__schedule="linear"))
    assert silent.status == "inconclusive"
    assert {"measurement.loss.finite", "run.exit_code"} <= {item.at for item in silent.findings if item.code == "C105"}


@pytest.mark.parametrize("leaf", OUTCOMES)
def test_no_context_holds_an_outcome(leaf: str) -> None:
    a, b = side("a", 0.8, drop=(leaf,)), side("b", 0.7, drop=(leaf,), numerics__schedule="linear")
    assert verdict(a, b).comparable == "unknown"


def test_a_leaf_that_was_seen_with_two_values_is_not_held() -> None:
    drop = ("numerics.learning_rate",)
    a, b = side("a", 0.8, drop=drop), side("b", 0.7, drop=drop, numerics__schedule="linear")
    known = Facts(varied={"base": frozenset(drop), "other": frozenset({"numerics.optimizer"})})
    found = verdict(a, b, known)
    assert found.comparable == "unknown"
    assert [gap.axis for gap in found.difference.unknown] == ["numerics.learning_rate"]


def test_a_store_knows_what_varies_under_a_context(store_url: str) -> None:
    rates = [side(f"rate {rate}", 0.8, count=1, numerics__learning_rate=rate) for rate in (1e-3, 2e-3)]
    elsewhere = side("else", 0.8, count=1, run__context="other", numerics__schedule="linear")
    stored(store_url, [*rates[0], *rates[1], *elsewhere])
    with open_store(store_url) as store:
        assert store.query.facts(side("a", 0.8, count=1)).varied == {"base": frozenset({"numerics.learning_rate"})}


def test_a_gate_on_a_stored_pair_does_not_trust_a_leaf_that_varies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drop, path = ("numerics.learning_rate",), tmp_path / "receipts.db"
    a, b = side("a", 0.8, drop=drop), side("b", 0.7, drop=drop, numerics__schedule="linear")
    stored(str(path), [*a, *b])
    words = ["--store", str(path), "compare", a[0].id, b[0].id]
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["owed"].endswith("equal by their common base base")
    stored(str(path), [side(f"rate {rate}", 0.8, 1, numerics__learning_rate=rate)[0] for rate in (1e-3, 2e-3)])
    assert run(words) == 3
    assert "numerics.learning_rate" in capsys.readouterr().out
