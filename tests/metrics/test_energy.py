"""Joules and cost per token follow from watts, chips and the rate; a meter that was read too seldom gives none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts import metrics
from receipts.base.environment import read_config
from receipts.base.errors import UsageError
from receipts.judging.rulebook import configured
from receipts.metrics import Launch
from receipts.metrics.readings import window_seconds

JOULES, COST, RATE = (metrics.get(name) for name in ("joules_per_token", "cost_per_token", "tokens_per_second"))


def launch_of(prices: dict[str, float] | None = None, **energy: Any) -> Launch:
    tree = rule_cases.base("megatron")
    if energy:
        rule_cases.put(tree, "measurement.energy", energy)
    lanes = rule_cases.rulebook().lanes
    return Launch(rule_cases.parsed(tree), replace(lanes.of(tree["run"]["lane"]), prices=prices or {}))


def test_joules_per_token_are_the_watts_of_all_chips_over_the_rate() -> None:
    launch = launch_of(watts_per_chip=600.0, samples=40, seconds=600.0, meter="chip")
    rate = launch.read(RATE).value
    assert rate is not None
    assert launch.read(JOULES).value == pytest.approx(600 * 8 / rate)
    assert launch.read(JOULES).source == "steps"


@pytest.mark.parametrize(
    "energy", [{}, {"samples": 9, "seconds": 600.0}, {"samples": 40, "seconds": 1.0}, {"samples": 40}]
)
def test_a_meter_that_was_read_too_seldom_gives_no_joules(energy: dict[str, Any]) -> None:
    launch = launch_of(**({"watts_per_chip": 600.0, **energy} if energy else {}))
    assert window_seconds(launch) > 2.0
    assert launch.read(JOULES).value is None


def test_cost_per_token_is_the_price_of_the_chips_and_of_what_they_take() -> None:
    rate = launch_of().read(RATE).value
    assert rate is not None
    assert launch_of().read(COST).value is None
    assert launch_of({"B200": 9.0}).read(COST).value is None
    # A chip is known by any of its names.
    assert launch_of({"H200": 3.6}).read(COST).value == pytest.approx(3.6 * 8 / 3600 / rate)
    both = launch_of({"H200": 3.6, "kilowatt_hour": 0.5}, watts_per_chip=600.0, samples=40, seconds=600.0)
    assert both.read(COST).value == pytest.approx((3.6 + 0.6 * 0.5) * 8 / 3600 / rate)


def test_prices_are_those_of_a_receipts_toml(tmp_path: Path) -> None:
    file = tmp_path / "receipts.toml"
    file.write_text('[prices]\nH200 = 3.1\n"TPU v6e" = 1\n')
    rulebook = configured(read_config(file))
    assert rulebook.lanes.of("nvidia-megatron").prices == {"H200": 3.1, "TPU v6e": 1.0}
    assert rulebook.rules.digest == rule_cases.rulebook().rules.digest
    for text, at in (
        ("prices = 3", "prices"),
        ("[prices]\nH200 = -1", "prices.H200"),
        ('[prices]\na = "1"', "prices.a"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=at):
            read_config(file)
