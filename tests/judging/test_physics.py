"""What physics and clocks forbid is found on every surface: rates beyond the peak, and launches that are copies."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from command_line import Shell, shell
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.verdict import Level
from receipts.metrics import Launch

__all__ = ["shell"]  # a fixture
NOW = datetime(2026, 4, 1, tzinfo=UTC)
LATER = {"run__started": "2026-03-02T12:00:00Z", "run__finished": "2026-03-02T12:15:00Z"}


def _tree(launch: str = "one", base: str = "megatron", **changes: Any) -> dict[str, Any]:
    tree = rule_cases.base(base)
    tree["run"]["launch"] = launch
    for path, value in changes.items():
        rule_cases.put(tree, path.replace("__", "."), value)
    return tree


def _scaled(tree: dict[str, Any], by: float) -> dict[str, Any]:
    tree["measurement"]["step_durations_seconds"] = [
        step * by for step in tree["measurement"]["step_durations_seconds"]
    ]
    tree["measurement"].pop("stated", None)
    return tree


def _file(shell: Shell, tree: dict[str, Any]) -> str:
    path = shell.folder / f"{tree['run']['launch']}.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return str(path)


def _errors(tree: dict[str, Any], facts: Facts | None = None) -> set[str]:
    parsed = rule_cases.parsed(tree, "a.json")
    lane = rule_cases.rulebook().lanes.of(parsed.receipt.run.lane)
    found = judge_case(Case(Launch(parsed, lane), lane, facts), rule_cases.rulebook().rules)
    return {item.code for item in found if item.level is Level.ERROR}


def _of_the_last(*trees: dict[str, Any]) -> dict[str, Level]:
    """Levels by code of what is found on the last of some receipts that came in this order."""
    every = [rule_cases.parsed(tree, f"{at}.json") for at, tree in enumerate(trees)]
    facts = replace(Facts.among(every), now=NOW)
    lane = rule_cases.rulebook().lanes.of(every[-1].receipt.run.lane)
    found = judge_case(Case(Launch(every[-1], lane), lane, facts), rule_cases.rulebook().rules)
    return {item.code: item.level for item in found}


def _jittered(tree: dict[str, Any], share: float, seed: int = 5) -> dict[str, Any]:
    source = random.Random(seed)
    steps = tree["measurement"]["step_durations_seconds"]
    tree["measurement"].pop("stated", None)
    tree["measurement"]["step_durations_seconds"] = [step * (1 + source.gauss(0, share)) for step in steps]
    return tree


@pytest.mark.parametrize("base", ["megatron", "tpu"])
def test_steps_a_million_times_too_short_are_impossible_by_peak_and_by_clock(base: str) -> None:
    assert {"R103", "R112"} <= _errors(_scaled(_tree(base=base), 1e-6))


def test_steps_a_million_times_too_short_are_impossible_on_a_processor() -> None:
    assert "R112" in _errors(_scaled(_tree(base="cpu"), 1e-6))


def test_steps_as_they_were_are_possible() -> None:
    assert not _errors(_scaled(_tree(), 1.0), Facts(now=NOW))


def test_check_submit_and_compare_refuse_steps_of_microseconds(shell: Shell) -> None:
    good, bad = _file(shell, _tree("good")), _file(shell, _scaled(_tree("bad", **LATER), 1e-6))
    for words in (["check", bad], ["compare", good, bad]):
        said = shell(*words)
        assert said.code == 1
        assert "R103 impossible_mfu" in said.out
    assert [line.split()[1] for line in shell("submit", good, bad).lines[:2]] == ["valid", "invalid"]
    assert shell("compare", good, bad).code == 1


def test_a_processors_run_under_another_name_leads_no_frontier(shell: Shell) -> None:
    shell("submit", _file(shell, _tree("good")))
    tree = _scaled(_tree("bad", **LATER), 1e-8)
    shell("submit", _file(shell, tree))
    report = shell("report", "weekly", "--week", "2026-W10", "--json")
    assert report.code == 0, report.err
    assert "tokens" in report.out
    fastest = 262144 / min(tree["measurement"]["step_durations_seconds"])
    assert f"{fastest:.0f}"[:6] not in report.out


def test_the_later_of_two_launches_of_one_microsecond_is_rejected_and_the_earlier_is_not() -> None:
    at = {"run__started": "2026-03-02T09:00:00.123456+00:00"}
    first, second = _tree("one", **at), _tree("two", **at)
    assert _of_the_last(first, second).get("R112") is Level.ERROR
    assert "R112" not in _of_the_last(first)


def test_a_copy_with_some_noise_is_rejected_and_another_launch_of_that_second_is_open() -> None:
    copy, other = _jittered(_tree("two"), 0.0005), _jittered(_tree("two"), 0.02)
    assert _of_the_last(_tree("one"), copy).get("R112") is Level.ERROR
    assert _of_the_last(_tree("one"), other).get("R112") is Level.OPEN


def test_launches_of_one_second_on_devices_of_their_own_are_left_alone() -> None:
    one, two = (
        _tree(name, flags__CUDA_VISIBLE_DEVICES={"value": devices, "before_runtime": True})
        for name, devices in (("one", "0,1,2,3"), ("two", "4,5,6,7"))
    )
    assert "R112" not in _of_the_last(one, two)


def test_quoted_rows_and_days_are_no_instant() -> None:
    for change in ({"run__provenance": "quoted"}, {"run__started_stated": "2026-03-02"}):
        assert "R112" not in _of_the_last(_tree("one", **change), _tree("two", **change))


def test_a_store_rejects_four_of_five_launches_of_one_instant(shell: Shell) -> None:
    answers = [shell("submit", _file(shell, _jittered(_tree(f"launch-{at}"), 0.0005, at))).out for at in range(5)]
    assert [answer.split()[1] for answer in answers] == ["valid", *["invalid"] * 4]


def test_a_launch_resumed_from_one_of_other_wheels_says_so() -> None:
    first, second = _tree("one"), _tree("two", run__resumed_from="one", **LATER)
    assert "R119" not in _of_the_last(first, second)
    rule_cases.put(second, "wheels.flash-attn.version", "2.9.0")
    assert _of_the_last(first, second).get("R119") is Level.OPEN


@pytest.mark.parametrize(("metric", "opens"), [("loss_last", True), ("goodput", True), ("tokens_per_second", False)])
def test_a_launch_resumed_under_another_runtime_leaves_loss_and_goodput_open_alone(metric: str, opens: bool) -> None:
    first, second = _tree("one"), _tree("two", run__resumed_from="one", **LATER)
    third = _tree("three", **{**LATER, "run__started": "2026-03-12T09:00:00Z", "run__finished": "2026-03-12T10:00:00Z"})
    rule_cases.put(first, "platform.python", "3.12.1")
    every = [rule_cases.parsed(item) for item in (first, second, third)]
    verdict = compare([every[2]], [every[1]], rule_cases.rulebook(), Request(metric=metric, facts=Facts.among(every)))
    assert any(item.code == "C105" and item.found.startswith("R119") for item in verdict.findings) is opens
    side = [item for item in verdict.findings if item.code == "R119"]
    assert [(item.level, item.question.value) for item in side] == [(Level.OPEN, "comparable")]


def test_a_resumed_launch_may_log_more() -> None:
    first, second = _tree("one"), _tree("two", run__resumed_from="one", **LATER)
    rule_cases.put(second, "flags.TORCH_LOGS", {"value": "graph_breaks", "before_runtime": True})
    assert "R119" not in _of_the_last(first, second)


def test_a_store_knows_what_a_launch_was_resumed_from(shell: Shell) -> None:
    shell("submit", _file(shell, _tree("one")))
    second = _tree("two", run__resumed_from="one", **LATER)
    rule_cases.put(second, "code.imported_digest", "a" * 64)
    path = _file(shell, second)
    shell("submit", path)
    assert "R119" in shell("show", sha256(Path(path).read_bytes()).hexdigest()).out


def test_no_more_steps_are_asked_for_than_a_receipt_holds() -> None:
    spent = {"measurement.steps": 5_000_000, "measurement.goodput": {"step_seconds": 5_000.0}}
    for count, codes in ((99_000, {"R112", "R205"}), (100_000, set())):
        tree = rule_cases.build({
            "steps": {"count": count, "seconds": 0.001},
            "drop": ["measurement.step_flags", "measurement.window"],
            "set": spent | {"run.finished": "2026-03-02T10:30:00+00:00"},
        })  # fmt: skip
        rules = (rule_cases.rulebook().rules.get(code) for code in ("R112", "R205"))
        found = {item.code for rule in rules for item in rule_cases.judge_tree(tree, rule_cases.only(rule))}
        assert found == codes
