"""The axis index: written with receipts, verified on a hit, answers as the documents would; on both engines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, func, select

from receipts.axes import catalogue, difference
from receipts.axes import configuration as configuration_module
from receipts.axes.configuration import configuration
from receipts.axes.lane import Lane
from receipts.questions.sides import StoredLaunches, asked
from receipts.receipt import Parsed
from receipts.store import Filters, Store, condition, entries, index, open_store, prepare
from receipts.store import index as reindex_module
from receipts.store.address import address
from receipts.store.database import reading, writing
from receipts.store.index import coverage, reindex
from receipts.store.query import lists, terms
from receipts.store.query.axis_index import holds_all
from receipts.store.tables import axes, axis_values, configurations, placements
from store_receipts import BASE, RULEBOOK, judged, parsed
from tampering import tamper
from thorough import on_engines, unless_thorough

pytestmark = pytest.mark.slow

LANES = RULEBOOK.lanes


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def launched(seed: int, **leaves: Any) -> Parsed:
    """A receipt with steps of its own: without them it would be a copy of another launch."""
    draw = random.Random(seed)
    steps = [round(draw.gauss(0.8, 0.004), 6) for _ in range(40)]
    measured = {**json.loads(BASE.read_bytes())["measurement"], "step_durations_seconds": steps}
    return parsed(**{"measurement": measured, **leaves})


def put(store: Store, **leaves: Any) -> Parsed:
    one = launched(random.randrange(2**32), **leaves)
    store.submit(*judged(one))
    return one


def near(store: Store, one: Parsed, axis: str | None = None, limit: int = 20) -> list[tuple[str, str]]:
    """Axis and id of every candidate."""
    ran = configuration(one, LANES.of(one.receipt.run.lane))
    return [(item.axis, item.entry.id) for item in store.query.neighbours(one, ran, axis, limit)]


def counts(store: Store) -> tuple[int, ...]:
    """Rows of values, configurations, axes and placements."""
    with reading(store.database.engine) as connection:
        tables = (axis_values, configurations, axes, placements)
        return tuple(connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)


def rows(store: Store) -> list[Any]:
    """What every receipt is placed in, told without numbers."""
    with reading(store.database.engine) as connection:
        query = (
            select(placements.c.receipt, configurations.c.whole, axis_values.c.axis, axis_values.c.value)
            .join(configurations, configurations.c.seq == placements.c.configuration)
            .join(axes, axes.c.configuration == configurations.c.seq)
            .join(axis_values, axis_values.c.seq == axes.c.value)
        )
        return sorted((*row[:1], bytes(row[1]), *row[2:]) for row in connection.execute(query))


def test_launches_of_one_configuration_share_its_rows(store: Store) -> None:
    put(store)
    values, made, links, placed = counts(store)
    assert (made, placed, values) == (1, 1, links)
    put(store, run__label="again", run__host="other")
    assert counts(store) == (values, 1, links, 2)
    put(store, numerics__learning_rate=99)
    assert counts(store) == (values + 1, 2, 2 * links, 3)


def test_what_differs_in_one_axis_is_near_and_what_differs_in_two_is_not(store: Store) -> None:
    one = put(store)
    seed, batch = put(store, numerics__learning_rate=99), put(store, batch__micro_batch=4)
    put(store, numerics__learning_rate=99, batch__micro_batch=4)
    again = put(store, run__label="a replicate")
    assert set(near(store, one)) == {("numerics.learning_rate", seed.id), ("batch.micro_batch", batch.id)}
    assert near(store, one, "numerics.learning_rate") == [("numerics.learning_rate", seed.id)]
    assert near(store, one, "parallelism.tensor") == []
    assert ("numerics.learning_rate", again.id) in near(store, seed)


def test_a_receipt_that_is_not_stored_has_neighbours_too_and_one_of_them_may_have_a_value_nobody_has(
    store: Store,
) -> None:
    one = put(store)
    assert ("numerics.learning_rate", one.id) in near(store, parsed(numerics__learning_rate=12345))
    assert near(store, parsed(numerics__learning_rate=12345, batch__micro_batch=3)) == []
    assert counts(store)[1] == 1


def test_a_key_that_one_side_alone_has_is_one_axis_both_ways(store: Store) -> None:
    without = put(store, flags={"complete": True})
    with_it = put(store, flags={"complete": True, "NEW": "1"})
    assert near(store, without) == [("flags.NEW", with_it.id)]
    assert near(store, with_it) == [("flags.NEW", without.id)]
    assert near(store, without, "flags.NEW") == [("flags.NEW", with_it.id)]
    assert near(store, with_it, "flags.NEW") == [("flags.NEW", without.id)]


def test_what_follows_an_axis_moves_with_it(store: Store) -> None:
    one = put(store, parallelism__pipeline=1, parallelism__schedule="1f1b")
    other = put(store, parallelism__pipeline=2, parallelism__schedule="interleaved")
    assert near(store, one) == [("parallelism.pipeline", other.id)]
    assert near(store, one, "parallelism.schedule") == []


def test_what_else_of_a_changed_axis_is_unstated_hides_no_neighbour(store: Store) -> None:
    one = put(store, run__context=None)
    other = put(store, run__context=None, model__hidden=512, model__head_dim=None)
    assert near(store, one) == [("dimensions", other.id)]
    assert near(store, other) == [("dimensions", one.id)]


def test_launches_that_do_not_stand_or_are_of_another_kind_are_no_neighbours(store: Store) -> None:
    one, other = put(store), put(store, numerics__learning_rate=99)
    put(store, numerics__learning_rate=100, run__kind="profile")
    failed = put(store, numerics__learning_rate=99, run__outcome="oom")
    again = put(store, numerics__learning_rate=99, run__label="again")
    assert set(near(store, one)) == {("numerics.learning_rate", again.id), ("numerics.learning_rate", failed.id)}
    store.retract(again.id, "wrong")
    store.retract(failed.id, "wrong")
    assert near(store, one) == [("numerics.learning_rate", other.id)]
    store.retract(other.id, "wrong")
    assert near(store, one) == []


def test_the_newest_configurations_of_an_axis_come_first_up_to_the_limit(store: Store) -> None:
    one = put(store)
    others = [put(store, numerics__learning_rate=seed) for seed in range(50, 70)]
    assert {item for _, item in near(store, one, limit=3)} == {item.id for item in others[-3:]}
    assert len(near(store, one, limit=100)) == 20
    assert len(near(store, others[0], limit=100)) == len(near(store, others[-1], limit=100)) == 20


def test_the_newest_come_first_after_a_reindex_too(
    store: Store, made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = put(store)
    others = [put(store, numerics__learning_rate=seed) for seed in range(50, 70)]
    with writing(store.database.engine) as connection:
        for table in (axes, placements, configurations, axis_values):
            connection.execute(delete(table))
    monkeypatch.setattr("receipts.store.index.WINDOW", 8)
    assert reindex(address(made_url), LANES).placed == 21
    # The last window holds four; those of one window are numbered in the order of their digests.
    assert {item for _, item in near(store, one, limit=4)} == {item.id for item in others[-4:]}


VARIED: dict[str, tuple[Any, ...]] = {
    "numerics__learning_rate": (1, 2, 3),
    "parallelism__pipeline": (1, 2),
    "parallelism__schedule": ("1f1b", "interleaved"),
    "parallelism__tensor": (1, 2),
    "parallelism__sequence": (True, False),
    "flags": ({"complete": True}, {"complete": True, "A": "1"}, {"complete": True, "A": "2", "B": "1"}, {"A": "1"}),
    "numerics__compute_dtype": ("bf16", "fp32"),
    "run__context": ("one", "other", None),
    "model__tied_embeddings": (True, False, None),
    "run__lane": ("cpu-torch", "cpu-jax"),
}


def several(seed: int, number: int) -> list[Parsed]:
    draw = random.Random(seed)
    return [parsed(**{name: draw.choice(values) for name, values in VARIED.items()}) for _ in range(number)]


@pytest.mark.parametrize("seed", unless_thorough([0], [0, 1, 2, 3]))
def test_no_receipt_one_axis_apart_is_missed(store: Store, seed: int) -> None:
    many = several(seed, 60)
    store.write([prepare(*judged(item)) for item in many])
    pairs = 0
    for one in many[:30]:
        lane = LANES.of(one.receipt.run.lane)
        found = {item.configuration for item in store.query.neighbours(one, configuration(one, lane), None, 100)}
        for other in many:
            if other is one or other.receipt.run.lane != one.receipt.run.lane:
                continue
            apart = difference(one, other, tuple(lane.not_applicable))
            if len(apart.changed) == 1 and not apart.unknown:
                pairs += 1
                assert number_of(store, other) in found, apart.axes
    assert pairs > 5


def number_of(store: Store, one: Parsed) -> int:
    seq = store.entry(one.id).seq
    with reading(store.database.engine) as connection:
        query = select(placements.c.configuration).where(placements.c.receipt == seq)
        return connection.execute(query).scalar_one()


def with_replicates(store: Store, group: list[Parsed], lane: Lane, other: list[Parsed]) -> list[Parsed]:
    """The group and every stored launch of its configuration."""
    return asked(StoredLaunches(store), lambda _: lane, group, other, join="all").a


@pytest.mark.parametrize("seed", range(unless_thorough(1, 4)))
def test_replicates_are_the_same_by_the_index_and_by_columns(store: Store, seed: int) -> None:
    few = {name: values[:2] for name, values in VARIED.items()}
    draw = random.Random(seed)
    many = [
        launched(
            draw.randrange(2**32), **{name: draw.choice(values) for name, values in few.items() if draw.random() < 0.3}
        )
        for _ in range(40)
    ]
    store.write([prepare(*judged(item)) for item in many])

    def answers() -> list[list[str]]:
        return [[item.id for item in with_replicates(store, [one], LANES.of(one.receipt.run.lane), [])] for one in many]

    by_index = answers()
    with writing(store.database.engine) as connection:
        connection.execute(delete(placements))
    assert answers() == by_index
    assert max(map(len, by_index)) > 2


def test_fully_stated_launches_of_other_contexts_replicate_one_another(store: Store) -> None:
    one, other = put(store, run__context="one"), put(store, run__context="other")
    lane = LANES.of("cpu-torch")
    found = [item.id for item in with_replicates(store, [one], lane, [])]
    assert found == [one.id, other.id]
    with writing(store.database.engine) as connection:
        connection.execute(delete(placements))
    assert [item.id for item in with_replicates(store, [one], lane, [])] == found


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every digest of 8 bytes is one of two."""
    configuration_module.axis_part.cache_clear()
    monkeypatch.setattr(configuration_module, "eight_bytes", lambda text: len(text) % 2)
    yield
    configuration_module.axis_part.cache_clear()


@pytest.mark.usefixtures("colliding")
def test_lines_whose_digests_collide_are_told_apart(store: Store) -> None:
    one = put(store, numerics__learning_rate=1)
    put(store, numerics__learning_rate=2)
    ran = configuration(one, LANES.of("cpu-torch"))
    assert [row.id for row in store.query.line(ran, "training")] == [one.id]


@pytest.mark.usefixtures("colliding")
def test_digests_that_collide_are_told_apart(store: Store) -> None:
    one, other = put(store), put(store, numerics__learning_rate=99)
    far = put(store, numerics__learning_rate=99, batch__micro_batch=4)
    again = put(store, numerics__learning_rate=99, run__label="again")
    assert counts(store)[1:2] == (3,)
    with reading(store.database.engine) as connection:
        assert len(set(connection.execute(select(configurations.c.digest)).scalars())) < 3
    assert near(store, one, limit=500) == [("numerics.learning_rate", again.id)]
    assert set(near(store, far, limit=500)) == {("batch.micro_batch", again.id)}
    lane = LANES.of("cpu-torch")
    assert [item.id for item in with_replicates(store, [other], lane, [])] == [other.id, again.id]


def test_a_line_is_what_ran_with_other_code_wheels_image_or_driver(store: Store) -> None:
    days = iter(range(1, 20))

    def ran(**leaves: Any) -> Parsed:
        at = {"run__started": f"2026-03-{next(days):02d}T09:00:00+00:00", "run__finished": None}
        return put(store, **at, **leaves)

    first = ran()
    again = ran(run__label="again")
    others = [
        ran(code__commit="b" * 40, code__imported_digest="d" * 64),
        ran(wheels={"complete": True, "torch": {"version": "9.9"}}),
        ran(platform__driver="999.1"),
        ran(code__commit="c" * 40, code__imported_digest="e" * 64, platform__driver="999.2"),
    ]
    ran(numerics__learning_rate=99)
    ran(run__kind="profile")
    store.retract(ran(run__label="gone").id, "wrong")
    line = [first.id, again.id, *(item.id for item in others)]
    of = configuration(others[2], LANES.of("cpu-torch"))
    assert [row.id for row in store.query.line(of, "training")] == line
    (second,) = (row for row in store.find() if row.id == again.id)
    assert [row.id for row in store.query.line(of, "training", until=second.started)] == line[:2]
    unstored = configuration(parsed(platform__driver="nobody's"), LANES.of("cpu-torch"))
    assert len(store.query.line(unstored, "training")) == len(line)
    assert store.query.line(configuration(parsed(batch__micro_batch=77), LANES.of("cpu-torch")), "training") == []


def test_a_purge_takes_the_values_that_a_receipt_alone_had(store: Store) -> None:
    put(store)
    before, placed = counts(store), rows(store)
    secret = {"flags": {"complete": True, "TOKEN": "hunter2"}, "hardware__accelerator": "hunter2"}
    leak, twin = put(store, **secret), put(store, **secret)
    store.purge(leak.id, "it held a token")
    assert "hunter2" in "".join(values(store))
    store.purge(twin.id, "it held a token")
    assert "hunter2" not in "".join(values(store))
    assert (counts(store), rows(store)) == (before, placed)


def values(store: Store) -> list[str]:
    with reading(store.database.engine) as connection:
        return list(connection.execute(select(axis_values.c.value)).scalars())


def test_reindexing_gives_what_submitting_gave_whatever_was_there(store: Store, made_url: str) -> None:
    store.write([prepare(*judged(item)) for item in several(1, 30)])
    before, counted = rows(store), counts(store)
    place = address(made_url)
    assert coverage(place, LANES) == (0, 0)
    with writing(store.database.engine) as connection:
        for table in (axes, placements, configurations, axis_values):
            connection.execute(delete(table))
    assert coverage(place, LANES) == (30, 0)
    assert "does not hold 30 receipts" in coverage(place, LANES).problem
    made = reindex(place, LANES)
    assert (made.receipts, made.placed, made.damaged) == (30, 30, ())
    assert rows(store) == before
    assert counts(store) == counted
    assert coverage(place, LANES) == (0, 0)


@pytest.mark.parametrize(
    ("copied", "statement"),
    on_engines(
        [
            "DELETE FROM axes",
            "DELETE FROM axes WHERE configuration = 2",
            "UPDATE axes SET leave_one_out = 7 WHERE leave_one_out IS NOT NULL",
            "DELETE FROM axis_values",
            "UPDATE axis_values SET value = '{}'",
            "UPDATE axis_values SET axis = 'numerics.gone' WHERE axis = 'numerics.learning_rate'",
            "UPDATE axis_values SET digest = value WHERE axis = 'batch.micro_batch'",
            "UPDATE configurations SET value_numbers = (SELECT value_numbers FROM configurations LIMIT 1) WHERE seq=2",
            "UPDATE configurations SET digest = digest + 1",
            "UPDATE configurations SET lane = 'another', anchor = 'another'",
            "UPDATE placements SET configuration = 1",
            "UPDATE placements SET at = 0",
            "INSERT INTO axes (value, configuration, leave_one_out) SELECT max(value) + 1, 1, 5 FROM axes",
        ]
    ),
    indirect=["copied"],
)
def test_reindexing_all_mends_what_was_edited_or_lost_in_the_index(copied: Callable[..., str], statement: str) -> None:
    every = several(3, 12)
    url = copied("twelve", lambda url: fill(url, every))
    with open_store(url) as store:
        mended(store, url, every, statement)


def fill(url: str, every: list[Parsed]) -> None:
    with open_store(url) as store:
        store.write([prepare(*judged(item)) for item in every])


def mended(store: Store, url: str, every: list[Parsed], statement: str) -> None:
    before, counted, found = rows(store), counts(store), [near(store, item) for item in every]
    tamper(url, statement)
    reindex(address(url), LANES, everything=True)
    assert rows(store) == before
    assert counts(store) == counted
    assert [near(store, item) for item in every] == found
    assert coverage(address(url), LANES) == (0, 0)


def test_reindexing_leaves_nothing_of_what_is_purged_meanwhile(
    store: Store, made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit(*judged(parsed(run__lane="hunter2-lane")))
    (entry,) = store.find()

    def purged(*given: Any) -> list[Any]:
        made = list(read_documents(*given))
        store.purge(entry.id, "a password")
        return made

    read_documents = reindex_module._indexed
    monkeypatch.setattr(reindex_module, "_indexed", purged)
    reindex(address(made_url), LANES, everything=True)
    assert "hunter2" not in "".join(values(store))


def test_what_was_read_under_another_catalogue_is_read_again_and_leaves_nothing_behind(
    store: Store, made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = put(store), put(store, numerics__learning_rate=99)
    before, counted = rows(store), counts(store)
    monkeypatch.setattr(catalogue, "CATALOGUE_VERSION", catalogue.CATALOGUE_VERSION + 1)
    for cached in (catalogue._catalogue, catalogue.edition):
        cached.cache_clear()
    try:
        place = address(made_url)
        assert coverage(place, LANES) == (0, 2)
        lane = LANES.of("cpu-torch")
        assert not store.query.holds_lane(configuration(one, lane))
        with reading(store.database.engine) as connection:
            assert not holds_all(connection)
        assert reindex(place, LANES).placed == 2
        assert rows(store) != before
        assert counts(store) == counted
        assert near(store, one) == [("numerics.learning_rate", other.id)]
    finally:
        monkeypatch.undo()
        for cached in (catalogue._catalogue, catalogue.edition):
            cached.cache_clear()


def test_reindexing_that_is_stopped_goes_on_and_says_until_then_that_it_is_not_whole(
    store: Store, made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = several(2, 30)
    store.write([prepare(*judged(item)) for item in many])
    before = rows(store)
    with writing(store.database.engine) as connection:
        connection.execute(delete(placements))
    monkeypatch.setattr("receipts.store.index.WINDOW", 10)

    def stop(done: int, _total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    place = address(made_url)
    with pytest.raises(KeyboardInterrupt):
        reindex(place, LANES, progress=stop)
    assert coverage(place, LANES) == (10, 0)
    with reading(store.database.engine) as connection:
        assert not holds_all(connection)
    newcomer = put(store, run__label="meanwhile")
    with reading(store.database.engine) as connection:
        assert not holds_all(connection)
    oldest = next(iter(store.find(Filters(order="stored"))))
    store.purge(oldest.id, "it held a token")
    with reading(store.database.engine) as connection:
        assert not holds_all(connection)
    assert reindex(place, LANES).placed == 10
    with reading(store.database.engine) as connection:
        assert holds_all(connection)
    before = [row for row in before if row[0] != oldest.seq]
    assert [row for row in rows(store) if row[0] != store.entry(newcomer.id).seq] == before


def test_writers_and_a_reindex_side_by_side_lose_nothing_and_write_nothing_twice(made_url: str) -> None:
    with open_store(made_url) as store:
        first = several(3, 30)
        store.write([prepare(*judged(item)) for item in first])
        with writing(store.database.engine) as connection:
            connection.execute(delete(placements))
    batches = [[judged(item) for item in several(seed, 25)] for seed in range(10, 14)]

    def submit(batch: list[Any]) -> int:
        with open_store(made_url) as own:
            return sum(getattr(result, "new", False) for result in own.write([prepare(*item) for item in batch]))

    with ThreadPoolExecutor(6) as pool:
        submitted = [pool.submit(submit, batch) for batch in batches]
        made = [pool.submit(reindex, address(made_url), LANES) for _ in range(2)]
        assert [item.result() for item in submitted] == [25] * 4
        assert all(not item.result().damaged for item in made)
    with open_store(made_url) as store:
        reindex(address(made_url), LANES)
        assert coverage(address(made_url), LANES) == (0, 0)
        with reading(store.database.engine) as connection:
            for columns in ((axis_values.c.axis, axis_values.c.value), (configurations.c.whole,)):
                twice = select(*columns).group_by(*columns).having(func.count() > 1)
                assert connection.execute(twice).all() == []
        assert counts(store)[3] == 130


def test_a_configuration_that_was_rolled_back_is_written_the_next_time(store: Store) -> None:
    one = judged(parsed(numerics__learning_rate=77))
    ran = configuration(one[0].parsed, one[0].lane)

    def write_and_fail() -> None:
        with writing(store.database.engine) as connection:
            index.numbers(connection, [ran])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert counts(store) == (0, 0, 0, 0)
    store.submit(*one)
    assert counts(store)[1] == 1


CONDITIONS = (
    "numerics.learning_rate=2",
    "seed!=2",
    "numerics.learning_rate>=2",
    "parallelism.tensor=2",
    "parallelism.sequence=true",
    "parallelism.sequence=off",
    "model.tied_embeddings=-",
    "model.tied_embeddings!=-",
    "tied_embeddings=true",
    "tied_embeddings!=true",
    "flags.A=1",
    "flags.A!=1",
    "flags.A=-",
    "flags.B!=-",
    "flags.A=[12]",
    "flags.A!=[12]",
    "flags.A.value=1",
    "flags.complete=true",
    "numerics.compute_dtype=bf1*",
    "wheels.torch=-",
    "model.hidden>100",
    "path.attention=sdpa_*",
    "code.commit!=-",
    "flags.NOBODY=1",
    "flags.NOBODY!=1",
)


def test_conditions_have_the_answers_that_reading_documents_has(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    many = several(0, 20)
    many.append(parsed(flags={"complete": True, "A": "unset"}))
    store.write([prepare(*judged(item)) for item in many])
    draw = random.Random(0)
    asked = [(text,) for text in CONDITIONS] + [tuple(draw.sample(CONDITIONS, 2)) for _ in range(20)]

    def answers() -> dict[tuple[str, ...], list[str]]:
        return {texts: [row.id for row in store.find(Filters(tuple(map(condition, texts))))] for texts in asked}

    by_index = answers()
    monkeypatch.setattr(terms, "holds_all", lambda connection: False)
    assert answers() == by_index
    assert sum(0 < len(found) < len(many) for found in by_index.values()) > len(CONDITIONS)


def test_a_condition_on_an_axis_reads_no_document_where_the_index_is_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, numerics__learning_rate=5)

    def refuse(*_: object) -> None:
        raise AssertionError("a document was read")

    monkeypatch.setattr(entries, "documents_of", refuse)
    filters = Filters((condition("numerics.learning_rate=5"),))
    assert len(list(store.find(filters))) == 1


FEW_OF_MANY = (
    ("numerics.learning_rate=2", "flags.A=1"),
    ("lane=cpu-jax", "numerics.learning_rate!=2"),
    ("lane=cpu-jax", "numerics.learning_rate=1"),
    ("lane=cpu-torch", f"code.imported_digest={'c' * 64}"),
    ("lane=cpu-torch", "outcome=oom"),
    ("flags.A=1", "outcome=ok"),
    ("host=host-2", "outcome!=oom"),
    ("host=host-*", "flags.A=1"),
    (f"code.commit={'a1' * 20}", "numerics.learning_rate=1"),
    (f"code.commit!={'a1' * 20}", "lane=cpu-*"),
    ("code.commit=b*", "host!=host-1"),
    ("outcome=ok", "started>=2026-03-10", "started<2026-03-20"),
    ("lane=cpu-jax", "kind=train*"),
    ("label=early*", "numerics.learning_rate=2"),
    ("label=early*", "host=host-2"),
    ("label=early*", "lane=cpu-torch"),
    ("host=host-*", "host=*-2"),
)


def test_the_first_few_of_many_are_the_beginning_of_the_whole_list(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(0)
    day = [f"2026-03-{draw.randrange(1, 28):02d}T09:00:00+00:00" for _ in range(60)]
    few = {"numerics__learning_rate": (1, 2), "flags": VARIED["flags"], "run__lane": ("cpu-torch", "cpu-jax")}
    few["code__imported_digest"] = ("c" * 64, "d" * 64)
    few["code__commit"], few["run__host"] = ("a1" * 20, "b2" * 20), ("host-1", "host-2", "node-3")
    many = [
        parsed(
            **{name: draw.choice(values) for name, values in few.items()},
            run__started=at,
            run__label=("early-1", "early-2", "late-1")[number % 3],
            run__outcome="oom" if draw.random() < 0.2 else "ok",
        )
        for number, at in enumerate(day)
    ]
    store.write([prepare(*judged(item)) for item in many])
    store.retract(many[0].id, "wrong")
    orders: list[lists.Order] = ["newest", "oldest", "stored"]
    for number, texts in enumerate(FEW_OF_MANY):
        asked, order = tuple(map(condition, texts)), orders[number % 3]
        whole = [row.id for row in store.find(Filters(asked, order=order))]
        assert len(whole) > 2
        for limit in (1, 4, len(whole), 100):
            assert [row.id for row in store.find(Filters(asked, order=order, limit=limit))] == whole[:limit]
        with monkeypatch.context() as reading_documents:
            reading_documents.setattr(terms, "holds_all", lambda connection: False)
            assert [row.id for row in store.find(Filters(asked, order=order))] == whole
