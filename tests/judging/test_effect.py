"""The noise floor of an effect: one rule for all who need it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import rule_cases
from receipts import metrics
from receipts.judging.comparison import Request, compare
from receipts.judging.effect import noise_of
from receipts.judging.facts import Facts
from receipts.receipt import Parsed
from receipts.stats.log_ratio import Sigma
from rule_cases import rulebook

LANE = replace(rulebook().lanes.of("nvidia-megatron"), sigma=0.004, sigma_df=9.0, sigma_from="a published table")
STEP = metrics.get("step_seconds")


def _launches(seconds: float) -> list[Parsed]:
    """Three launches whose steps are all equal, as a clock shows them that is too coarse."""
    tree = rule_cases.base("megatron")
    del tree["measurement"]["stated"]
    tree["measurement"]["step_durations_seconds"] = [seconds] * 300
    tree["numerics"]["learning_rate"] = seconds
    return [launch(tree, f"{seconds}-{at}") for at in range(3)]


def launch(tree: dict[str, Any], name: str) -> Parsed:
    started = datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(hours=crc32(name.encode()) % 1000)
    run = {**tree["run"], "launch": name, "started": started.isoformat()}
    return rule_cases.parsed({**tree, "run": {**run, "finished": (started + timedelta(minutes=15)).isoformat()}})


def test_launches_without_any_spread_prove_no_effect() -> None:
    effect = compare(_launches(2.3), _launches(2.1), rulebook(), Request(beside=())).results[0].effect
    assert (effect.kind, "agree to the last digit" in effect.why) == ("unproven", True)
    judged_by_floor = compare(
        _launches(2.3), _launches(2.1), rulebook(), Request(facts=Facts(sigma=0.002, sigma_df=9.0))
    )
    assert judged_by_floor.effect == "faster"


def test_what_the_store_measured_goes_before_what_the_lane_declares() -> None:
    measured = Facts(sigma=0.002, sigma_df=12.0, sigma_of="of the same shape class").noise
    assert noise_of(STEP, LANE, measured) == Sigma(0.002, 12.0, "measured", "of the same shape class")


def test_a_declared_floor_keeps_its_degrees_of_freedom_and_its_source() -> None:
    assert noise_of(STEP, LANE, Facts().noise) == Sigma(0.004, 9.0, "declared", "a published table")


def test_memory_has_no_floor_of_step_times() -> None:
    assert noise_of(metrics.get("peak_bytes"), LANE, Sigma(0.002, 12.0, "measured")) is None
    assert noise_of(STEP, replace(LANE, sigma=None), None) is None
