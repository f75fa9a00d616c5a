"""The rate of a launch is what its tokens cost by the wall; an effect has a word wherever there is an interval."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rule_cases
from receipts.base.units import change
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.verdict import Comparison, Level
from receipts.metrics import Launch, get
from receipts.publish.comparison import answer_line
from receipts.questions.gate import required
from receipts.receipt import Parsed

RATE, STEP = "tokens_per_second", "step_seconds"
TOKENS = ("measurement.tokens_per_step", "batch.global_batch")


def side(name: str, steps: dict[str, Any], launches: int = 5, drop: tuple[str, ...] = ()) -> list[Parsed]:
    """Launches in turns with the other side's; B learns at another rate."""
    leaves = {"run.label": name} | ({"numerics.learning_rate": 7} if name == "b" else {})
    dropped = ("measurement.goodput", *drop)
    tree = rule_cases.build({"set": leaves, "steps": {"seconds": 0.05, **steps}, "drop": dropped})
    tree["run"]["launch"] = f"{name}-first"
    return rule_cases.group(tree, name, launches, interleaved=True)


def judged(a: list[Parsed], b: list[Parsed], metric: str = RATE) -> Comparison:
    return compare(a, b, rule_cases.rulebook(), Request(metric, facts=Facts()))


def ratios(verdict: Comparison) -> dict[str, float]:
    return {item.metric: item.ratio or 0.0 for item in verdict.results}


def first_line(verdict: Comparison) -> str:
    return "".join(map(str, answer_line(verdict, rule_cases.rulebook().rules)))


@pytest.mark.parametrize(
    ("a", "b", "lost", "where"),
    [
        ({"stalls": [10, 0.04]}, {"stalls": [3, 0.04]}, -0.147, "stalls in every third step of B"),
        ({}, {"stalls": [5, 0.7]}, -0.737, "stalls in every fifth step of B"),
        ({"seconds": 0.2, "gap": 0.0}, {"seconds": 0.2, "gap": 0.04}, -0.167, "gaps between steps, 16.7% of the wall"),
    ],
)
def test_what_a_median_does_not_hold_is_in_the_rate_and_in_the_first_line(
    a: dict[str, Any], b: dict[str, Any], lost: float, where: str
) -> None:
    verdict = judged(side("a", a), side("b", b))
    assert ratios(verdict)[RATE] - 1 == pytest.approx(lost, abs=0.005)
    assert ratios(verdict)[STEP] - 1 == pytest.approx(0.0, abs=0.005)
    assert (verdict.effect, verdict.status) == ("slower", "accepted")
    effects = {item.metric: item.effect.kind for item in verdict.results}
    assert effects[STEP] == "unproven"
    typical, throughput = (change(ratios(verdict)[name] or 0.0) for name in (STEP, RATE))
    assert f"typical step {typical}, throughput {throughput}: {where}" in first_line(verdict)


def test_the_typical_step_is_answered_where_it_was_asked_for_and_then_throughput_is_open() -> None:
    verdict = judged(side("a", {"stalls": [10, 0.04]}), side("b", {"stalls": [3, 0.04]}), STEP)
    effects = {item.metric: item.effect.kind for item in verdict.results}
    assert (effects[STEP], effects[RATE], verdict.status) == ("equivalent", "unproven", "accepted")
    assert f"throughput {change(ratios(verdict)[RATE] or 0.0)}: stalls" in first_line(verdict)


def test_a_side_without_wall_time_has_both_read_by_their_steps() -> None:
    verdict = judged(side("a", {"seconds": 0.2}), side("b", {"seconds": 0.2, "gap": 0.04}))
    assert ratios(verdict)[RATE] == pytest.approx(1.0, abs=0.005)
    assert "gaps between steps" not in first_line(verdict)


def test_flagged_steps_are_in_neither_the_tokens_nor_the_wall() -> None:
    tree = rule_cases.build({"steps": {"seconds": 0.05, "gap": 0.01, "cv": 0.0}})
    tree["measurement"]["step_wall_seconds"][200] = 50.0
    tokens = tree["measurement"]["tokens_per_step"]
    lane = rule_cases.rulebook().lanes.of(tree["run"]["lane"])
    assert Launch(rule_cases.parsed(tree), lane).read(get(RATE)).value < tokens / 0.2  # type: ignore[operator]  # there
    tree["measurement"]["step_flags"] = {**tree["measurement"].get("step_flags", {}), "eval": [200]}
    assert Launch(rule_cases.parsed(tree), lane).read(get(RATE)).value == pytest.approx(tokens / 0.06)


def test_step_times_alone_are_compared_and_the_leaf_that_gives_a_rate_is_named() -> None:
    verdict = judged(side("a", {}, drop=TOKENS), side("b", {"seconds": 0.04}, drop=TOKENS))
    assert (verdict.metric, verdict.asked, verdict.effect) == (STEP, RATE, "faster")
    assert (verdict.status, verdict.comparable) == ("inconclusive", "unknown")
    (lacks,) = [item for item in verdict.findings if item.code == "C107"]
    assert (lacks.level, lacks.at) == (Level.OPEN, "measurement.tokens_per_step")
    assert "step time answers" in lacks.found


def open_pair() -> Comparison:
    """Faster, and a setting that only one side states."""
    a, b = side("a", {}), side("b", {"seconds": 0.04})
    trees = [json.loads(item.raw) for item in b]
    for tree in trees:
        del tree["numerics"]["learning_rate"]
    return judged(a, [rule_cases.parsed(tree) for tree in trees])


def test_an_effect_whose_cause_is_open_has_its_word_and_is_not_accepted() -> None:
    verdict = open_pair()
    assert (verdict.effect, verdict.standing, verdict.status) == ("faster", "unattributed", "inconclusive")
    assert required(verdict, "faster").answer == "open"
    assert required(verdict, "faster", any_standing=True).answer == "holds"


def test_an_accepted_effect_is_attributed() -> None:
    verdict = judged(side("a", {}), side("b", {"seconds": 0.04}))
    assert (verdict.effect, verdict.standing, verdict.status) == ("faster", "attributed", "accepted")


def test_numbers_of_a_page_stand_as_stated() -> None:
    trees = [json.loads(item.raw) for item in side("b", {"seconds": 0.04})]
    for tree in trees:
        tree["run"]["provenance"] = "quoted"
    verdict = judged(side("a", {}), [rule_cases.parsed(tree) for tree in trees])
    assert (verdict.effect, verdict.standing, verdict.status) == ("faster", "as stated", "inconclusive")


def printed_rates(parsed: list[Parsed]) -> list[Parsed]:
    """The launches as a log shows them that prints tokens a second on every step, and nothing else of the batch."""
    made = []
    for item in parsed:
        tree = json.loads(item.raw)
        measured = tree["measurement"]
        measured["step_tokens_per_second"] = [round(4096 / step, 3) for step in measured.pop("step_durations_seconds")]
        for path in (*TOKENS, "batch.sequence_length"):
            rule_cases.take(tree, path)
        made.append(rule_cases.parsed(tree))
    return made


def test_printed_tokens_a_second_of_every_step_are_compared_as_steps_are() -> None:
    a, b = side("a", {"stalls": [10, 0.04]}), side("b", {"stalls": [3, 0.04]})
    verdict = judged(printed_rates(a), printed_rates(b))
    assert (verdict.metric, verdict.effect) == (RATE, "slower")
    assert ratios(verdict)[RATE] == pytest.approx(ratios(judged(a, b))[RATE], rel=0.001)
    assert STEP not in ratios(verdict)
