"""The noise floor, and whether equal launches are told apart as often as they should."""

from __future__ import annotations

import math
import random

import pytest

from receipts.stats.noise import (
    SelfCheck,
    binomial_tail,
    combined_checks,
    gate_check,
    largest_spread,
    pooled_sigma,
    self_check,
)


def test_pooling_gives_the_textbook_sigma_and_its_freedom() -> None:
    numpy = pytest.importorskip("numpy")
    groups = [[1.0, 1.01], [2.0, 2.03, 1.98], [5.0], [3.0, 0.0]]
    sigma = pooled_sigma(groups)
    squares = sum(numpy.var(numpy.log(group), ddof=1) * (len(group) - 1) for group in groups[:2])
    assert sigma is not None
    assert (sigma.df, sigma.source) == (3.0, "measured")
    assert sigma.value == pytest.approx(math.sqrt(squares / 3))
    assert largest_spread(groups) == pytest.approx(math.log(2.03 / 1.98))


def test_no_pair_and_copies_give_no_floor() -> None:
    assert pooled_sigma([]) is None
    assert pooled_sigma([[1.0], [2.0]]) is None
    assert pooled_sigma([[1.0, 1.0], [2.0, 2.0]]) is None
    assert largest_spread([[1.0]]) is None


def test_the_self_check_is_quiet_on_honest_pairs_and_alarmed_by_one_side() -> None:
    rng = random.Random(22)
    honest = [[math.exp(rng.gauss(0, 0.004)) for _ in range(2)] for _ in range(400)]
    check = self_check(honest)
    assert (check.pairs, check.alarm) == (400, False)
    assert check.share == pytest.approx(0.05, abs=0.03)
    assert check.excluded_one == check.faster + check.slower
    drifting = [[x, y * (1.02 if i % 8 == 0 else 1.0)] for i, (x, y) in enumerate(honest)]
    alarmed = self_check(drifting)
    assert alarmed.alarm
    assert alarmed.slower > alarmed.faster
    assert self_check(drifting, better="higher").faster == alarmed.slower


def test_the_self_check_needs_another_group() -> None:
    check = self_check([[1.0, 1.01]])
    assert (check.pairs, check.alarm, check.share) == (0, False, None)


def test_the_binomial_tail_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for successes, trials in ((0, 10), (1, 10), (7, 100), (100, 100)):
        oracle = stats.binom.sf(successes - 1, trials, 0.025)
        assert binomial_tail(successes, trials, 0.025) == pytest.approx(oracle, rel=1e-9)


def test_the_self_check_of_a_pair_rests_on_the_others_and_their_freedom() -> None:
    # One other pair, 1 % apart, is one degree of freedom: 12.7 times 1 % is what it can tell, and 10 % lies inside.
    assert self_check([[1.0, 1.1], [1.0, 1.01]]).excluded_one == 0
    assert self_check([[1.0, 1.2], [1.0, 1.01]]).slower == 1


def test_checks_of_small_classes_are_alarmed_together_where_none_is_alone() -> None:
    few = SelfCheck(pairs=10, excluded_one=1, faster=0, slower=1, alarm=False, why="")
    made = combined_checks([few] * 12)
    assert (made.pairs, made.faster, made.slower, made.share) == (120, 0, 12, 0.1)
    assert made.alarm
    assert "slower" in made.why
    assert not combined_checks([few]).alarm
    assert combined_checks([]).share is None


def test_a_gate_below_the_noise_fails_equal_launches_as_often_as_sigma_says() -> None:
    draw = random.Random(7)
    groups = [[math.exp(draw.gauss(0.0, 0.01)) for _ in range(61)] for _ in range(20)]
    one = gate_check(groups, 0.01, 0.02, 1)
    assert one.pairs == 20 * 60
    assert one.expected == pytest.approx(0.0808, abs=1e-3)  # P(N(0, σ√2) > ln 1.02)
    assert one.rate == pytest.approx(one.expected, abs=0.02)
    assert one.loud
    # What it names is quiet: by the launches a side, and by the share.
    assert one.quiet_launches is not None
    assert one.quiet_share is not None
    several = gate_check(groups, 0.01, 0.02, one.quiet_launches)
    assert (several.expected or 1.0) <= 0.01
    assert not several.loud
    assert gate_check(groups, 0.01, one.quiet_share, 1).expected == pytest.approx(0.01)


def test_a_gate_is_held_against_the_next_run_alone_and_without_pairs_says_nothing() -> None:
    slower = [[1.0, 1.03, 1.0, 1.03]]
    assert (gate_check(slower, None, 0.02, 1).failed, gate_check(slower, None, 0.02, 1).pairs) == (2, 3)
    assert (gate_check(slower, None, 0.02, 2).failed, gate_check(slower, None, 0.02, 2).pairs) == (0, 1)
    assert gate_check([[1.0]], None, 0.02, 1).rate is None
