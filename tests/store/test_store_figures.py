"""Lists by figures: what few receipts reach is read out of the figure's own index, and is what all of them say."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from receipts.base.errors import UsageError
from receipts.store import Filters, Store, condition, open_store
from receipts.store.query import leads, lists, plan, terms
from receipts.store.query.conditions import meets
from receipts.store.query.plan import Lead, Order
from receipts.store.sql.transactions import reading
from store_receipts import ready

pytestmark = pytest.mark.slow

CONDITIONS = (
    *("mfu>0.4", "mfu>=0.5", "mfu<0.2", "mfu=0.3", "mfu!=0.3", "mfu=-", "mfu>9", "mfu<1"),
    *("tokens_per_second>1200", "step_seconds<=2", "peak_bytes>5e8", "peak_bytes<1", "step_seconds=*"),
    *("lane=cpu-torch", "lane=cpu-*", "outcome=oom", "outcome!=oom", "kind=training", "lane=none"),
    *("micro_batch=2", "host=bench-a", "label=odd*", "started>=2026-03-02"),
)


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    """Forty launches of two lanes, three in four with figures, one in five out of memory."""
    draw = random.Random(7)
    with open_store(made_url) as opened:
        for number in range(40):
            rate, share = draw.choice((1000, 1200, 1500)), draw.choice((0.1, 0.3, 0.4, 0.5, 0.6))
            stated = {"tokens_per_second": rate, "step_seconds": round(3000 / rate, 2), "mfu": share}
            leaves: dict[str, object] = {"run__lane": draw.choice(("cpu-torch", "cpu-jax"))}
            leaves["measurement"] = {"stated": stated} if number % 4 else None
            if number % 5 == 0:
                leaves |= {"run__outcome": "oom", "memory": None}
            label = f"{'odd' if number % 2 else 'even'} {number}"
            opened.submit(*ready(run__label=label, batch__micro_batch=draw.choice((1, 2)), **leaves))
        yield opened


@pytest.mark.slow
def test_a_list_by_figures_is_what_every_receipt_says(store: Store) -> None:
    orders: tuple[Order, ...] = ("newest", "oldest", "stored")
    every = {order: list(store.find(Filters(order=order))) for order in orders}
    assert len({entry.mfu for entry in every["stored"]}) == 6
    for at, texts in enumerate(combinations(CONDITIONS, 2)):
        asked = tuple(condition(text) for text in texts)
        order, limit = orders[at % 3], (None, 3)[at % 2]
        wanted = [entry.seq for entry in every[order] if all(meets(getattr(entry, item.name), item) for item in asked)]
        found = [entry.seq for entry in store.find(Filters(asked, order=order, limit=limit))]
        assert found == wanted[:limit], (texts, order, limit)


def test_a_figure_that_many_receipts_reach_is_listed_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plan, leads):
        monkeypatch.setattr(module, "COUNTED", 3)
    reached = [entry.seq for entry in store.find() if (entry.mfu or 0) > 0.2]
    assert [entry.seq for entry in store.find(Filters((condition("mfu>0.2"),)))] == reached
    assert len(reached) > 3 * 4  # lanes and outcomes, each of which has an index of its own


def test_a_figure_is_bounded_by_a_number(store: Store) -> None:
    for text in ("mfu>much", "mfu>nan", "peak_bytes<NaN"):
        with pytest.raises(UsageError, match=rf"{text}: \w+ is a number; write"):
            list(store.find(Filters((condition(text),))))
    with pytest.raises(UsageError, match=r"chips>2.5: chips is a whole number; write chips>8"):
        list(store.find(Filters((condition("chips>2.5"),))))
    assert list(store.find(Filters((condition("chips>1e30"),)))) == []
    for text in ("micro_batch=2", "micro_batch=2.0", "micro_batch=2e0"):
        found = [entry.micro_batch for entry in store.find(Filters((condition(text),)))]
        assert set(found) == {2}, text


def test_receipts_within_bounds_are_counted_and_read_from_the_figures_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    among = {entry.seq for entry in store.find() if entry.lane == "cpu-jax" and (entry.mfu or 0) > 0.45}
    asked = tuple(map(condition, ("lane=cpu-jax", "mfu>0.45", "mfu<1", "step_seconds>0")))
    with reading(store.database.engine) as connection:
        resolved = terms.resolve(connection, asked)
        assert resolved.figures == {"mfu": (0.45, 1), "step_seconds": (0, math.inf)}
        assert leads.counts(connection, resolved, 40)[Lead("figure", "mfu")] == len(among) != 0
        by_figure = plan.ListPlan("index", Lead("figure", "mfu"), len(among))
        (page,) = leads.pages(connection, resolved, by_figure, "stored", None, None)
        assert {number for _, number in page} == among
        nobody = terms.resolve(connection, (condition("lane=none"), condition("mfu>0.45")))
        assert leads.counts(connection, nobody, 40)[Lead("figure", "mfu")] == 0


def test_what_no_launch_of_a_lane_states_is_known_without_reading_it(tmp_path: Path) -> None:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with open_store(str(tmp_path / "receipts.db")) as store:
        for number in range(120):
            store.submit(*ready(run__label=str(number), measurement=None))
        asked = Filters((condition("lane=cpu-torch"), condition("mfu>0.1")), limit=50)
        with reading(store.database.engine) as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.set_progress_handler(count, 10)
            assert list(lists.find(connection, asked)) == []
            few, steps = steps, 0
            assert len(list(lists.find(connection, asked._replace(conditions=asked.conditions[:1])))) == 50
            driver.set_progress_handler(None, 0)
    assert few < steps / 3
