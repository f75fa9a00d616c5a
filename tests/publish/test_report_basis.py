"""The Parquet beside a report: what it was computed from, so that its numbers can be had again from the rows."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pyarrow.parquet as pq
import pytest

import rule_cases as cases
import section_store as week
from receipts.publish.report.basis import FILES, _columns, datasets, parquet
from receipts.publish.report.render import render
from receipts.questions.week.collect import Basis, WeekData, collect_with_basis
from receipts.questions.week.interval import Week
from receipts.store import Store, open_store
from receipts.workflows.datasets import datasets as exported

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SHAPE = ("run_lane", "geometry", "depth", "sequence_length", "chips")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Gains, failures, an invalid launch, one that was retracted, and history before the week."""
    made = open_store(str(tmp_path_factory.mktemp("basis") / "store.sqlite"))
    week.put(
        made, [*week.side("older", -9, 2.5, {"numerics.learning_rate": 5}), *week.local_gain(), *week.at_target(2.31)]
    )
    week.put(made, [week.known_failure(-9, "first"), week.known_failure(2, "again"), week.launch("gone", 3)])
    week.put(made, [week.launch("left", 2, path__witnessed__attention="unfused")])
    gone = next(entry for entry in made.find() if entry.label == "gone")
    made.retract(gone.id, "a wrong run")
    return made


@pytest.fixture(scope="module")
def told(store: Store) -> tuple[WeekData, Basis]:
    return collect_with_basis(store, cases.rulebook(), Week.parse(week.WEEK), week.AS_OF)


@pytest.fixture(scope="module")
def rows(told: tuple[WeekData, Basis]) -> dict[str, list[dict[str, Any]]]:
    data, basis = told
    return {name: pq.read_table(io.BytesIO(made)).to_pylist() for name, made in parquet(basis, data).items()}


def test_the_counts_of_the_report_follow_from_its_rows(
    told: tuple[WeekData, Basis], rows: dict[str, list[dict[str, Any]]]
) -> None:
    of_week = [row for row in rows["receipts.parquet"] if row["in_interval"]]
    by_status = Counter(row["judged_status"] for row in of_week)
    counts = told[0].counts
    assert len(of_week) == counts.submitted
    assert by_status == {
        "valid": counts.valid,
        "open": counts.open,
        "invalid": counts.invalid,
        None: counts.superseded,
    }
    assert [(row["stands"], row["superseded_by"]) for row in of_week if row["judged_status"] is None] == [(False, None)]


def test_the_frontier_of_the_report_follows_from_its_rows(
    told: tuple[WeekData, Basis], rows: dict[str, list[dict[str, Any]]]
) -> None:
    rates: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in rows["receipts.parquet"]:
        sound = (row["judged_status"], row["kind"], row["outcome"], row["rate_source"])
        if sound == ("valid", "training", "ok", "steps"):  # of this store a label is a configuration
            of_shape = rates.setdefault(tuple(row[name] for name in SHAPE), {})
            of_shape.setdefault(row["label"], []).append(row["tokens_per_second_per_chip"])
    best = [max(map(geometric_mean, of_shape.values())) for of_shape in rates.values()]
    tree = json.loads(render(told[0], cases.rulebook().rules)["report.json"])
    found = [item["tokens_per_second_per_chip"] for lane in tree["lanes"] for item in lane["frontier"]["shown"]]
    assert sorted(found) == pytest.approx(sorted(best))


def test_every_receipt_of_the_report_is_a_row_and_no_row_stands_twice(
    told: tuple[WeekData, Basis], rows: dict[str, list[dict[str, Any]]]
) -> None:
    ids = [row["id"] for row in rows["receipts.parquet"]]
    assert len(ids) == len(set(ids))
    assert {item.receipt.id for item in told[0].receipts} <= set(ids)
    assert any(not row["in_interval"] and row["label"] == "older" for row in rows["receipts.parquet"])


def test_every_comparison_is_a_row_with_what_the_page_says_of_it(
    told: tuple[WeekData, Basis], rows: dict[str, list[dict[str, Any]]]
) -> None:
    (lane,) = told[0].lanes
    pairs = {(tuple(row["a"]), tuple(row["b"])): row for row in rows["comparisons.parquet"]}
    assert len(pairs) == told[0].compared
    for item in (*lane.accepted, *lane.inconclusive, *lane.refused):
        row = pairs[tuple(ref.id for ref in item.a), tuple(ref.id for ref in item.b)]
        assert (row["status"], row["effect"], row["ratio"], row["low"]) == (
            item.status,
            item.effect,
            item.ratio,
            item.low,
        )
        assert row["counted"] == list(item.counted)


def test_the_same_store_gives_the_same_bytes(store: Store, told: tuple[WeekData, Basis]) -> None:
    data, basis = collect_with_basis(store, cases.rulebook(), Week.parse(week.WEEK), week.AS_OF)
    assert parquet(basis, data) == parquet(told[1], told[0])


def test_an_empty_store_has_files_with_every_column_and_no_row(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.sqlite")) as made:
        data, basis = collect_with_basis(made, cases.rulebook(), Week.parse(week.WEEK), week.AS_OF)
    files = parquet(basis, data)
    assert set(files) == set(FILES)
    for name, dataset in datasets().items():
        table = pq.read_table(io.BytesIO(files[f"{name}.parquet"]))
        assert (table.num_rows, table.column_names) == (0, [field.name for field in dataset.fields])


def test_a_column_is_called_and_typed_as_in_an_export_and_says_what_it_is(told: tuple[WeekData, Basis]) -> None:
    data, basis = told
    schema = pq.read_schema(io.BytesIO(parquet(basis, data)["receipts.parquet"]))
    known = {field.name: field for field in exported()["receipts"].fields}
    shared = [field for field in datasets()["receipts"].fields if field.name in known]
    assert len(shared) > 40
    assert all(field == known[field.name] for field in shared)
    assert all(field.metadata[b"description"] for field in schema)
    assert schema.metadata[b"rules"].decode() == data.rules
    assert schema.metadata[b"format"] == b"receipts-report/1"


def test_the_page_on_reports_describes_every_column_that_is_the_reports_own() -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    known = {field.name for field in exported()["receipts"].fields}
    for dataset in datasets().values():
        for field in dataset.fields:
            if dataset.name == "comparisons" or field.name not in known:
                optional = "" if field.required else ", may be null"
                assert f"| `{field.name}` | {field.kind}{optional} | {field.description} |" in page


def test_a_table_holds_the_values_that_it_was_made_of() -> None:
    import pyarrow as pa

    moment = pa.timestamp("us", tz="UTC")
    types = {"text": pa.string(), "count": pa.int64(), "number": pa.float64(), "flag": pa.bool_(), "at": moment}
    wanted = pa.schema({**types, "several": pa.list_(pa.string())})
    values: list[tuple[Any, ...]] = [
        ("a", 1, 0.1, True, week.MONDAY, ["a", "b"]),
        (None,) * len(wanted.names),
        ("", -(2**62), -1e300, False, week.MONDAY.replace(microsecond=1), []),
        ("ä\x00\u2028\u202e", 2**62, 5e-324, True, week.MONDAY.replace(year=1900), ["w" * 10_000]),
    ]
    for some in (values, []):
        rows = [dict(zip(wanted.names, row, strict=True)) for row in some]
        table = pa.Table.from_arrays(_columns(iter(rows), wanted), schema=wanted)
        table.validate(full=True)
        assert table.to_pylist() == rows
