"""The table of a difference: exact sums, and which lines may be called more than noise."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from receipts.plugins.why.difference import difference
from time_profiles import MS, launch, profile, steady

NAMES = ("gemm", "attention", "communication", "memcpy H2D", "launch-bound")
step = st.fixed_dictionaries({name: st.integers(0, 10**9).map(lambda time: time / MS) for name in NAMES})
side = st.lists(st.lists(step, min_size=1, max_size=7), min_size=1, max_size=3)


@given(side, side)
def test_lines_add_up_to_the_difference_exactly(
    a: list[list[dict[str, float]]], b: list[list[dict[str, float]]]
) -> None:
    left, right = ([launch(str(at), profile(steps)) for at, steps in enumerate(own)] for own in (a, b))
    table = difference(left, right, None, [])
    assert sum((line.change for line in table.lines), Fraction(0)) == table.change == table.b - table.a
    for line in table.lines:
        assert sum((other - own for _, own, other in line.rows), Fraction(0)) in (line.change, 0)


def standings(table) -> dict[str, str]:  # type: ignore[no-untyped-def]  # the table of `difference`
    return {line.name: line.standing for line in table.lines}


def test_a_line_of_one_trace_a_side_needs_a_third_of_the_effect() -> None:
    a, b = [launch("a", steady(gemm=80, attention=10, copy=10))], [launch("b", steady(gemm=80, attention=20, copy=14))]
    table = difference(a, b, Fraction(14 * MS), ["path.attention"])
    assert standings(table) == {"gemm": "noise", "attention": "consistent", "copy": "noise"}
    assert not table.paired


def test_a_line_outside_the_axis_is_unexpected() -> None:
    a, b = [launch("a", steady(gemm=80, attention=10))], [launch("b", steady(gemm=100, attention=10))]
    table = difference(a, b, Fraction(20 * MS), ["data.loader"])
    assert standings(table)["gemm"] == "unexpected"
    assert table.still == ("data.loader",)


def test_an_axis_that_the_table_does_not_know_makes_nothing_unexpected() -> None:
    a, b = [launch("a", steady(gemm=80))], [launch("b", steady(gemm=100))]
    assert standings(difference(a, b, None, ["flags.SOME_SWITCH"])) == {"gemm": "moved"}


def test_two_launches_a_side_hold_a_line_against_their_own_range() -> None:
    a = [launch("a1", steady(gemm=80)), launch("a2", steady(gemm=90))]
    b = [launch("b1", steady(gemm=95)), launch("b2", steady(gemm=105))]
    assert standings(difference(a, b, None, [])) == {"gemm": "noise"}
    b = [launch("b1", steady(gemm=110)), launch("b2", steady(gemm=112))]
    assert standings(difference(a, b, None, ["precision"])) == {"gemm": "consistent"}


def test_steps_that_are_set_aside_count_on_neither_side() -> None:
    a = [launch("a", profile([{"gemm": 10}, {"gemm": 90}, {"gemm": 10}], asides=["", "long", ""]))]
    b = [launch("b", profile([{"gemm": 10}, {"gemm": 10}]))]
    assert difference(a, b, None, []).change == 0


def test_classes_that_moved_by_one_ratio_are_a_clock_before_they_are_a_cause() -> None:
    a = [launch("a", steady(gemm=100, attention=50, elementwise=30, reduce=20))]
    b = [launch("b", steady(gemm=104, attention=52, elementwise=31.2, reduce=20.8))]
    assert difference(a, b, None, []).common == 1.04


def test_products_beside_a_larger_gap_may_be_feedback() -> None:
    a, b = [launch("a", steady(gemm=80, data_wait=0))], [launch("b", steady(gemm=70, data_wait=50))]
    notes = {line.name: line.note for line in difference(a, b, None, ["precision"]).lines}
    assert notes == {"gemm": "may be feedback (clock, cache)", "data wait": ""}


def test_ranks_are_laid_rank_by_rank_and_the_slowest_is_named() -> None:
    def both(name: str, *times: float):  # type: ignore[no-untyped-def]  # a launch of two ranks
        own = launch(name, steady(gemm=times[0]), rank="rank 0")
        return type(own)(name, name, {"rank 0": own.profiles["rank 0"], "rank 1": [steady(gemm=times[1])]})

    table = difference([both("a", 10, 20)], [both("b", 10, 40)], None, [])
    assert (table.ranks, table.change, table.slowest) == (("rank 0", "rank 1"), 10 * MS, ("rank 1", "rank 1"))
