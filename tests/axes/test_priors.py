"""A lane may name a published spread; verdicts say whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.axes.lane import load_lanes, prior, priors
from receipts.base.errors import RuleError
from receipts.stats.log_ratio import Sigma

LANE = 'name = "mine"\nversion = 1\ntitle = "Mine"\n'


def lane(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(LANE + text, encoding="utf-8")
    return path


def test_a_lane_takes_the_spread_and_its_degrees_of_freedom(tmp_path: Path) -> None:
    name = next(item.name for item in priors().values() if "H200" in item.name)
    mine = load_lanes(lane(tmp_path, f'sigma_from = "{name.upper()}"\n'))
    assert (mine.sigma, mine.sigma_df, mine.sigma_from) == (prior(name).sigma, prior(name).df, name)
    assert str(Sigma(0.0031, 9.0, "declared", name)) == f"spread of launches 0.31 % published, not yours: {name}"


@pytest.mark.parametrize("text", ['sigma_from = "mlperf-v4.1: Z9, 1 host"\n', 'sigma_from = "x"\nsigma = 0.01\n'])
def test_a_spread_that_nobody_published_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RuleError, match="sigma_from"):
        load_lanes(lane(tmp_path, text))
