"""Stored configurations between two, by sums of digests: all of them, and no other; on both engines."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from sqlalchemy import literal, text, update

from receipts.axes.configuration import Configuration, configuration
from receipts.receipt import Parsed
from receipts.store import Store, index, open_store
from receipts.store.database import reading, writing
from receipts.store.query import axis_index
from receipts.store.query import axis_index as between
from receipts.store.tables import configurations
from store_receipts import RULEBOOK, judged, parsed

AXES = {"numerics__learning_rate": (1, 2), "batch__micro_batch": (8, 4), "model__depth": (8, 16)}


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def ran(one: Parsed) -> Configuration:
    return configuration(one, RULEBOOK.lanes.of(one.receipt.run.lane))


def corner(moved: Collection[str], **leaves: Any) -> Parsed:
    return parsed(**{name: values[name in moved] for name, values in AXES.items()} | leaves)


def put(store: Store, moved: Collection[str], **leaves: Any) -> Parsed:
    one = corner(moved, **leaves)
    store.submit(*judged(one))
    return one


def ends(a: Parsed, b: Parsed) -> tuple[Configuration, Configuration, list[str]]:
    left, right = ran(a), ran(b)
    return left, right, sorted(left.apart(right))


def found(store: Store, a: Parsed, b: Parsed, **options: Any) -> dict[bytes, between.Between]:
    made = store.query.mixtures(*ends(a, b), "training", **options)
    return {item.configuration.whole: item for item in made}


def test_every_mixture_that_is_stored_is_found_and_the_ends_are_not(store: Store) -> None:
    subsets = [set(some) for size in range(4) for some in itertools.combinations(AXES, size)]
    stored = [put(store, some) for some in subsets]
    put(store, set(), numerics__learning_rate=99)
    put(store, set(AXES), flags={"complete": True, "NEW": "1"})
    middle = {ran(one).whole for one in stored[1:-1]}
    assert set(found(store, stored[0], stored[-1])) == middle
    assert len(middle) == 6


def test_neither_end_needs_to_be_stored(store: Store) -> None:
    middle = put(store, {"numerics__learning_rate"})
    assert set(found(store, corner([]), corner(AXES))) == {ran(middle).whole}


def test_the_launch_that_speaks_is_one_with_steps_that_ended_well_and_failures_are_told(store: Store) -> None:
    good = put(store, {"numerics__learning_rate"}, run__started="2026-03-01T00:00:00+00:00")
    put(
        store,
        {"numerics__learning_rate"},
        run__started="2026-04-01T00:00:00+00:00",
        measurement={"tokens_per_step": 4096, "stated": {"statistic": "median", "step_seconds": 0.8}},
    )
    bad = put(store, {"numerics__learning_rate"}, run__outcome="oom")
    alone = put(store, {"model__depth"}, run__outcome="oom")
    put(store, {"batch__micro_batch"}, run__kind="profile")
    made = found(store, corner([]), corner(AXES))
    item = made[ran(good).whole]
    assert item.newest is not None
    assert item.failed is not None
    assert (item.newest.id, item.launches, item.failed.id) == (good.id, 2, bad.id)
    only = made[ran(alone).whole]
    assert (only.newest, only.launches) == (None, 0)
    assert len(made) == 2


def test_what_was_retracted_lies_between_nothing(store: Store) -> None:
    middle = put(store, {"numerics__learning_rate"})
    store.retract(middle.id, "wrong")
    assert found(store, corner([]), corner(AXES)) == {}


def test_an_equal_digest_is_no_proof(store: Store) -> None:
    put(store, {"numerics__learning_rate"})
    assert len(found(store, corner([]), corner(AXES))) == 1
    with writing(store.database.engine) as connection:
        connection.execute(update(configurations).values(whole=b"0" * 16))
    assert found(store, corner([]), corner(AXES)) == {}


def test_one_axis_may_have_a_value_that_neither_side_has_where_that_is_asked_for(store: Store) -> None:
    other = []
    for moved in (set[str](), {"model__depth"}):
        other.append(put(store, moved, numerics__learning_rate=3))
    put(store, [], numerics__learning_rate=3, batch__micro_batch=2)
    assert found(store, corner([]), corner(AXES)) == {}
    made = found(store, corner([]), corner(AXES), beyond=True)
    assert set(made) == {ran(one).whole for one in other}


def test_beyond_a_dozen_axes_what_is_joined_to_an_end_is_found(store: Store) -> None:
    names = [f"F{number:02d}" for number in range(between.MAX_AT_ONCE + 2)]

    def flags(moved: Collection[str]) -> dict[str, Any]:
        return {"complete": True, **{name: "1" if name in moved else "0" for name in names}}

    a, b = parsed(flags=flags([])), parsed(flags=flags(names))
    row = [names[:count] for count in range(1, len(names))]
    stored = []
    for some in row:
        one = parsed(flags=flags(some))
        store.submit(*judged(one))
        stored.append(one)
    lone = parsed(flags=flags(names[3:8]))
    store.submit(*judged(lone))
    assert set(found(store, a, b)) == {ran(one).whole for one in stored}


def test_a_digest_is_added_up_as_the_mixture_itself_has_it() -> None:
    bare = {"run__context": "one", "numerics__optimizer": None}
    pairs = [
        (corner([]), corner(AXES)),
        (corner([], run__context="one"), corner(AXES, **bare)),
        (corner([], **bare), corner(AXES, run__context="one")),
        (corner([], **bare), corner(AXES, **bare)),
    ]
    for a, b in pairs:
        left, right, differing = ends(a, b)
        for size in range(len(differing) + 1):
            for some in map(frozenset, itertools.combinations(differing, size)):
                assert left.mixture(right, some) == left.mixed(right, some).digest


def test_every_look_up_is_one_in_an_index(store: Store) -> None:
    for some in itertools.chain.from_iterable(itertools.combinations(AXES, size) for size in range(4)):
        put(store, some)
    with reading(store.database.engine) as connection:
        postgres = connection.dialect.name == "postgresql"
        if postgres:
            connection.execute(text("SET enable_seqscan = off"))
        for lookup in (between._OF_DIGEST, axis_index._LAUNCHES, index.NUMBERS, between._VALUES):
            query = lookup.of([literal(1) for _ in lookup.key]).params(most=1)
            sql = query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
            rows = connection.execute(text(f"EXPLAIN {'' if postgres else 'QUERY PLAN '}{sql}")).all()
            plan = " ".join(str(part) for row in rows for part in row)
            assert "SCAN" not in plan if not postgres else "Seq Scan" not in plan, plan
