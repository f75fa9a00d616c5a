"""An invalid launch is no sample, by metric: one predicate in Python, in SQL and in a list's conditions."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

import report_store as week
import rule_cases as cases
import section_store as section
from receipts.judging.grade import SampleRank, concerns, sample_grade, sustained, unspoilt
from receipts.judging.verdict import Finding, Level, Question, path_answer, receipt_status, tainted, undecided
from receipts.metrics import METRICS, Metric
from receipts.metrics.registry import Taint
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import Week, moment
from receipts.receipt import Parsed
from receipts.store import Filters, Store, entries, open_store
from receipts.store.database import reading
from receipts.store.entry import taint_kinds
from receipts.store.tables import receipts
from store_receipts import ready

pytestmark = pytest.mark.slow

KINDS = tuple(kind for kind in Taint if kind is not Taint.NONE)
MFU_ALONE: dict[str, Any] = {"measurement.stated": {"mfu": 0.4, "mfu_stated": "0.4"}}  # R104: of no formula, no peak


def finding(draw: random.Random) -> Finding:
    """An offense of any level, question and taints."""
    level, question = draw.choice(list(Level)), draw.choice(list(Question))
    taints = tuple(draw.sample(KINDS, draw.choice((0, 1, 1, 2))))
    return Finding("R000", "generated", level, question, taints, "run", "a", "b", "c")


def generated(count: int = 400) -> Iterator[tuple[Finding, ...]]:
    draw = random.Random(16)
    return (tuple(finding(draw) for _ in range(draw.choice((0, 1, 1, 2, 3)))) for _ in range(count))


def test_the_generated_findings_spoil_every_kind_and_leave_every_kind_alone() -> None:
    every = list(generated())
    for kind in KINDS:
        count = sum(unspoilt(path_answer(found), tainted(found), kind) for found in every)
        assert len(every) / 10 < count < 9 * len(every) / 10, (kind, count)


@pytest.mark.parametrize("metric", [*METRICS.values(), None], ids=lambda item: item.name if item else "shape")
def test_a_comparison_leaves_out_what_the_predicate_calls_spoilt(metric: Metric | None) -> None:
    launch, _ = ready()
    kind = Taint.RATE if metric is None else metric.taint
    for found in generated():
        invalid = sample_grade(launch, found, metric).rank is SampleRank.INVALID
        assert invalid == (not unspoilt(path_answer(found), tainted(found), kind)), found


def test_the_store_calls_the_same_launches_sustained(store_url: str) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "steps": {},
        "a template": {"measurement__step_durations_seconds": None},
        "a job that says ok": {"measurement": None},
        "quoted": {"run__provenance": "quoted"},
        "out of memory": {"run__outcome": "oom"},
        "nobody knows how it ended": {"run__outcome": "unknown"},
        "one kernel": {"run__kind": "microbench"},
    }
    with open_store(store_url) as store:
        known = {name: store.submit(*ready(**leaves)).id for name, leaves in kinds.items()}
        launches = {name: ready(**leaves)[0] for name, leaves in kinds.items()}
        with reading(store.database.engine) as connection:
            rows = set(connection.execute(select(receipts.c.id).where(entries.sustained_rows())).scalars())
    assert [name for name, launch in launches.items() if sustained(launch)] == ["steps"]
    assert {name for name, receipt in known.items() if receipt in rows} == {"steps"}


def test_the_store_calls_the_same_launches_samples(store_url: str) -> None:
    known: dict[str, tuple[Finding, ...]] = {}
    with open_store(store_url) as store:
        for found in generated(150):
            launch, verdict = ready()
            answers = {"status": receipt_status(found), "path": path_answer(found), "tainted": tainted(found)}
            store.submit(launch, replace(verdict, **answers, findings=found))
            known[launch.parsed.id] = found
        for kind in KINDS:
            wanted = {name for name, found in known.items() if unspoilt(path_answer(found), tainted(found), kind)}
            assert 0 < len(wanted) < len(known)
            with reading(store.database.engine) as connection:
                query = select(receipts.c.id).where(entries.unspoiled_rows(kind))
                assert set(connection.execute(query).scalars()) == wanted
                valid = set(connection.execute(select(receipts.c.id).where(entries.valid_rows(kind))).scalars())
            rows = list(store.find(Filters(())))
            assert {row.id for row in rows if row.is_sample(kind)} == wanted
            assert {row.id for row in store.find(Filters(entries.unspoiled_conditions(kind)))} == wanted
            decided = {name for name, found in known.items() if not concerns(undecided(found), kind)}
            assert valid == wanted & decided
            if kind is Taint.RATE:
                assert {row.id for row in rows if row.rate_status == "valid"} == valid
                assert {row.id for row in rows if row.rate_status == "invalid"} == set(known) - wanted


def test_every_set_of_kinds_is_read_back_as_it_was_written() -> None:
    sets = [kinds for count in range(len(KINDS) + 1) for kinds in itertools.combinations(KINDS, count)]
    assert [taint_kinds(entries.taint_text(kinds)) for kinds in sets] == sets


def with_mfu(one: Parsed) -> Parsed:
    tree = json.loads(one.raw)
    tree["measurement"]["stated"] = MFU_ALONE["measurement.stated"]
    return cases.parsed(tree, one.source)


@pytest.fixture
def mfu_alone(tmp_path: Any) -> Iterator[Store]:
    """Three launches of one configuration, of which the MFU alone is spoilt, and a faster one that diverged."""
    with open_store(str(tmp_path / "store.sqlite")) as store:
        group = [with_mfu(one) for one in section.side("stated", 0.1, 2.0)]
        diverged = section.launch("diverged", 0.6, 1.0, measurement__loss={"finite": False})
        section.put(store, [*group, diverged])
        yield store


def test_an_mfu_of_no_formula_keeps_no_rate_from_the_frontier(mfu_alone: Store) -> None:
    rows = {row.label: row for row in mfu_alone.find(Filters(()))}
    assert {row.status for row in rows.values()} == {"invalid"}
    assert {label: row.tainted for label, row in rows.items()} == {
        "stated": "mfu",
        "diverged": "rate,mfu",
    }
    data = collect(mfu_alone, cases.rulebook(), Week.parse("2026-W10"), moment(week.AS_OF), ())
    (best,) = data.lanes[0].frontier
    assert best.receipt.name == "stated"
    assert best.mfu is None
    assert (best.tokens_per_second_per_chip or 0) > 0


def test_a_shape_that_such_launches_held_is_in_the_envelope(mfu_alone: Store) -> None:
    like = mfu_alone.parsed(next(iter(mfu_alone.find(Filters(())))).id)
    (shape,) = mfu_alone.query.facts(like).shapes
    assert (shape.launches, shape.days) == (3, 1)
