"""The plan of a list is a value that a pure function makes of counts; and every plan gives the same list."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from receipts.receipt import Parsed
from receipts.store import Entry, Filters, Store, condition, open_store, prepare
from receipts.store.query import leads, lists
from receipts.store.query import plan as plan_module
from receipts.store.query.columns import ColumnTest, column_of, path_of
from receipts.store.query.conditions import Condition, meets
from receipts.store.query.documents import value_of
from receipts.store.query.plan import COUNTED, FEW, Lead, ListPlan, Order, plan_list
from receipts.store.query.terms import resolve
from store_receipts import judged, parsed
from thorough import unless_thorough

MILLION = 1_000_000
AXIS, FACET, NAME = Lead("axis", "batch.micro_batch"), Lead("column", "facet"), Lead("name", "label")
FIGURE = Lead("figure", "mfu")


@pytest.mark.parametrize(
    ("counts", "limit", "plan"),
    [
        ({}, 50, ListPlan("scan", None, MILLION)),
        ({NAME: 3, FACET: COUNTED}, 50, ListPlan("key", NAME, 3)),
        ({FACET: COUNTED, AXIS: 200}, 50, ListPlan("index", AXIS, 200)),
        ({FACET: COUNTED, AXIS: COUNTED}, 50, ListPlan("index", FACET, MILLION, walk=True)),
        ({AXIS: 5_000}, 50, ListPlan("index", AXIS, 5_000, walk=True)),
        ({AXIS: COUNTED}, None, ListPlan("index", AXIS, MILLION)),
        ({NAME: COUNTED}, 50, ListPlan("scan", None, MILLION)),
        ({FIGURE: COUNTED}, 50, ListPlan("scan", None, MILLION)),
        ({AXIS: 0, FACET: COUNTED}, 50, ListPlan("index", AXIS, 0)),
    ],
)
def test_the_rarest_condition_leads_and_common_ones_are_looked_for_in_order(
    counts: Mapping[Lead, int], limit: int | None, plan: ListPlan
) -> None:
    assert plan_list(counts, MILLION, limit) == plan


def test_a_list_in_the_order_of_storing_is_never_walked_before_its_index() -> None:
    assert not plan_list({AXIS: COUNTED}, MILLION, 50, "stored").walk


def test_what_nobody_has_is_empty_and_what_scans_many_is_slow() -> None:
    assert plan_list({AXIS: 0}, MILLION, 50).empty
    assert not plan_list({}, 0, 50).empty
    assert plan_list({}, MILLION, 50).slow
    assert not plan_list({}, FEW, 50).slow
    assert not plan_list({AXIS: COUNTED}, MILLION, 50).slow
    assert plan_list({AXIS: COUNTED}, MILLION, 50, documents=("run.site=hall",)).slow
    assert not plan_list({AXIS: FEW}, MILLION, 50, documents=("run.site=hall",)).slow


CONDITIONS = (
    *("lane=cpu-jax", "outcome!=ok", "host=node-*", "host!=node-1", "label=a*", "label=b", "started>=2026-03-11"),
    *("numerics.learning_rate=2", "numerics.learning_rate!=2", "flags.A=1", "micro_batch>1", "run.site=hall-1"),
    *("code.commit=a*", "model=*", "context=-"),
)


def drawn() -> list[Parsed]:
    draw = random.Random(5)
    return [
        parsed(
            run__lane=draw.choice(("cpu-jax", "cpu-torch")),
            run__outcome=draw.choice(("ok", "ok", "oom")),
            run__host=draw.choice(("node-1", "node-2", "other")),
            run__label=draw.choice(("a1", "a2", "b")),
            run__site=draw.choice(("hall-1", "hall-2")),
            run__context=draw.choice(("one", None)),
            run__started=f"2026-03-{draw.randrange(1, 21):02d}T09:00:00+00:00",
            run__finished=None,
            numerics__learning_rate=draw.choice((1, 2)),
            batch__micro_batch=draw.choice((1, 2)),
            code__commit=draw.choice(("a" * 40, "b" * 40)),
            flags={"complete": True, "A": draw.choice(("1", "2"))},
        )
        for _ in range(40)
    ]


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def meets_in_document(entry: Entry, document: Parsed, item: Condition) -> bool:
    """By reading the document, and the row for what only it has."""
    column = column_of(item.name)
    if column is not None:
        return ColumnTest(column, item).meets(getattr(entry, column))
    return meets(value_of(document, path_of(item.name)), item)


@pytest.mark.slow
def test_every_plan_gives_what_reading_every_document_gives(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    many = drawn()
    store.write([prepare(*judged(item)) for item in many])
    store.retract(many[0].id, "wrong")
    every = [row.id for row in store.find()]
    rows = {name: (store.entry(name), store.parsed(name)) for name in every}
    met = {text: {name for name in every if meets_in_document(*rows[name], condition(text))} for text in CONDITIONS}
    orders: tuple[Order, ...] = ("newest", "oldest", "stored")
    plans: tuple[dict[str, int], ...] = ({"FEW": 0, "COUNTED": 100}, {"FEW": 0, "DEARER": 1, "COUNTED": 7}, {})
    ordered = {order: [row.id for row in store.find(Filters(order=order))] for order in orders}
    asked_for = list(enumerate(product(combinations(CONDITIONS, 2), plans)))
    for at, (texts, figures) in asked_for[:: unless_thorough(4, 1)]:
        order, limit = orders[at % 3], (None, 3, 10)[at // 3 % 3]
        asked = Filters(tuple(map(condition, texts)), order=order, limit=limit)
        wanted = [name for name in ordered[order] if all(name in met[text] for text in texts)]
        with monkeypatch.context() as patched:
            for name, value in figures.items():
                for module in (plan_module, leads):
                    patched.setattr(module, name, value, raising=False)
            assert [row.id for row in store.find(asked)] == wanted[:limit], (texts, order, limit, figures)


def test_a_scan_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(leads, "PAGE", 16)
    with open_store(str(tmp_path / "receipts.db")) as store:
        store.write([prepare(*judged(item)) for item in drawn()])
        list(store.find(Filters((condition("run.site=hall-1"),)), lambda done, total: seen.append((done, total))))
        assert seen == [(16, 40), (32, 40), (40, 40)]
        list(store.find(Filters((condition("flags.A=1"),)), lambda done, total: seen.append((0, 0))))
        assert seen[-1] == (40, 40)


def test_what_was_common_long_ago_is_not_looked_for_among_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[int] = []
    walk = lists._walk

    def recorded(*given: Any) -> Iterator[Any]:
        for page in walk(*given):
            pages.append(len(page))
            yield page

    monkeypatch.setattr(lists, "_walk", recorded)
    for name, value in {"FEW": 0, "DEARER": 1, "COUNTED": 15}.items():
        for module in (plan_module, leads):
            monkeypatch.setattr(module, name, value, raising=False)
    many = [
        parsed(
            run__label=str(at),
            run__started=f"2026-03-01T09:{at:02d}:00+00:00",
            run__finished=None,
            flags__OLD=int(at < 20),
            flags__FIFTH=int(at % 5 == 0),
        )
        for at in range(40)
    ]
    with open_store(str(tmp_path / "receipts.db")) as store:
        store.write([prepare(*judged(item)) for item in many])
        for text, labels, looked_at in (
            ("flags.OLD=1", (19, 18, 17, 16, 15), [10]),  # no hit in ten: the index is asked
            ("flags.FIFTH=1", (35, 30, 25, 20, 15), [10, 30]),
            ("flags.OLD=0", (39, 38, 37, 36, 35), [10]),
        ):
            pages.clear()
            entries = store.find(Filters((condition(text),), limit=5))
            assert [int(row.label or "") for row in entries] == list(labels)
            assert pages == looked_at


def test_of_what_is_common_an_index_reads_the_newest_launches_of_each_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    for module in (plan_module, leads):
        monkeypatch.setattr(module, "COUNTED", 5)
    many = [parsed(run__label=str(at), run__started=f"2026-03-01T09:{at % 60:02d}:00+00:00") for at in range(240)]
    with open_store(str(tmp_path / "receipts.db")) as store:
        store.write([prepare(*judged(item)) for item in many])
        with store.database.reading() as connection:
            terms = resolve(connection, (condition("batch.micro_batch>0"),))
            planned = plan_list(leads.counts(connection, terms, 240), 240, 2)
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(count, 10)
            read = []
            for limit in (2, None):
                steps = 0
                first = next(leads.pages(connection, terms, planned, "newest", None, limit))
                read.append((len(first), steps))
            driver.set_progress_handler(None, 0)
    assert [rows for rows, _ in read] == [4, 240]
    assert read[0][1] < read[1][1] / 10
