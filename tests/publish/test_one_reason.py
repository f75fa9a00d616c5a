"""Whoever prints why a comparison is rejected names one rule, and says one sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rule_cases as cases
import section_store as section
from receipts.judging.findings import refusals
from receipts.publish.comparison import answer_line
from receipts.publish.page import text
from receipts.questions.comparisons import Comparisons
from receipts.questions.neighbours import reasons
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import Week
from receipts.receipt import Parsed
from receipts.store import open_store

AT = datetime(2026, 3, 3, 9, tzinfo=UTC)
HOST_READS = {"path.witnessed.host_transfers_per_step": 2.0}
RECOMPILED = {"compile.compiles_after_warmup": 3}


def launch(name: str, day: int, leaves: dict[str, Any]) -> Parsed:
    start = AT + timedelta(days=day)
    values = {"run.launch": name, "run.label": name, "run.started": start.isoformat(), **leaves}
    values["run.finished"] = (start + timedelta(minutes=14)).isoformat()
    table = {"set": values, "drop": ["measurement.stated"], "steps": {"seconds": 1.2 - day / 10, "seed": name}}
    return cases.parsed(cases.build(table, "tpu"), f"{name}.json")


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        (HOST_READS, "R303"),
        (RECOMPILED, "R202"),
        ({**HOST_READS, **RECOMPILED}, "R303"),
        ({"batch.sequence_length": 16384, **HOST_READS}, "C101"),
    ],
)
def test_a_report_rejects_a_pair_for_the_reason_that_compare_names(
    tmp_path: Path, spoilt: dict[str, Any], code: str
) -> None:
    a, b = launch("a", 0, {}), launch("b", 1, {"numerics.learning_rate": 1e-3, **spoilt})
    book = cases.rulebook()
    with open_store(str(tmp_path / "store.sqlite")) as store:
        section.put(store, [a, b])
        (lane,) = collect(store, book, Week.of(AT), AT + timedelta(days=9)).lanes
        (refused,) = lane.refused
        (counted,) = lane.refusals
        verdict = Comparisons(store, book).compare([store.parsed(a.id)], [store.parsed(b.id)])
    first = refusals(verdict, book.rules)[0]
    assert (first.code, counted.code) == (code, code)
    assert (refused.reasons[0].code, refused.reasons[0].found) == (code, first.found)
    assert next(reasons(verdict, book.rules)).startswith(code)
    line = text(answer_line(verdict, book.rules))
    assert (f"{len(verdict.counted)} settings changed" if code == "C101" else f"({code}) on B: {first.found}") in line
