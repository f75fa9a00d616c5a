"""Lists by figures are what every receipt says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import pytest

from receipts.base.errors import UsageError
from receipts.store import Filters, Store, condition, open_store
from receipts.store.query import meets
from receipts.store.query.lists import Order
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


def test_a_figure_is_bounded_by_a_number(store: Store) -> None:
    for text in ("mfu>much", "mfu>nan", "peak_bytes<NaN"):
        with pytest.raises(UsageError, match=rf"{text}: \w+ is a (number|fraction); write"):
            list(store.find(Filters((condition(text),))))
    with pytest.raises(UsageError, match=r"chips>2.5: chips is a whole number; write chips>8"):
        list(store.find(Filters((condition("chips>2.5"),))))
    assert list(store.find(Filters((condition("chips>1e30"),)))) == []
    for text in ("micro_batch=2", "micro_batch=2.0", "micro_batch=2e0"):
        found = [entry.micro_batch for entry in store.find(Filters((condition(text),)))]
        assert set(found) == {2}, text
