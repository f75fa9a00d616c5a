"""An export is one state of the store, whole or not there; what comes back from it is what went in."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import report_store
import rule_cases as cases
from command_line import Shell
from export_stores import content, fill, in_order, put, rows_of, take, write
from receipts.base.errors import InputError, StoreError, UsageError
from receipts.plugins.exchange.export import ExportOptions, Format, export
from receipts.plugins.exchange.rows import NOWHERE, Partition, week
from receipts.plugins.exchange.source import source
from receipts.receipt import Document
from receipts.store import Filters, Store, condition, open_store
from receipts.store.snapshot import Snapshot
from receipts.store.stale import Scope, Stale
from receipts.workflows.audit import audit
from receipts.workflows.datasets import ORDER, datasets
from receipts.workflows.submit import submit
from store_receipts import raw
from thorough import unless_thorough

pytestmark = pytest.mark.slow

LOSSLESS: tuple[Format, ...] = ("parquet", "jsonl")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A store with something in each table."""
    with fill(store_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The same, made once, for tests that only read it."""
    with fill(str(tmp_path_factory.mktemp("filled") / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    """A new store."""
    with open_store(str(tmp_path / "empty.sqlite")) as opened:
        yield opened


# The way back


@pytest.mark.parametrize("form", LOSSLESS)
def test_what_is_imported_into_an_empty_store_exports_as_it_came(form: Format, store: Store, tmp_path: Path) -> None:
    write(store, tmp_path / "out", form)
    with open_store(str(tmp_path / "other.sqlite")) as other:
        done = take(tmp_path / "out", other)
        assert (done.notes, done.left_out) == ([], 0)
        write(other, tmp_path / "again", form)
        assert content(tmp_path / "again") == content(tmp_path / "out")
        for name in ("pins", "decisions", "quotes", "claims", "claim_verdicts"):
            assert in_order(tmp_path / "again", name) == in_order(tmp_path / "out", name)
        assert set(content(tmp_path / "out")) == set(ORDER) - {"seals", "erased"}


def test_an_import_goes_into_either_engine(filled: Store, store_url: str, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    with open_store(store_url) as other:
        take(tmp_path / "out", other)
        write(other, tmp_path / "again", "jsonl")
        assert content(tmp_path / "again") == content(tmp_path / "out")
        assert audit(other, cases.rulebook()).faults == ()


@pytest.mark.parametrize("form", LOSSLESS)
def test_an_import_done_again_changes_nothing(form: Format, filled: Store, empty: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", form)
    first = take(tmp_path / "out", empty)
    before = write(empty, tmp_path / "before", form).rows
    second = take(tmp_path / "out", empty)
    assert sum(second.new.values()) == 0
    assert second.sealed == 0
    assert second.known["receipts"] == first.new["receipts"] > 0
    assert write(empty, tmp_path / "after", form).rows == before


def test_an_import_that_was_stopped_left_nothing_and_is_done_again(filled: Store, empty: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out.jsonl", "jsonl")
    whole = source(tmp_path / "out.jsonl")

    class Stopped(Exception):
        pass

    def cut() -> Iterator[tuple[str, list[dict[str, object]]]]:
        for name, rows in whole.parts():
            if name == "comparisons":
                raise Stopped
            yield name, rows

    from dataclasses import replace

    from receipts.plugins.exchange.store_import import import_store

    with pytest.raises(Stopped):
        import_store(replace(whole, parts=cut), empty, cases.rulebook())
    assert list(empty.find(Filters(superseded=True))) == []
    take(tmp_path / "out.jsonl", empty)
    write(empty, tmp_path / "again.jsonl", "jsonl")
    assert content(tmp_path / "again.jsonl") == content(tmp_path / "out.jsonl")


@pytest.mark.parametrize("form", LOSSLESS)
def test_more_verdicts_than_a_part_has_rows_stay_with_their_receipts(
    form: Format, empty: Store, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "judged.sqlite")) as judged:
        receipts = report_store.launches("a", 3)
        verdicts = [
            item.verdict
            for item in submit([Document(item.raw, item.source) for item in receipts], judged, cases.rulebook())
        ]
        numbers = {entry.id: entry.seq for entry in judged.entries([item.id for item in receipts])}
        again = [(item, numbers[item.receipt]) for item in verdicts if item is not None]
        for _ in range(100):
            Stale(judged, Scope("", "")).record(again)
        write(judged, tmp_path / "out", form)
    done = take(tmp_path / "out", empty)
    assert (done.new["receipts"], done.new["verdicts"]) == (3, 303)


@pytest.mark.parametrize("form", LOSSLESS)
def test_an_empty_store_goes_out_and_comes_back(form: Format, empty: Store, tmp_path: Path) -> None:
    write(empty, tmp_path / "out", form)
    with open_store(str(tmp_path / "other.sqlite")) as other:
        done = take(tmp_path / "out", other)
        assert sum(done.new.values()) == 0


def test_bytes_come_back_blank_for_blank(empty: Store, tmp_path: Path) -> None:
    odd = [
        raw().replace(b"{", b"{\r\n\t ", 1) + b"\n\n",
        raw(run__label='a "quote", a \\ and a \u2028 line, 日本語 \U0001f600'),
        json.dumps(json.loads(raw()), indent=3).encode(),
        json.dumps(json.loads(raw(run__label="é")), ensure_ascii=False).encode(),
    ]
    assert all(item.stored for item in submit([Document(item, "odd") for item in odd], empty, cases.rulebook()))
    for form in LOSSLESS:
        write(empty, tmp_path / form, form)
        with open_store(str(tmp_path / f"{form}.sqlite")) as other:
            take(tmp_path / form, other)
            found = [other.document(hashlib.sha256(item).hexdigest()) for item in odd]
            assert found == odd


@settings(max_examples=unless_thorough(3, 15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "run__label": st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=12),
                "run__lane": st.sampled_from(["cpu-torch", "Größe/=%2F", "x" * 300, "a:b*c?", "..", "0042"]),
                "batch__micro_batch": st.integers(1, 64),
                "run__finished": st.sampled_from([None, "2026-01-01T00:00:00+00:00", "2025-12-29T01:00:00+02:00"]),
            }
        ),
        max_size=3,
    )
)
def test_any_receipts_come_back(tmp_path_factory: pytest.TempPathFactory, leaves: list[dict[str, object]]) -> None:
    folder = tmp_path_factory.mktemp("any")
    documents = [raw(**{**item, "run__started": "2025-12-28T00:00:00+00:00"}) for item in leaves]
    with open_store(str(folder / "one.sqlite")) as one, open_store(str(folder / "two.sqlite")) as two:
        stored = list(submit([Document(item, "any") for item in documents], one, cases.rulebook()))
        assert all(item.stored for item in stored), [str(item.error) for item in stored]
        write(one, folder / "out", "parquet")
        take(folder / "out", two)
        write(two, folder / "again", "parquet")
        assert content(folder / "again") == content(folder / "out")
        lanes = {item["run_lane"] for item in rows_of(folder / "out", "receipts")}
        assert lanes == {str(item["run__lane"])[:200] for item in leaves}


# What is written


def test_receipts_lie_by_lane_and_the_week_in_which_they_finished(filled: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    folders = {path.parent.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*/week=*/*")}
    weeks = {"lane=cpu-torch/week=2026-W10", "lane=cpu-torch/week=2026-W11"}
    assert folders == {f"{name}/{part}" for name in ("receipts", "verdicts") for part in weeks}
    assert week(datetime(2026, 1, 4, 23, 59, tzinfo=UTC)) == "2026-W01"
    assert week(datetime.fromisoformat("2026-01-05T01:00:00+02:00")) == "2026-W01"


def test_a_folder_is_named_so_that_every_file_system_takes_it() -> None:
    assert Partition("2026-W10", "a/b=c%*").folder == "lane=a%2Fb%3Dc%25%2A/week=2026-W10"
    assert Partition("2026-W10", "").folder.startswith("lane=__HIVE_DEFAULT_PARTITION__/")
    long = [Partition("w", "é" * 190 + tail).folder.split("/")[0] for tail in "ab"]
    assert len(set(long)) == 2
    assert all(len(name.encode()) <= 255 for name in long)


def test_a_row_has_standing_the_last_verdict_and_every_axis(filled: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    rows = {row["id"]: row for row in rows_of(tmp_path / "out", "receipts")}
    said = {item.receipt: item for item in filled.supersessions()}
    assert {name for name, row in rows.items() if not row["stands"]} == set(said) & set(rows)
    for name, row in rows.items():
        assert (row["superseded_by"], row["superseded_reason"]) == (
            (said[name].successor, said[name].reason) if name in said else (None, None)
        )
        last = [item for item in filled.verdicts(name) if item.kind == "receipt"][-1]
        assert (row["judged_status"], row["judged_rules"]) == (last.status, last.rules)
        assert row["judged_taints"] == last.document["tainted"]
    written = [pq.read_table(path, columns=["axes"]) for path in (tmp_path / "out" / "receipts").rglob("*.parquet")]
    axes = [dict(row) for table in written for row in table["axes"].to_pylist()]
    assert {row["batch.micro_batch"] for row in axes} >= {"8", "64"}
    entry = next(filled.find())
    assert all(rows[entry.id][name] == getattr(entry, name) for name in ("mfu", "step_seconds", "chips", "started"))


def test_a_filter_leaves_out_what_speaks_of_others(filled: Store, empty: Store, tmp_path: Path) -> None:
    chosen = Filters((condition("outcome=oom"),), superseded=True)
    done = write(filled, tmp_path / "out", "parquet", ExportOptions(chosen))
    assert done.rows["receipts"] == 2
    assert {row["outcome"] for row in rows_of(tmp_path / "out", "receipts")} == {"oom"}
    assert (done.rows["comparisons"], done.rows["pins"], done.rows["seals"], done.rows["claims"]) == (0, 0, 0, 0)
    assert done.rows["purges"] == 1
    take(tmp_path / "out", empty)
    assert audit(empty, cases.rulebook()).faults == ()


def test_times_choose_by_the_end_of_the_run(filled: Store, tmp_path: Path) -> None:
    since = datetime(2026, 3, 9, tzinfo=UTC)
    late = write(filled, tmp_path / "late.jsonl", "jsonl", ExportOptions(since=since))
    early = write(filled, tmp_path / "early.jsonl", "jsonl", ExportOptions(until=since))
    assert late.rows["receipts"] == 1
    assert early.rows["receipts"] == len(list(filled.find(Filters(superseded=True)))) - 1


def test_what_a_receipt_that_stayed_behind_superseded_does_not_stand_elsewhere(
    filled: Store, empty: Store, tmp_path: Path
) -> None:
    write(filled, tmp_path / "early", "parquet", ExportOptions(until=datetime(2026, 3, 9, tzinfo=UTC)))
    write(filled, tmp_path / "whole", "parquet")
    take(tmp_path / "early", empty)
    fallen = next(item for item in filled.supersessions() if item.reason == "it ran on a busy host")
    assert not empty.entry(fallen.receipt).stands
    assert audit(empty, cases.rulebook()).faults == ()
    take(tmp_path / "whole", empty)
    assert empty.entry(fallen.receipt).superseded_by == fallen.successor


def test_csv_has_the_columns_and_says_what_stands(filled: Store, tmp_path: Path) -> None:
    done = write(filled, tmp_path / "out.csv", "csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert done.rows == {"receipts": len(rows)}
    assert {row["id"] for row in rows} == {item.id for item in filled.find(Filters(superseded=True))}
    assert {row["stands"] for row in rows} == {"true", "false"}
    assert {row["week"] for row in rows} == {"2026-W10", "2026-W11"}


def test_writers_go_on_and_are_not_in_an_export_that_began_before(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(list(store.find(Filters(superseded=True))))
    said = len(store.supersessions())
    (standing, *_) = store.find()
    places = Snapshot.places

    def late(self: Snapshot, filters: Filters | None = None) -> Iterator[object]:
        found = list(places(self, filters))
        put(store, cases.group(cases.build({"set": {"batch.micro_batch": 2}}), "late", 1))
        store.retract(standing.id, "it came too late")
        yield from found

    monkeypatch.setattr(Snapshot, "places", late)
    done = write(store, tmp_path / "out", "parquet")
    assert done.rows["receipts"] == done.rows["verdicts"] == before
    assert done.rows["supersessions"] == said
    assert next(row for row in rows_of(tmp_path / "out", "receipts") if row["id"] == standing.id)["stands"]
    assert len(list(store.find(Filters(superseded=True)))) == before + 1


# Never half


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_a_target_that_is_there_is_left_alone_unless_forced(form: Format, filled: Store, tmp_path: Path) -> None:
    place = tmp_path / "out"
    write(filled, place, form)
    before = {path: path.stat().st_mtime_ns for path in [place, *place.rglob("*")]}
    with pytest.raises(UsageError, match="--force"):
        write(filled, place, form)
    assert {path: path.stat().st_mtime_ns for path in [place, *place.rglob("*")]} == before
    write(filled, place, form, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_with_anything_else_in_it_is_never_replaced(filled: Store, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.md").write_text("years of work")
    with pytest.raises(UsageError, match="left alone"):
        write(filled, tmp_path / "thesis", "parquet", force=True)
    assert (tmp_path / "thesis" / "chapter.md").read_text() == "years of work"


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_an_export_that_fails_leaves_nothing_and_what_was_there(form: Format, filled: Store, tmp_path: Path) -> None:
    place = tmp_path / "out"
    write(filled, place, form)
    before = sorted(path.name for path in place.rglob("*"))

    def broken(done: int, total: int) -> None:
        raise StoreError("the store went away")

    with pytest.raises(StoreError):
        export(filled, place, form, ExportOptions(), force=True, progress=broken)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sorted(path.name for path in place.rglob("*")) == before
    with pytest.raises(StoreError):
        export(filled, tmp_path / "new", form, ExportOptions(), progress=broken)
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_written_is_told(filled: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        write(filled, tmp_path / "no" / "out", "parquet")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name a folder"):
        write(filled, tmp_path / "file", "parquet", force=True)


# What is refused on the way back


def _lines(place: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]


def _rewrite(place: Path, rows: list[dict[str, object]]) -> None:
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_document_that_was_changed_refuses_the_export(filled: Store, empty: Store, tmp_path: Path) -> None:
    place = tmp_path / "out.jsonl"
    write(filled, place, "jsonl")
    rows = _lines(place)
    chosen = [row for row in rows if row.get("in") == "receipts"][:3]
    chosen[0]["document"] = str(chosen[0]["document"]).replace("measured", "quoted", 1)
    none = json.dumps({"hello": "world"})
    chosen[1] |= {"document": none, "id": hashlib.sha256(none.encode()).hexdigest()}
    verdict = next(row for row in rows if row.get("in") == "verdicts" and row["receipt"] == chosen[2]["id"])
    verdict["status"] = "invalid"
    _rewrite(place, rows)
    with pytest.raises(InputError) as refused:
        take(place, empty)
    told = str(refused.value)
    assert f"receipt {str(chosen[0]['id'])[:12]}: its bytes are not those of that id" in told
    assert f"receipt {str(chosen[1]['id'])[:12]}" in told
    assert "its columns and its document do not agree" in told
    assert "nothing was imported" in told
    assert list(empty.find(Filters(superseded=True))) == []


@pytest.mark.parametrize("change", [{"status": "invalid"}, {"path_answer": "left"}])
def test_a_receipt_with_another_status_than_its_first_verdict_is_refused(
    change: dict[str, str], filled: Store, empty: Store, tmp_path: Path
) -> None:
    place = tmp_path / "out.jsonl"
    write(filled, place, "jsonl")
    rows = _lines(place)
    chosen = next(row for row in rows if row.get("in") == "receipts" and row["status"] == "valid")
    chosen |= change
    _rewrite(place, rows)
    with pytest.raises(InputError, match=f"{str(chosen['id'])[:12]}: its row says"):
        take(place, empty)
    assert list(empty.find(Filters(superseded=True))) == []


def _without(rows: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    """All but the first row of a dataset."""
    at = next(at for at, row in enumerate(rows) if row.get("in") == name)
    return rows[:at] + rows[at + 1 :]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[:-1], "cut off"),
        (lambda rows: _without(rows, "decisions"), "decisions: its last line says"),
        (lambda rows: _without(rows, "receipts"), "receipts: its last line says"),
        (lambda rows: [{**rows[0], "version": 2}, *rows[1:]], "upgrade"),
        (lambda rows: [{**rows[0], "format": "other"}, *rows[1:]], "not an export"),
        (lambda rows: [rows[0], {"in": "receipt"}, *rows[1:]], "there is no dataset 'receipt'"),
        (
            lambda rows: [rows[0], {**rows[1], "written_at": "yesterday"}, *rows[2:]],
            "line 2: written_at is no timestamp",
        ),
        (lambda rows: [rows[0], {**rows[1], "reason": None}, *rows[2:]], "line 2: reason is missing"),
    ],
)
def test_a_damaged_file_is_refused_by_line(
    change: object, says: str, filled: Store, empty: Store, tmp_path: Path
) -> None:
    place = tmp_path / "out.jsonl"
    write(filled, place, "jsonl")
    _rewrite(place, change(_lines(place)))  # type: ignore[operator]  # a function of the rows
    with pytest.raises(InputError, match=re.escape(says)):
        take(place, empty)


def test_a_folder_that_lost_a_file_is_refused_with_all_that_is_missing(
    filled: Store, empty: Store, tmp_path: Path
) -> None:
    write(filled, tmp_path / "out", "parquet")
    (tmp_path / "out" / "pins" / "part-00000.parquet").unlink()
    claims = tmp_path / "out" / "claims" / "part-00000.parquet"
    claims.write_bytes(claims.read_bytes()[:-1])
    with pytest.raises(InputError) as told:
        take(tmp_path / "out", empty)
    assert {item.at.split("/")[0] for item in told.value.problems} == {"pins", "claims"}
    assert not list(empty.find())


def test_an_export_cannot_name_files_outside_itself(filled: Store, empty: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    about = json.loads((tmp_path / "out" / "export.json").read_text())
    about["datasets"]["pins"]["files"] = {"../secret.parquet": 1}
    (tmp_path / "out" / "export.json").write_text(json.dumps(about))
    (tmp_path / "secret.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"\.\./secret.parquet: it is not there"):
        take(tmp_path / "out", empty)


# The contract


def test_types_are_those_that_every_engine_reads(filled: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    plain = {pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", tz="UTC")}
    for path in (tmp_path / "out").rglob("*.parquet"):
        found = pq.ParquetFile(path)
        for field in found.schema_arrow:
            assert re.fullmatch(r"[a-z_][a-z0-9_]*", field.name), field
            kind = field.type
            if pa.types.is_map(kind):
                assert (kind.key_type, kind.item_type) == (pa.string(), pa.string())
            elif pa.types.is_list(kind):
                inner = (
                    [item.type for item in kind.value_type]
                    if pa.types.is_struct(kind.value_type)
                    else [kind.value_type]
                )
                assert set(inner) <= plain
            else:
                assert kind in plain, field
        assert {found.metadata.row_group(0).column(0).compression for _ in [0] if found.num_row_groups} <= {"ZSTD"}
        # A folder's name is no column of the file: BigQuery refuses what stands in both.
        assert {"lane", "week"} & set(found.schema_arrow.names) == set()


def test_a_field_says_what_it_is_where_it_stands_and_in_which_unit(filled: Store, tmp_path: Path) -> None:
    write(filled, tmp_path / "out", "parquet")
    (path, *_) = sorted((tmp_path / "out" / "receipts").rglob("*.parquet"))
    schema = pq.read_schema(path)
    assert schema.field("sequence_length").metadata == {
        b"description": b"batch.sequence_length, tokens",
        b"path": b"$.batch.sequence_length",
        b"unit": b"tokens",
    }
    assert all(b"description" in (field.metadata or {}) for field in schema)
    assert schema.metadata[b"format"] == b"receipts-export/1"


def test_the_page_describes_the_datasets_that_are_written(checkout: Path) -> None:
    from receipts.workflows.datasets import as_markdown

    page = (checkout / "docs" / "export.md").read_text(encoding="utf-8")
    assert page.endswith(f"\n{as_markdown()}"), (
        "run: python -m receipts.workflows.datasets, and put it at the end of the page"
    )


def test_every_column_of_every_table_is_exported_or_named_here() -> None:
    from receipts.store.tables import metadata

    elsewhere = {"documents", "subjects", "claim_subjects", "stores", "verdicts"}  # in rows of receipts and verdicts
    elsewhere |= {"tokens", "trusted_keys"}  # whom one store lets in, and whose signatures it counts
    rebuilt = {"axes", "axis_values", "configurations", "extracts", "placements", "signatures"}
    assert set(metadata.tables) - elsewhere - rebuilt == set(datasets()) - {"verdicts", "comparisons"}
    names = {field.name for field in datasets()["receipts"].fields}
    columns = {column.name for column in metadata.tables["receipts"].columns} - {"seq", "lane"}
    assert columns <= names


def test_an_empty_dataset_has_its_columns(empty: Store, tmp_path: Path) -> None:
    write(empty, tmp_path / "out", "parquet")
    for name in ORDER:
        (path,) = (tmp_path / "out" / name).rglob("*.parquet")
        assert pq.read_schema(path).names == [field.name for field in datasets()[name].fields]
    assert (tmp_path / "out" / "receipts" / NOWHERE.folder).is_dir()


# The commands


def test_the_commands_say_what_they_did(shell: Shell, tmp_path: Path) -> None:
    fill(str(tmp_path / "one.sqlite")).close()
    done = shell("--store", str(tmp_path / "one.sqlite"), "export", str(tmp_path / "out"))
    assert (done.code, "11 receipts" in " ".join(done.out.split())) == (0, True)
    again = shell("--store", str(tmp_path / "one.sqlite"), "export", str(tmp_path / "out"))
    assert (again.code, "--force" in again.err) == (2, True)
    came = shell("--store", str(tmp_path / "two.sqlite"), "import", "store", str(tmp_path / "out"))
    assert (came.code, came.out.startswith("11 receipts came in")) == (0, True)
    told = shell("--store", str(tmp_path / "two.sqlite"), "import", "store", str(tmp_path / "out"), "--json")
    assert json.loads(told.out)["known"]["receipts"] == 11
    assert shell("--store", str(tmp_path / "one.sqlite"), "export", str(tmp_path / "out.xlsx")).code == 2
    missing = shell("--store", str(tmp_path / "two.sqlite"), "import", "store", str(tmp_path / "nothing"))
    assert (missing.code, "there is no such" in missing.err) == (2, True)


def test_an_export_of_a_part_is_asked_for_as_a_list_is(shell: Shell, tmp_path: Path) -> None:
    fill(str(tmp_path / "one.sqlite")).close()
    words = ["--store", str(tmp_path / "one.sqlite"), "export", str(tmp_path / "out.jsonl"), "--json"]
    done = shell(*words, "--where", "outcome=ok", "--since", "2026-03-05", "--until", "2026-03-09")
    assert done.code == 0
    rows = list(rows_of(tmp_path / "out.jsonl", "receipts"))
    assert json.loads(done.out)["rows"]["receipts"] == len(rows) > 0
    assert all(row["outcome"] == "ok" and row["finished"].day in range(5, 9) for row in rows)
    assert shell(*words, "--force", "--where", "nonsense").code == 2
    assert shell(*words, "--force", "--since", "yesterday").code == 2
