"""How a report reads a store: one state of it, and the same whichever way is the quicker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report_store as week
import rule_cases as cases
from receipts.judging.judge import VERSION
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.store.query.reports import SHAPE, ReportQueries, ReportScope, Rules
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


def test_the_configurations_with_the_best_mean_of_each_shape_come_first_repeated_ones_and_others(
    tmp_path: Path,
) -> None:
    with open_store(str(tmp_path / "store.sqlite")) as store:
        for model, vocabulary in (("narrow", 4096), ("wide", 8192)):
            for at, seconds in enumerate((0.8, 0.6, 0.7, 0.5)):
                leaves = {"model.vocabulary": vocabulary, "numerics.learning_rate": 1.0 + at}
                many = (launched(f"{model} {at} {one}", seconds, **leaves) for one in range(2 if at < 3 else 1))
                put(store, *many)
        queries = ReportQueries(store.database)
        found = queries.configurations(EVER, RULES, 2)
        rows = queries.results([one.number for one in found], EVER, RULES, 5)
        names = sorted({str(row.label)[:-2] for held in rows.values() for row in held})
        assert names == ["narrow 1", "narrow 2", "narrow 3", "wide 1", "wide 2", "wide 3"]
        assert {len(one.shape) for one in found} == {len(SHAPE)}
        assert sorted(len(held) for held in queries.results(list(rows), EVER, RULES, 1).values()) == [1] * 6
