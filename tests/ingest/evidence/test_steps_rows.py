"""Numbers and their places, whether they ascend or not, and however large they are."""

from __future__ import annotations

import random

import pytest

from receipts.ingest.evidence.rows import Rows, rising


def filled(*numbers: int) -> Rows:
    rows = Rows()
    for number in numbers:
        rows.extend([number])
    return rows


@pytest.mark.parametrize("numbers", [(1, 5, 9), (5, 1, 9), (3, 1 << 70, 4), (-(1 << 70), 0), ()])
def test_places_are_those_in_which_numbers_came(numbers: tuple[int, ...]) -> None:
    rows = filled(*numbers)
    assert [rows.place(number) for number in numbers] == list(range(len(numbers)))
    assert list(rows) == list(numbers)
    assert len(rows) == len(numbers)
    assert rows.sorted() == sorted(numbers)
    assert rows.place(2) is None


@pytest.mark.parametrize("seed", range(20))
def test_many_numbers_at_once_have_the_places_that_they_have_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    numbers = chance.sample(range(1_000), 200)
    numbers = sorted(numbers) if seed % 2 else numbers
    many = Rows()
    at = 0
    while at < len(numbers):
        size = chance.randrange(1, 20)
        many.extend(numbers[at : at + size])
        at += size
    one = filled(*numbers)
    assert [many.place(number) for number in range(1_000)] == [one.place(number) for number in range(1_000)]
    places = many.by_number()
    assert [numbers[place] for place in (range(200) if places is None else places)] == sorted(numbers)


def test_numbers_side_by_side_are_a_run() -> None:
    rows = filled(1, 2, 5, 6)
    assert rows.run([2, 5]) == 1
    assert rows.run([2, 3]) is None
    assert rows.run([6, 7]) is None
    assert filled(2, 1, 3).run([1, 3]) is None


def test_a_number_is_beyond_where_all_ascend_and_it_is_greater() -> None:
    assert Rows().beyond(0)
    assert filled(1, 2).beyond(3)
    assert not filled(1, 2).beyond(2)
    assert not filled(2, 1).beyond(3)


def test_numbers_rise_where_each_is_greater_than_the_one_before() -> None:
    assert rising([3, 4, 9], 2)
    assert rising([], 2)
    assert not rising([3, 3], 2)
    assert not rising([2, 3], 2)
