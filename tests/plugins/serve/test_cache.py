"""What the server keeps of a whole store: one maker at a time, and nobody waits for it twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

import report_store
from receipts.plugins.serve.server import KEPT, Cache, Shared
from receipts.store.query.reports import store_state


def test_a_visitor_goes_on_with_the_last_value_while_the_next_is_made() -> None:
    cache, gate = Cache(), Event()

    def slow() -> str:
        gate.wait(10)
        return "new"

    assert cache.get("page", 1, lambda: "old") == "old"
    assert cache.get("page", 2, slow) == "old"
    assert cache.get("page", 2, lambda: "made twice") == "old"
    gate.set()
    cache.close()
    assert cache.get("page", 2, lambda: "made again") == "new"


def test_who_asks_first_waits_and_one_makes_it_for_all() -> None:
    cache, gate, calls = Cache(), Event(), list[int]()

    def slow() -> int:
        gate.wait(10)
        calls.append(1)
        return len(calls)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cache.get, "page", 1, slow) for _ in range(4)]
        gate.set()
        assert [item.result() for item in asked] == [1] * 4
    cache.close()


def test_a_failure_is_raised_and_not_kept() -> None:
    cache = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.get("page", 1, lambda: 1 // 0)
    assert cache.get("page", 1, lambda: 2) == 2
    cache.close()


def test_an_answer_is_shared_and_a_failure_is_not_kept() -> None:
    shared, gate, calls = Shared(), Event(), list[int]()

    def slow() -> int:
        gate.wait(10)
        calls.append(1)
        return len(calls)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(shared.get, "question", slow) for _ in range(4)]
        gate.set()
        assert [item.result() for item in asked] == [1] * 4
    assert shared.get("question", slow) == 1
    with pytest.raises(ZeroDivisionError):
        shared.get("other", lambda: 1 // 0)
    assert shared.get("other", lambda: 2) == 2
    for number in range(KEPT):
        shared.get(number, lambda: 0)
    assert shared.get("question", slow) == 2


def test_whatever_is_written_makes_another_state(tmp_path: Path) -> None:
    kept, *_, gone = report_store.everything()
    with report_store.fill(tmp_path / "store.sqlite", [kept, gone]) as store:
        states = [store_state(store.database)]
        store.published.decide(kept.id, "ship", "it holds")
        states.append(store_state(store.database))
        store.retract(kept.id, "the clock was wrong")
        states.append(store_state(store.database))
        store.purge(gone.id, "it names a person")
        states.append(store_state(store.database))
        assert store_state(store.database) == states[-1]
        assert len(set(states)) == 4
