"""How a report reads a store: one state of it, and the same whichever way is the quicker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report_store as week
import rule_cases as cases
from receipts.judging.judge import VERSION
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.store.query.reports import ReportQueries, ReportScope, Rules
from receipts.workflows.submit import submit

BOOK = cases.rulebook()
EVER = ReportScope(datetime(2030, 1, 1, tzinfo=UTC))
RULES = Rules(BOOK.rules.digest, VERSION)


def launched(name: str, seconds: float, **changes: Any) -> Parsed:
    """A valid launch of the clean CPU receipt; its steps follow from its name."""
    (made,) = week.one(name, {"run.label": name, **changes}, {"seconds": seconds})
    return made


def put(store: Store, *receipts: Parsed) -> None:
    assert all(item.stored for item in submit([Document(item.raw, item.source) for item in receipts], store, BOOK))


def best(store: Store, most: int) -> Sequence[str]:
    return sorted(str(row.label) for row in ReportQueries(store.database).best(EVER, RULES, most))


def test_what_is_written_meanwhile_is_not_read_within_one_state(tmp_path: Path) -> None:
    place = str(tmp_path / "store.sqlite")
    with open_store(place) as store, open_store(place) as other:
        put(store, launched("before", 2.0))
        with store.one_state():
            with store.one_state():
                assert len(list(store.find())) == 1
            put(other, launched("meanwhile", 1.0))
            assert len(list(store.find())) == 1
        assert len(list(store.find())) == 2


def test_the_best_of_each_shape_come_first(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.sqlite")) as store:
        for model, vocabulary in (("narrow", 4096), ("wide", 8192)):
            made = (launched(f"{model} {at}", 0.6 + at / 10, **{"model.vocabulary": vocabulary}) for at in (2, 0, 1, 3))
            put(store, *made)
        assert best(store, 2) == ["narrow 0", "narrow 1", "wide 0", "wide 1"]
