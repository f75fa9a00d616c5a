"""DuckDB and Spark read every dataset, and the SQL of docs/scale.md gives the product's own answers on both."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import report_store
import rule_cases as cases
from export_stores import put, write
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import Week
from receipts.store import Store, open_store
from receipts.workflows.datasets import ORDER, datasets
from thorough import unless_thorough

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
WEEK = Week.parse(report_store.WEEK)
SHAPE = ("model", "accelerator", "sequence_length", "chips")
Ask = Callable[[str], list[dict[str, Any]]]

SPARK = """
import json, sys
exec(sys.argv[1])
spark.sparkContext.setLogLevel("ERROR")
asked = json.load(open(sys.argv[2]))
for name, folder in asked["folders"].items():
    if name != "receipts":
        spark.read.parquet(folder).createOrReplaceTempView(name)
answers = [[row.asDict(recursive=True) for row in spark.sql(query).collect()] for query in asked["queries"]]
json.dump(answers, open(sys.argv[3], "w"), default=str)
spark.stop()
"""


def page(checkout: Path, name: str) -> str:
    """The block of code of that name."""
    text = (checkout / "docs" / "scale.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf'^```\w+ title="{name}"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Store]]:
    """A folder with an export of a store of three weeks and several shapes and lanes, and the store."""
    folder = tmp_path_factory.mktemp("engines")
    with open_store(str(folder / "store.sqlite")) as store:
        put(store, report_store.everything())
        longer = {"batch.sequence_length": 512, "measurement.tokens_per_step": 16 * 512}
        many = [
            *report_store.one("s", {**report_store.day(3), **longer}, count=2),
            *report_store.one("t", {**report_store.day(1), "model.hidden": 512}, {"seconds": 0.7}),
            *report_store.one("u", {**report_store.day(12)}, {"seconds": 0.1}),
            *report_store.one("v", {**report_store.day(6), "run.lane": "a lane/of=theirs"}),
            *report_store.one("w", {**report_store.day(6), "model.hidden": 128}, {"seconds": 0.5}),
            *report_store.one("x", {**report_store.day(2), "run.provenance": "projected"}, {"seconds": 0.01}),
            *report_store.one("z", {**report_store.day(2), "batch.micro_batch": 16, "batch.accumulation": 1}),
        ]
        ids = put(store, many)
        (best,) = report_store.one("y", {**report_store.day(4), **report_store.THREADS}, {"seconds": 0.3})
        store.retract(put(store, [best])[0], "the clock was wrong")
        store.pin("golden", ids[0])
        store.published.decide(ids[0], "ship", "it held")
        write(store, folder / "lab-export", "parquet")
        yield folder, store


@pytest.fixture(scope="module")
def duckdb(place: tuple[Path, Store], checkout: Path) -> Ask:
    """Asks DuckDB, with the view of the page and one for every other dataset."""
    engine = pytest.importorskip("duckdb")
    connection = engine.connect()
    connection.execute(page(checkout, "DuckDB").replace("'lab-export/", f"'{place[0]}/lab-export/"))
    for name in ORDER:
        if name != "receipts":
            files = f"{place[0]}/lab-export/{name}/**/*.parquet"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}', hive_partitioning = true)")

    def ask(query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
        return rows

    return ask


@pytest.fixture(scope="module")
def spark(place: tuple[Path, Store], checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Asks Spark in local mode, in a process of its own; all of a module's questions in one, in `make thorough`."""
    if not unless_thorough(usual=False, thorough=True):
        pytest.skip("Spark starts for half a minute: in `make thorough`")
    if find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("needs pyspark and Java: pip install -r requirements/spark.txt")
    folder = tmp_path_factory.mktemp("spark")
    queries = _queries(checkout)
    asked = {
        "queries": queries,
        "folders": {name: str(place[0] / "lab-export" / name) for name in ORDER},
    }
    (folder / "asked.json").write_text(json.dumps(asked))
    words = [page(checkout, "Spark"), str(folder / "asked.json"), str(folder / "answers.json")]
    done = subprocess.run(
        [sys.executable, "-c", SPARK, *words], cwd=place[0], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = dict(zip(queries, json.loads((folder / "answers.json").read_text()), strict=True))
    return lambda query: answers[query]


def _queries(checkout: Path) -> list[str]:
    return [
        page(checkout, "The frontier"),
        page(checkout, "Counts by lane"),
        DOCUMENTS,
        AXES,
        *(_named(name) for name in ORDER),
    ]


def _named(name: str) -> str:
    """Has every column of a dataset read."""
    columns = [
        f"count({field.name}) AS {field.name}_held" for field in datasets()[name].fields if field.name != "number"
    ]
    return f"SELECT count(*) AS held, {', '.join(columns)} FROM {name}"


DOCUMENTS = "SELECT id, document, started FROM receipts ORDER BY id"
AXES = "SELECT id, axes['batch.micro_batch'] AS micro FROM receipts WHERE axes['batch.micro_batch'] = '16' ORDER BY id"


@pytest.fixture(params=["duckdb", "spark"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each engine."""
    found: Ask = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def own(place: tuple[Path, Store]) -> Any:
    """The product's own weekly report of the same store."""
    as_of = datetime(2026, 4, 1, tzinfo=UTC)
    return collect(place[1], cases.rulebook(), WEEK, as_of)


def test_the_fastest_launch_of_each_shape_in_sql_is_the_peak_of_the_reports(ask: Ask, own: Any, checkout: Path) -> None:
    wanted: dict[tuple[Any, ...], float] = {}
    for lane in own.lanes:
        for item in (*lane.frontier, *lane.peaks):
            shape = (lane.name, item.shape.partition("-")[0], *(getattr(item, name) for name in SHAPE))
            rate = item.fastest_rate or item.tokens_per_second_per_chip
            wanted[shape] = max(rate, wanted.get(shape, 0.0))
    rows = ask(page(checkout, "The frontier"))
    found = {
        (row["run_lane"], f"{row['geometry'] % 2**64:016x}", *(row[name] for name in SHAPE)): row[
            "tokens_per_second_per_chip"
        ]
        for row in rows
    }
    assert found == pytest.approx(wanted)
    assert len(wanted) >= 4
    assert {row["best_of"] > 1 for row in rows} == {True, False}
    assert {row["in_week"] for row in rows} == {True, False}


def test_the_weeks_counts_in_sql_are_the_reports(ask: Ask, own: Any, checkout: Path) -> None:
    names = ("submitted", "valid", "open", "invalid", "superseded")
    wanted = {lane.name: tuple(getattr(lane.counts, name) for name in names) for lane in own.lanes}
    found = {row["run_lane"]: tuple(row[name] for name in names) for row in ask(page(checkout, "Counts by lane"))}
    assert found == {name: counts for name, counts in wanted.items() if counts[0]}
    assert sum(counts[4] for counts in found.values()) > 0


@pytest.mark.parametrize("name", ORDER)
def test_an_engine_reads_every_column_of_every_dataset(name: str, ask: Ask, place: tuple[Path, Store]) -> None:
    about = json.loads((place[0] / "lab-export" / "export.json").read_text())
    (row,) = ask(_named(name))
    assert row["held"] == about["datasets"][name]["rows"]
    required = [field.name for field in datasets()[name].fields if field.required and field.name != "number"]
    assert all(row[f"{field}_held"] == row["held"] for field in required)


def test_documents_and_times_come_out_as_they_are(ask: Ask, place: tuple[Path, Store]) -> None:
    rows: list[Mapping[str, Any]] = ask(DOCUMENTS)
    assert rows
    for row in rows:
        assert row["document"].encode() == place[1].document(row["id"])
        started = row["started"] if isinstance(row["started"], datetime) else datetime.fromisoformat(row["started"])
        wanted = place[1].entry(row["id"]).started
        assert (started.astimezone(UTC) if started.tzinfo else started.replace(tzinfo=UTC)) == wanted


def test_an_axis_is_a_key_of_the_map(ask: Ask, place: tuple[Path, Store]) -> None:
    from receipts.store import Filters, condition

    wanted = place[1].find(Filters((condition("batch.micro_batch=16"),), superseded=True))
    assert [row["id"] for row in ask(AXES)] == sorted(item.id for item in wanted) != []
