"""The noise floor of an effect: one rule for all who need it."""

from __future__ import annotations

from dataclasses import replace

from receipts import metrics
from receipts.judging.effect import noise_of
from receipts.judging.facts import Facts
from receipts.stats.estimate import Sigma
from rule_cases import rulebook

LANE = replace(rulebook().lanes.of("nvidia-megatron"), sigma=0.004, sigma_df=9.0, sigma_from="a published table")
STEP = metrics.get("step_seconds")


def test_what_the_store_measured_goes_before_what_the_lane_declares() -> None:
    measured = Facts(sigma=0.002, sigma_df=12.0, sigma_of="of the same shape class").noise
    assert noise_of(STEP, LANE, measured) == Sigma(0.002, 12.0, "measured", "of the same shape class")


def test_a_declared_floor_keeps_its_degrees_of_freedom_and_its_source() -> None:
    assert noise_of(STEP, LANE, Facts().noise) == Sigma(0.004, 9.0, "declared", "a published table")


def test_memory_has_no_floor_of_step_times() -> None:
    assert noise_of(metrics.get("peak_bytes"), LANE, Sigma(0.002, 12.0, "measured")) is None
    assert noise_of(STEP, replace(LANE, sigma=None), None) is None
