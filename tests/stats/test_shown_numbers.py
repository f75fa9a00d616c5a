"""A number is always shown with what it is, whether or not it is a sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts import metrics
from receipts.cli.group import run
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.metrics import Launch
from receipts.receipt import Parsed

RATE = metrics.get("tokens_per_second")
STEP = metrics.get("step_seconds")


def launch(name: str, steps: dict[str, Any], *, seed: int = 1, **leaves: Any) -> Parsed:
    changed = {f"measurement.{leaf.replace('__', '.')}": value for leaf, value in leaves.items()}
    tree = rule_cases.build({"set": {"numerics.seed": seed, "run.label": name, **changed}, "steps": steps})
    tree["run"]["launch"] = name
    tree["measurement"].pop("stated", None)
    return rule_cases.parsed(tree)


def written(folder: Path, parsed: Parsed) -> str:
    path = folder / f"{parsed.name}.json"
    path.write_bytes(parsed.raw)
    return str(path)


def of(parsed: Parsed) -> Launch:
    return Launch(parsed, rule_cases.rulebook().lanes.of(parsed.receipt.run.lane))


def short(name: str, seed: int = 1, seconds: float = 0.8) -> Parsed:
    """Nine steps that count: no sample."""
    window = {"window__start": 3, "window__stop": 12, "step_flags": {"warmup": [0, 1, 2]}}
    return launch(name, {"count": 12, "seconds": seconds}, seed=seed, **window)


def test_a_short_launch_shows_its_number_and_is_no_sample() -> None:
    parsed = of(short("short"))
    assert parsed.read(RATE).value is None
    shown = parsed.shown(RATE)
    assert (shown.source, shown.text) == ("unsteady", "tokens over the time of 9 of 12 steps")
    assert parsed.shown(STEP).text == "median of 9 of 12 steps"
    assert shown.value == pytest.approx(parsed.tokens_per_step / (sum(parsed.durations[3:]) / 9))  # type: ignore[operator]  # it is there


def test_steps_that_are_never_steady_leave_the_total_to_compare() -> None:
    """Batches that grow by schedule: running longer does not make such steps alike."""
    verdict = compare([short("a")], [short("b", seed=2)], rule_cases.rulebook(), Request(facts=Facts()))
    assert verdict.results[0].effect.why.endswith("run longer, or compare -m training_seconds")


def test_show_list_and_compare_print_the_number_with_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = short("a"), short("b", seed=2, seconds=0.4)
    files = [written(tmp_path, a), written(tmp_path, b)]
    rate = metrics.shown(RATE, of(a).shown(RATE).value or 0.0)

    def printed(*words: str) -> str:
        run(["--store", str(tmp_path / "s.sqlite"), *words])
        return " ".join(capsys.readouterr().out.split())

    printed("submit", *files)
    number = rate.removesuffix(" tokens/s")
    assert f"tokens/s {number} unsteady (tokens over the time of 9 of 12 steps)" in printed("show", files[0])
    compared = printed("compare", *files)
    assert number in compared
    assert "A: tokens over the time of 9 of 12 steps, not steady; B: tokens over the time of 9" in compared
    assert "is not on" not in compared
    assert "no steady segment in 1 of 1 launches of A" in compared
    listed = printed("list")
    assert number in listed
    assert "tokens over the time of 9 of 12 steps" in printed("list", "--json")


def test_interval_means_are_weighed_by_their_steps_and_compared_with_their_kind() -> None:
    counts = [10] * 11 + [5]
    seconds = [0.8] * 11 + [1.6]
    bare = {"window__start": 0, "window__stop": 12, "step_flags": {}}
    parsed = of(launch("i", {"count": 12, "first": seconds}, interval_steps=counts, **bare))
    assert parsed.step_seconds == pytest.approx((110 * 0.8 + 5 * 1.6) / 115)
    assert parsed.read(STEP).text == "mean of 115 steps in 12 of 12 intervals"
    steps = launch("s", {"count": 60}, window__start=3, window__stop=60)
    verdict = compare([parsed.parsed], [steps], rule_cases.rulebook(), Request(facts=Facts()))
    assert "C107" in {item.code for item in verdict.findings}
    assert json.loads(steps.raw)["measurement"].get("interval_steps") is None
