"""The plan of a list is a value that a pure function makes of counts; and every plan gives the same list."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice, product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from receipts.receipt import Parsed
from receipts.store import Entry, Filters, Store, condition, open_store, prepare
from receipts.store.database import reading
from receipts.store.entries import value_of
from receipts.store.query import Condition, lists, meets
from receipts.store.query import lists as plan_module
from receipts.store.query.lists import AXES, COUNTED, FIRST, PAGE, SCANNED, ListPlan, Order, counted, plan_list
from receipts.store.query.terms import ColumnTest, column_of, path_of, resolve_terms
from store_receipts import judged, parsed
from thorough import unless_thorough

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("counts", "plan"),
    [
        ({}, ListPlan("scan", None, MILLION)),
        ({"label": 3, AXES: COUNTED}, ListPlan("key", "label", 3)),
        ({"host": COUNTED, AXES: 200}, ListPlan("index", AXES, 200)),
        ({"host": COUNTED, AXES: COUNTED}, ListPlan("key", "host", MILLION, common=True)),
        ({AXES: COUNTED}, ListPlan("index", AXES, MILLION, common=True)),
        ({AXES: 0, "host": COUNTED}, ListPlan("index", AXES, 0)),
    ],
)
def test_the_rarest_condition_leads(counts: Mapping[str, int], plan: ListPlan) -> None:
    assert plan_list(counts, MILLION) == plan


def test_what_a_large_share_has_leads_no_list_that_tests_columns() -> None:
    share = counted(MILLION, beside_columns=True)
    scan, lead = ListPlan("scan", None, MILLION), ListPlan("index", AXES, MILLION, common=True)
    assert counted(MILLION, beside_columns=False) == counted(10, beside_columns=True) == COUNTED
    assert plan_list({AXES: share}, MILLION, beside_columns=True) == scan
    assert plan_list({AXES: share - 1}, MILLION, beside_columns=True) == lead
    assert plan_list({AXES: COUNTED}, MILLION) == lead


def test_a_scan_ends_with_its_receipts_and_a_common_lead_is_asked_after_the_newest() -> None:
    assert list(ListPlan("key", "label", 3).pages()) == [(True, 3)]
    assert list(ListPlan("index", AXES, MILLION, common=True).pages()) == [
        *((False, FIRST), (False, 4 * FIRST)),
        *((True, FIRST), (True, MILLION)),
    ]
    scan = list(islice(ListPlan("scan", None, MILLION).pages(), 6))
    assert scan == [(False, size) for size in (FIRST, 4 * FIRST, 16 * FIRST, PAGE, PAGE, PAGE)]


def test_what_scans_many_receipts_or_reads_many_documents_is_slow() -> None:
    assert not plan_list({}, 0).slow
    assert plan_list({}, MILLION).slow
    assert not plan_list({}, SCANNED).slow
    assert plan_list({}, SCANNED, ("run.site=hall",)).slow
    assert not plan_list({AXES: COUNTED}, MILLION).slow
    assert plan_list({AXES: COUNTED}, MILLION, ("run.site=hall",)).slow
    assert not plan_list({AXES: COUNTED - 1}, MILLION, ("run.site=hall",)).slow


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
    sizes: tuple[dict[str, int], ...] = ({"FIRST": 2, "PAGE": 3}, {"FIRST": 3, "PAGE": 9, "COUNTED": 7}, {})
    ordered = {order: [row.id for row in store.find(Filters(order=order))] for order in orders}
    asked_for = list(enumerate(product(combinations(CONDITIONS, 2), sizes)))
    for at, (texts, figures) in asked_for[:: unless_thorough(4, 1)]:
        order, limit = orders[at % 3], (None, 3, 10)[at // 3 % 3]
        asked = Filters(tuple(map(condition, texts)), order=order, limit=limit)
        wanted = [name for name in ordered[order] if all(name in met[text] for text in texts)]
        with monkeypatch.context() as patched:
            for name, value in figures.items():
                for module in (plan_module, lists):
                    patched.setattr(module, name, value, raising=False)
            assert [row.id for row in store.find(asked)] == wanted[:limit], (texts, order, limit, figures)


def test_a_scan_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(plan_module, "FIRST", 16)
    monkeypatch.setattr(plan_module, "PAGE", 16)
    with open_store(str(tmp_path / "receipts.db")) as store:
        store.write([prepare(*judged(item)) for item in drawn()])
        list(store.find(Filters((condition("run.site=hall-1"),)), lambda done, total: seen.append((done, total))))
        assert seen == [(16, 40), (32, 40), (40, 40)]
        list(store.find(Filters((condition("flags.A=1"),)), lambda done, total: seen.append((0, 0))))
        assert seen[-1] == (40, 40)


def test_what_is_common_is_looked_for_among_the_newest_and_then_in_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FIRST": 3, "COUNTED": 8}.items():
        for module in (plan_module, lists):
            monkeypatch.setattr(module, name, value, raising=False)
    pages: list[int] = []
    meeting = lists._meeting

    def recorded(connection: Connection, every: Iterable[Any], *given: Any) -> Iterator[Entry]:
        def counted() -> Iterator[Any]:
            for page in every:
                pages.append(len(connection.execute(page.rows).all()))
                yield page

        return meeting(connection, counted(), *given)

    monkeypatch.setattr(lists, "_meeting", recorded)
    many = [
        parsed(
            run__label=str(at),
            run__started=f"2026-03-01T09:{at:02d}:00+00:00",
            run__finished=None,
            flags__OLD=int(at < 20),
        )
        for at in range(40)
    ]
    with open_store(str(tmp_path / "receipts.db")) as store:
        store.write([prepare(*judged(item)) for item in many])
        for text, labels, read in (
            ("flags.OLD=1", (19, 18, 17, 16, 15), [3, 12, 3, 17]),  # none among the newest: the index is asked
            ("flags.OLD=0", (39, 38, 37, 36, 35), [3, 12]),
        ):
            pages.clear()
            entries = list(store.find(Filters((condition(text),), limit=5)))
            assert [int(row.label or "") for row in entries] == list(labels)
            assert pages == read


def test_a_scan_reads_the_rows_of_those_alone_that_meet_its_conditions(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "receipts.db")) as store, reading(store.database.engine) as connection:
        terms = resolve_terms(connection, tuple(map(condition, ("lane=cpu-torch", "outcome=oom", "mfu>0.1"))))
        (page,) = lists._pages(connection, terms, plan_list({}, 1), {}, Filters(), None)
        compiled = page.rows.compile(connection, compile_kwargs={"literal_binds": True})
        (plan,) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}").all()
    assert "COVERING INDEX receipts_listed" in plan[3]
