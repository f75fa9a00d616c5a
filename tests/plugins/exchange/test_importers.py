"""Importing: rows to receipts by a mapping, with nothing invented and nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from receipts.base.errors import InputError
from receipts.cli.group import group
from receipts.plugins.exchange.mapping import read_mapping
from receipts.plugins.exchange.notebook import ImportedTable, import_file
from receipts.plugins.exchange.quantity import read_quantity, rounded_text
from receipts.plugins.exchange.table import read_table

HEAD = """
[notebook]
name = "notes"
launch = "{id}"
context = "{section?}"
dated = ["date"]
undated = 2026-05-20
"""
REQUIRED = """
[[field]]
to = "run.kind"
value = "training"
[[field]]
to = "run.lane"
value = "unlisted"
[[field]]
to = "run.outcome"
from = "outcome"
map = { ok = "ok", OOM = "oom" }
else = "refuse"
[[field]]
to = "run.provenance"
value = "quoted"
"""


def write(folder: Path, rows: Any, mapping: str, name: str = "rows.json") -> ImportedTable:
    table = folder / name
    table.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    how = folder / "mapping.toml"
    how.write_text(HEAD + REQUIRED + mapping)
    return import_file(table, how)


def one(folder: Path, row: dict[str, Any], mapping: str) -> Any:
    found = write(folder, [{"id": "a", "outcome": "ok", **row}], mapping)
    assert not found.refused
    return found.receipts[0].parsed.stated


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("~90400", "", 90400),
        ("4.73B", "", 4.73e9),
        ("7b", "", 7e9),
        ("98k", "", 98000),
        ("about 5.5 s", "ms", 5.5),
        ("1,450", "ms", 1.45),
        ("136.27 GB (stage 0)", "GiB", 136.27e9),
        ("112 MiB", "", 112 * 2**20),
        ("38.46 us", "ms", 38.46e-6),
        ("27.1", "%", 0.271),
        ("1e-4", "", 1e-4),
        ("98 400", "", 98400),
        ("1.85 s/it", "s", 1.85),
        ("1,850 ms/step", "s", 1.85),
        ("2 hours", "s", 7200),
        ("14.2k tok/s", "", 14200),
        ("14.2k tokens/s/GPU", "", 14200),
        ("412 TFLOP/s", "", 412),
        ("114.2", "k", 114200),
        ("114.2k", "k", 114200),
        ("512 B", "B", 512),
    ],
)
def test_a_number_is_read_with_its_scale_and_unit(text: str, unit: str, value: float) -> None:
    found = read_quantity(text, unit)
    assert found is not None
    assert found.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<1",
        ">140 GB",
        "165-178",
        "1116/1082/1064",
        "20.2 (total) / 12.9 (active)",
        "of 140 GB",
        "nan",
        "~",
        "3 apples",
        "14200 ± 120",
        "0.41 PFLOP/s",
        "1m 12s",
        "12 mtok/s",
        "128 256 512",
    ],
)
def test_a_bound_a_range_or_a_sentence_is_no_number(text: str) -> None:
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    "source", ["1e999", "1e308k", float("nan"), float("-inf"), 10**400, [1.0, 10**400]], ids=range(6)
)
def test_a_number_without_an_end_is_none(source: Any) -> None:
    assert read_quantity(source, several="median") is None


@pytest.mark.parametrize("text", ["71.2G", "71.2k"])
def test_a_letter_is_no_unit_of_bytes(text: str) -> None:
    assert read_quantity(text, "GiB") is None


def test_several_numbers_are_read_only_where_the_mapping_says_how() -> None:
    median, middle = read_quantity("1116/1082/1064", "ms", several="median"), read_quantity("165-178", several="middle")
    assert median is not None
    assert median.value == pytest.approx(1.082)
    assert middle is not None
    assert (middle.value, middle.text) == (171.5, "165-178")
    assert read_quantity("165-178", several="median") is None
    assert read_quantity("178-165", several="middle") is None


@pytest.mark.parametrize(("text", "value"), [("4K", 4096), ("128k", 131_072), ("~1M", 1_048_576), ("4096", 4096)])
def test_a_letter_is_of_1024_where_the_mapping_says_so(text: str, value: int) -> None:
    quantity = read_quantity(text, binary=True)
    assert quantity is not None
    assert (quantity.value, quantity.text) == (value, text)


def test_a_rounded_integer_tells_its_last_digit() -> None:
    assert [rounded_text(value) for value in (165000, 98412, 2_000_000, 0)] == ["165k", "98412", "2M", "0"]


def test_what_a_row_does_not_state_stays_unstated(tmp_path: Path) -> None:
    stated = one(
        tmp_path, {"mbs": None, "gbs": ""}, '[[field]]\nto = "batch.micro_batch"\nfrom = "mbs"\nas = "integer"\n'
    )
    assert set(stated) == {
        "schema_version",
        "run.kind",
        "run.lane",
        "run.launch",
        "run.outcome",
        "run.provenance",
        "run.started",
        "run.started_stated",
    }


def test_an_approximate_rate_keeps_its_text(tmp_path: Path) -> None:
    mapping = '[[field]]\nto = "measurement.stated.tokens_per_second"\nfrom = "rate"\nas = "number"\n'
    stated = one(tmp_path, {"rate": "~90.4k"}, mapping)
    assert stated["measurement.stated.tokens_per_second"] == 90400
    assert stated["measurement.stated.tokens_per_second_stated"] == "~90.4k"


def test_a_number_of_the_table_keeps_the_digits_it_was_printed_with(tmp_path: Path) -> None:
    mapping = '[[field]]\nto = "measurement.stated.step_seconds"\nfrom = "ms"\nas = "number"\nunit = "ms"\n'
    rows = '[{"id": "a", "outcome": "ok", "ms": 2337.40}]'
    stated = write(tmp_path, rows, mapping).receipts[0].parsed.stated
    assert stated["measurement.stated.step_seconds"] == pytest.approx(2.3374)
    assert stated["measurement.stated.step_seconds_stated"] == "2337.40 ms"


def test_what_cannot_be_read_is_reported_and_kept_word_by_word(tmp_path: Path) -> None:
    mapping = '[[field]]\nto = "measurement.stated.mfu"\nfrom = "mfu"\nas = "number"\nunit = "%"\n'
    found = write(tmp_path, [{"id": "a", "outcome": "ok", "mfu": "17-18"}], mapping)
    assert [(item.where, item.to, item.text) for item in found.unread] == [("row 1", "measurement.stated.mfu", "17-18")]
    stated = found.receipts[0].parsed.stated
    assert "measurement.stated.mfu" not in stated
    assert stated["notes.unread.measurement.stated.mfu"] == "17-18"


def test_an_undated_row_says_so_and_a_month_starts_on_its_first_day(tmp_path: Path) -> None:
    rows = [{"id": "a", "outcome": "ok"}, {"id": "b", "outcome": "ok", "date": "2026-03"}]
    first, second = (item.parsed.receipt.run for item in write(tmp_path, rows, "").receipts)
    assert (first.started.isoformat(), first.started_stated) == ("2026-05-20T00:00:00+00:00", "undated")
    assert (second.started.isoformat(), second.started_stated) == ("2026-03-01T00:00:00+00:00", "2026-03")


def test_the_first_field_that_finds_something_states_the_leaf(tmp_path: Path) -> None:
    mapping = """
[[field]]
to = "run.host"
from = ["machine", "host"]
[[field]]
to = "run.host"
value = "nowhere"
"""
    assert one(tmp_path, {"host": "h1"}, mapping)["run.host"] == "h1"
    assert one(tmp_path, {}, mapping)["run.host"] == "nowhere"


def test_a_context_may_be_a_field_of_its_own_and_its_template_stands_where_that_finds_none(tmp_path: Path) -> None:
    mapping = """
[[field]]
to = "run.context"
from = "section"
patterns = [['^(.+?) / ', '\\1']]
else = "nothing"
"""
    assert one(tmp_path, {"section": "Sweep / Table 2"}, mapping)["run.context"] == "Sweep"
    assert one(tmp_path, {"section": "Sweep"}, mapping)["run.context"] == "Sweep"
    assert one(tmp_path, {"section": "Sweep 7/8"}, mapping)["run.context"] == "Sweep 7/8"


def test_a_pattern_with_an_empty_value_states_nothing_and_is_no_report(tmp_path: Path) -> None:
    mapping = """
[[field]]
to = "compile.cuda_graph_scope"
from = "scope"
as = "list"
split = "+"
patterns = [['^off$', ""], ['^([^/]+)', '\\1']]
"""
    rows = [{"id": "a", "outcome": "ok", "scope": "off"}, {"id": "b", "outcome": "ok", "scope": "attn+moe/te"}]
    found = write(tmp_path, rows, mapping)
    assert not found.unread
    assert "compile.cuda_graph_scope" not in found.receipts[0].parsed.stated
    assert found.receipts[1].parsed.stated["compile.cuda_graph_scope"] == ["attn", "moe"]


def test_a_field_holds_only_where_its_conditions_do(tmp_path: Path) -> None:
    mapping = """
[[field]]
to = "parallelism.data"
from = "dp"
as = "integer"
when = { ep = ["", "1"] }
"""
    assert one(tmp_path, {"dp": 8}, mapping)["parallelism.data"] == 8
    assert one(tmp_path, {"dp": 8, "ep": 1}, mapping)["parallelism.data"] == 8
    assert "parallelism.data" not in one(tmp_path, {"dp": 1, "ep": 8}, mapping)


def test_a_figure_is_found_among_remarks(tmp_path: Path) -> None:
    mapping = """
[[field]]
to = "compile.compile_seconds"
from = "notes"
as = "number"
patterns = [['^compile ([\\d.]+ s)$', '\\1']]
"""
    assert one(tmp_path, {"notes": ["fast", "compile 23.5 s"]}, mapping)["compile.compile_seconds"] == 23.5


def test_an_object_becomes_flags_and_a_list_becomes_patches(tmp_path: Path) -> None:
    mapping = """
[[spread]]
from = "env"
to = "flags"
skip = ["cache"]
rename = { A = "B" }
[[spread]]
from = "patches"
to = "patches"
"""
    stated = one(tmp_path, {"env": {"A": "1", "cache": "x", "gone": None}, "patches": ["fix 909"]}, mapping)
    assert {key: value for key, value in stated.items() if key.startswith(("flags", "patches"))} == {
        "flags.B": "1",
        "patches.fix 909": True,
    }


MEMORY = """
[memory]
from = "peaks"
chips = "chips"
kinds = [['reserved', "peak_reserved_bytes"], ['state', "none"], ['peak', "peak_bytes"]]
phases = [['setup', "post_init"]]
over = [['^max', "max"]]
"""


def test_one_chip_gets_its_rows_by_phase(tmp_path: Path) -> None:
    peaks = [
        {"where": "setup", "value": 5, "unit": "GiB", "kind": "peak"},
        {"where": "step 2", "value": 12.46, "unit": "GiB", "kind": "peak"},
        {"where": "step 3", "value": 12.40, "unit": "GiB", "kind": "peak"},
        {"where": "step 2", "value": 14, "unit": "GiB (field named gb)", "kind": "reserved"},
        {"where": "step 2", "value": 3, "unit": "GiB", "kind": "state"},
    ]
    stated = one(tmp_path, {"chips": 1, "peaks": peaks}, MEMORY)
    assert stated["memory.chips[0].phase"] == "post_init"
    assert stated["memory.chips[1].peak_bytes"] == int(12.46 * 2**30)
    assert stated["memory.chips[1].peak_reserved_bytes"] == 14 * 2**30


def test_one_figure_for_eight_chips_stays_one_figure(tmp_path: Path) -> None:
    peaks = [{"where": "max", "value": "~115", "unit": "GiB", "kind": "peak"}]
    stated = one(tmp_path, {"chips": 8, "peaks": peaks}, MEMORY)
    assert stated["memory.aggregate.over"] == "max"
    assert stated["memory.aggregate.stated"] == "~115 GiB"
    assert not any(key.startswith("memory.chips") for key in stated)


def test_a_memory_bound_is_no_figure(tmp_path: Path) -> None:
    peaks = [{"where": "rank", "value": ">140", "unit": "GB", "kind": "peak"}]
    found = write(tmp_path, [{"id": "a", "outcome": "ok", "chips": 8, "peaks": peaks}], MEMORY)
    assert found.unread[0].text == ">140 GB"


def test_a_row_that_cannot_be_a_receipt_is_refused_with_every_reason_and_the_others_stand(tmp_path: Path) -> None:
    mapping = '[[field]]\nto = "batch.micro_batch"\nfrom = "mbs"\nas = "integer"\n'
    rows = [{"id": "a", "outcome": "purple", "mbs": 0}, {"id": "b", "outcome": "ok", "mbs": 2}]
    found = write(tmp_path, rows, mapping)
    assert [item.row.where for item in found.receipts] == ["row 2"]
    assert found.refused[0].where == "row 1"
    assert {problem.at for problem in found.refused[0].problems} >= {"run.outcome", "batch.micro_batch"}
    assert "purple" in " ".join(map(str, found.refused[0].problems))


def test_two_rows_of_one_launch_do_not_both_stand(tmp_path: Path) -> None:
    found = write(tmp_path, [{"id": "a", "outcome": "ok"}, {"id": "a", "outcome": "OOM"}], "")
    assert len(found.receipts) == 1
    assert "row 1" in str(found.refused[0].problems[0])


def test_a_launch_template_that_names_what_is_not_stated_refuses_the_row(tmp_path: Path) -> None:
    found = write(tmp_path, [{"outcome": "ok"}], "")
    assert found.refused[0].problems[0].at == "run.launch"


def test_importing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = [{"id": "a", "outcome": "ok", "section": "one"}]
    first, second = write(tmp_path, rows, "").receipts[0].parsed, write(tmp_path, rows, "").receipts[0].parsed
    assert first.raw == second.raw
    assert first.id == second.id
    assert first.receipt.run.context == "one"


def test_csv_jsonl_and_markdown_hold_the_same_rows(tmp_path: Path) -> None:
    tables = {
        "rows.csv": 'id,outcome,note\na,ok,"x, y"\nb,OOM,\n',
        "rows.tsv": "id\toutcome\na\tok\nb\tOOM\n",
        "rows.jsonl": '{"id": "a", "outcome": "ok"}\n\n{"id": "b", "outcome": "OOM"}\n',
        "rows.md": "# Notes\n\n| id | outcome |\n|---|:--:|\n| `a` | ok |\n| b | **OOM** |\n\ntext | more\n",
    }
    for name, text in tables.items():
        found = write(tmp_path, text, "", name)
        assert [item.parsed.receipt.run.outcome for item in found.receipts] == ["ok", "oom"], name


def test_a_markdown_row_knows_its_heading(tmp_path: Path) -> None:
    fenced = "```\n| id | outcome |\n| - | - |\n| no | ok |\n```\n"
    text = "# Top\n## Sweep\n\n| id | outcome |\n| - | - |\n| a | ok |\n\n" + fenced
    made = write(tmp_path, text, "", "rows.md").receipts
    assert [item.parsed.receipt.run.context for item in made] == ["Sweep"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("rows.json", "{", "not JSON"),
        ("rows.json", '{"rows": 3}', "must be a list"),
        ("rows.json", "[1]", "not an object"),
        ("rows.json", "[" * 200_000, "not JSON"),
        ("rows.json", '[{"x": NaN}]', "not JSON"),
        ("rows.jsonl", "{}\n{", "line 2"),
        ("rows.csv", "a,a\n1,2\n", "twice"),
        ("rows.csv", "a\n1,2\n", "more cells"),
        ("rows.xlsx", "", "not a known kind of table"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_table(path)


def test_a_table_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "gone.json")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_table(tmp_path / "bad.csv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[notebook]\nname = 3\n", "launch"),
        (HEAD + "[strange]\n", "strange"),
        (HEAD + '[[field]]\nto = "batch.nothing"\nvalue = 1\n', "not a leaf"),
        (HEAD + '[[field]]\nto = "run.host"\n', "exactly one"),
        (HEAD + '[[field]]\nto = "run.host"\nfrom = "h"\npatterns = [["(", "x"]]\n', "not a pattern"),
        (HEAD + '[[field]]\nto = "run.host"\nfrom = "h"\nunit = "furlong"\n', "not a unit"),
        (HEAD + '[[field]]\nto = "run.host"\nfrom = "h"\nas = "date-ish"\n', "not one of"),
        (HEAD + '[[spread]]\nfrom = "env"\nto = "model"\n', "not one of"),
        (HEAD.replace("2026-05-20", '"spring"'), "a day"),
        ("not toml", "mapping.toml"),
    ],
)
def test_a_mapping_is_checked_whole_when_it_is_read(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_mapping(path)


def test_the_lab_example_imports_whole(checkout: Path) -> None:
    found = import_file(checkout / "examples" / "lab" / "runs.json", checkout / "examples" / "lab" / "mapping.toml")
    assert len(found.receipts) >= 30
    assert not found.refused
    rate = next(
        item.parsed.stated["measurement.stated.tokens_per_second"]
        for item in found.receipts
        if (item.parsed.receipt.run.label or "").startswith("grid 03")
    )
    assert rate == 98412


def test_every_run_of_the_lab_becomes_a_receipt(cases: Path, checkout: Path) -> None:
    found = import_file(cases / "lab" / "runs.json", checkout / "examples" / "lab" / "mapping.toml")
    assert len(found.receipts) == 673
    assert not found.refused


def test_the_command_writes_one_file_a_row_and_says_what_it_could_not_read(checkout: Path, tmp_path: Path) -> None:
    lab, out = checkout / "examples" / "lab", tmp_path / "out"
    words = ["import", "notebook", str(lab / "runs.json"), "--mapping", str(lab / "mapping.toml"), "-o", str(out)]
    result = CliRunner().invoke(group, words, standalone_mode=False)
    assert result.return_value == 0
    assert "0 rows refused" in result.output
    assert "measurement.stated.mfu" in result.output
    assert len(list(out.glob("*.json"))) >= 30


def test_the_command_ends_with_two_where_a_row_is_refused(checkout: Path, tmp_path: Path) -> None:
    rows = json.loads((checkout / "examples" / "lab" / "runs.json").read_text())[:2]
    rows[0]["outcome"] = "purple"
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    words = ["import", "notebook", str(tmp_path / "rows.json"), "--json"]
    words += ["--mapping", str(checkout / "examples" / "lab" / "mapping.toml")]
    result = CliRunner().invoke(group, words, standalone_mode=False)
    assert result.return_value == 2
    assert json.loads(result.stdout)["refused"][0]["row"] == "row 1"


@pytest.mark.parametrize(
    ("to", "unit", "cell"),
    [
        ("measurement.stated.step_seconds", "s", "71 GB"),
        ("measurement.stated.mfu", "%", "14 ms"),
        ("measurement.stated.tokens_per_second", "", "41 %"),
        ("measurement.stated.tokens_per_second", "", "14.2k tok/s/GPU"),
        ("failure.requested_bytes", "GiB", "12 ms"),
    ],
)
def test_a_unit_that_measures_something_else_leaves_the_cell_unread(
    tmp_path: Path, to: str, unit: str, cell: str
) -> None:
    how = f'[[field]]\nto = "{to}"\nfrom = "it"\nas = "number"\nunit = "{unit}"\n'
    found = write(tmp_path, [{"id": "a", "outcome": "ok", "it": cell}], how)
    assert [(item.to, item.text) for item in found.unread] == [(to, cell)]
    assert to not in found.receipts[0].parsed.stated


def test_bytes_without_a_unit_in_the_mapping_are_bytes(tmp_path: Path) -> None:
    how = '[[field]]\nto = "failure.requested_bytes"\nfrom = "it"\nas = "integer"\n'
    assert one(tmp_path, {"it": "512 B"}, how)["failure.requested_bytes"] == 512


@pytest.mark.parametrize("cell", ["-", "–", "—", "n/a", "N/A", "TBD", "?"])
def test_a_cell_that_says_nothing_is_blank(tmp_path: Path, cell: str) -> None:
    how = '[[field]]\nto = "numerics.optimizer"\nfrom = "optimizer"\n[[field]]\nto = "measurement.stated.mfu"\n'
    found = write(
        tmp_path, [{"id": "a", "outcome": "ok", "optimizer": cell, "mfu": cell}], how + 'from = "mfu"\nas = "number"\n'
    )
    assert not found.unread
    assert not {"numerics.optimizer", "measurement.stated.mfu"} & found.receipts[0].parsed.stated.keys()


def test_a_link_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("| model |\n|---|\n| [Llama-3 8B](https://example.org/a) |\n")
    assert [row.at("model") for row in read_table(tmp_path / "t.md")] == ["Llama-3 8B"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("| id | outcome |\n|---|---|\n| fwd|bwd | ok |\n", "more cells than the header"),
        ("| id | outcome |\n|---|---|\n| ok |\n", "fewer cells than the header"),
        ("| id | outcome | outcome |\n|---|---|---|\n| a | ok | oom |\n", "occurs twice"),
    ],
)
def test_a_markdown_row_whose_cells_have_no_one_place_is_refused(tmp_path: Path, text: str, says: str) -> None:
    found = write(tmp_path, text + "\n| id | outcome |\n|---|---|\n| b | ok |\n", "", "t.md")
    assert [says in row.problems[0].what for row in found.refused] == [True]
    assert [made.row.at("id") for made in found.receipts] == ["b"]


def test_blanks_around_the_names_of_csv_columns_and_empty_lines_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(" id , outcome \na, ok\n , \nb,ok\n")
    assert [row.cells for row in read_table(tmp_path / "t.csv")] == [
        {"id": "a", "outcome": " ok"},
        {"id": "b", "outcome": "ok"},
    ]


SETTINGS = '[rest]\nfrom = ["model", "batch"]\nto = "features"\n'


def test_a_setting_that_no_entry_names_is_a_feature_where_the_mapping_asks_for_it(tmp_path: Path) -> None:
    row = {"model": {"activation": "SiLU", "blocks": ["attention", "mlp"]}, "batch": {"warm": 0.5, "packed": True}}
    stated = one(tmp_path, row, SETTINGS)
    assert stated["features.model.activation"] == "SiLU"
    assert stated["features.model.blocks"] == "attention + mlp"
    assert stated["features.batch.warm"] == 0.5
    assert stated["features.batch.packed"] is True


def test_what_an_entry_names_is_no_feature_and_neither_is_a_column_elsewhere(tmp_path: Path) -> None:
    field = '[[field]]\nto = "model.hidden"\nfrom = "model.hidden"\nas = "integer"\n'
    stated = one(tmp_path, {"model": {"hidden": 512, "note": None}, "author": "somebody"}, field + SETTINGS)
    assert not [path for path in stated if path.startswith("features.")]
    assert stated["model.hidden"] == 512


def test_columns_that_nothing_reads_are_told_with_their_rows(tmp_path: Path) -> None:
    rows = [{"id": "a", "outcome": "ok", "author": "x", "model": {"text": "w" * 201}}, {"id": "b", "outcome": "ok"}]
    rows.append({"id": "c", "outcome": "ok", "author": "y", "section": "named by the context"})
    found = write(tmp_path, rows, SETTINGS)
    assert dict(found.unnamed) == {"author": 2, "model.text": 1}
    call = ["import", "notebook", str(tmp_path / "rows.json"), "--mapping", str(tmp_path / "mapping.toml")]
    assert (
        "columns that no entry names, with their rows: author (2), model.text (1)"
        in CliRunner().invoke(group, call).output
    )
    told = json.loads(CliRunner().invoke(group, [*call, "--json"]).output)
    assert told["unnamed"] == {"author": 2, "model.text": 1}


@pytest.mark.parametrize(
    ("rest", "at"),
    [
        ('[rest]\nto = "features"\n', "rest.from"),
        ('[rest]\nfrom = ["model"]\nto = "notes"\n', "rest.to"),
        ('[rest]\nfrom = ["model"]\nto = "features"\nskip = []\n', "rest.skip"),
    ],
)
def test_a_rest_that_says_too_little_is_refused(tmp_path: Path, rest: str, at: str) -> None:
    with pytest.raises(InputError) as raised:
        write(tmp_path, [], rest)
    assert [problem.at for problem in raised.value.problems] == [at]


def test_a_column_is_read_as_what_its_leaf_holds(tmp_path: Path) -> None:
    columns = {"tps": "measurement.stated.tokens_per_second", "gpus": "hardware.chips", "tied": "model.tied_embeddings"}
    fields = "".join(f'[[field]]\nto = "{path}"\nfrom = "{name}"\n' for name, path in columns.items())
    found = write(tmp_path, "id,outcome,tps,gpus,tied\na,ok,15.2k,8,yes\nb,ok,~1,eight,0\n", fields, "rows.csv")
    first, second = (item.parsed.receipt for item in found.receipts)
    stated = [
        (item.hardware and item.hardware.chips, item.model and item.model.tied_embeddings) for item in (first, second)
    ]
    assert stated == [(8, True), (None, False)]
    assert first.measurement is not None
    assert first.measurement.stated is not None
    assert first.measurement.stated.tokens_per_second == 15200
    assert [(item.to, item.text) for item in found.unread] == [("hardware.chips", "eight")]


def test_what_every_row_lacks_is_said_once_with_the_entry_that_states_it(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,tps\na,1\nb,2\nc,3\n")
    (tmp_path / "mapping.toml").write_text(HEAD)
    call = ["import", "table", str(tmp_path / "rows.csv"), "--mapping", str(tmp_path / "mapping.toml")]
    result = CliRunner().invoke(group, call, standalone_mode=False)
    assert result.return_value == 2
    assert result.stderr.count("run.lane") == 2, "its place, and the entry to add"
    assert 'add to the mapping: [[field]] to = "run.lane"' in result.stderr
    assert "all 3 that were refused" in result.stderr
    assert "line 2:" not in result.stderr
