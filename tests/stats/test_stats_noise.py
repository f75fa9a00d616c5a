"""The noise floor, and whether equal launches are told apart as often as they should."""

from __future__ import annotations

import math
import random

import pytest

from receipts.stats.noise import SelfCheck, binomial_tail, combined_checks, largest_spread, pooled_sigma, self_check


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
