"""The pages of a report: what they may never do, whatever a label holds, and how they are written."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_store as week
import rule_cases as cases
from receipts.base.errors import DiskError, ResourceError, UsageError
from receipts.base.files import write_folder
from receipts.base.untrusted_text import plain
from receipts.cli import main
from receipts.publish.markup import _broken
from receipts.publish.page import Code, Link, Mark
from receipts.publish.report.render import page, render
from receipts.publish.report.template import _Reader, environment
from receipts.publish.text import CELL, cell, change, gib, number, percent, span
from receipts.questions.week.collect import WeekData, collect
from receipts.questions.week.interval import Week, moment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages") / "store.sqlite"


@pytest.fixture(scope="module")
def data(place: Path) -> WeekData:
    store = week.fill(place, week.everything())
    return collect(store, cases.rulebook(), Week.parse(week.WEEK), moment(week.AS_OF))


@pytest.fixture(scope="module")
def files(data: WeekData) -> dict[str, bytes]:
    return render(data, cases.rulebook().rules)


class Outline(HTMLParser):
    """What a page is made of."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def html(files: dict[str, bytes]) -> Outline:
    return Outline(files["index.html"].decode())


def test_every_element_that_is_opened_is_closed(html: Outline) -> None:
    assert html.open == []


def test_the_page_loads_nothing_and_runs_nothing(html: Outline) -> None:
    names = {name for name, _ in html.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "foreignobject", "image"}
    for name, attributes in html.tags:
        wanted = ("src", "srcset") if name in ("path", "use", "text", "g") else ("src", "srcset", "style")
        assert not [key for key in attributes if key.startswith("on") or key in wanted]
        assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)", attributes.get("style") or ""))
    assert all((item["href"] or "").startswith("#") for item in html.all("a") + html.all("use"))


def test_style_names_nothing_outside_the_page(files: dict[str, bytes]) -> None:
    style = re.search(r"<style>(.*?)</style>", files["index.html"].decode(), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "prefers-color-scheme: dark" in style[1]
    assert "@media print" in style[1]


def test_every_link_leads_to_a_place_on_the_page(html: Outline) -> None:
    ids = [attributes["id"] for _, attributes in html.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(item["href"] or "")[1:] for item in html.all("a")} <= set(ids)


def test_every_table_has_a_caption_and_its_headers_a_scope(html: Outline) -> None:
    assert len(html.all("table")) == len(html.all("caption")) >= 7


def test_a_picture_says_what_it_is_and_stands_beside_its_table(html: Outline) -> None:
    pictures = html.all("svg")
    assert len(pictures) == len(html.all("figure")) == len(html.all("figcaption")) >= 1
    assert all(item["role"] == "img" and item["aria-labelledby"] and item["aria-describedby"] for item in pictures)
    entries = [item for item in html.all("details") if item.get("class") == "entry"]
    assert len(html.all("details")) <= len(pictures) + len(entries) + len(html.all("h2"))


def test_below_the_first_screen_every_section_is_a_line_to_open(data: WeekData) -> None:
    first, leaders, *others = page(data, cases.rulebook().rules).sections
    assert ([item.id for item in (first, leaders)], [item.id for item in others if not item.fold]) == (
        ["summary", "leaders"],
        [],
    )
    lane = next(item for item in others if item.id == "lane-cpu-torch")
    assert lane.fold.startswith("11 launches: ")


def test_what_a_picture_shows_stands_in_the_markdown_as_a_table(data: WeekData, files: dict[str, bytes]) -> None:
    text = files["report.md"].decode()
    taken = [(course.lane, item) for course in data.courses.values() if course for item in course.taken]
    assert taken
    for lane, item in taken:
        assert re.search(rf"\| {lane} \| {item.week} \| .* \| \[{item.receipt.short}\]", text)
    assert "<svg" not in text


def test_a_long_path_may_go_on_in_the_next_line_after_a_dot_or_an_underscore() -> None:
    assert _broken("state measurement.window.warmup_steps") == ("state measurement.<wbr>window.<wbr>warmup_<wbr>steps")
    assert _broken("a::CUDACachingAllocator::insert_events") == (
        "a::<wbr>CUDACachingAllocator::<wbr>insert_<wbr>events"
    )
    assert _broken("model.depth 1.5 to 2.5") == "model.depth 1.5 to 2.5"
    assert _broken("<b>measurement.window</b>.\0") == "&lt;b&gt;measurement.<wbr>window&lt;/b&gt;.\\x00"


def test_what_a_rules_page_spells_is_spelt_on_the_page(files: dict[str, bytes]) -> None:
    rules = files["index.html"].decode().partition('<section id="rules"')[2].partition('<section id="receipts"')[0]
    assert "<code>fixed-accumulation</code>" in rules
    assert "`" not in rules
    assert "`fixed-accumulation`" in files["report.md"].decode()


def test_every_table_header_has_a_scope(html: Outline) -> None:
    assert all(item.get("scope") for item in html.all("th"))


def test_the_page_has_one_title_a_language_and_a_way_past_its_head(html: Outline) -> None:
    assert len(html.all("h1")) == 1
    assert html.all("html")[0]["lang"] == "en"
    assert html.all("a")[0] == {"class": "skip", "href": "#main"}
    assert [item["id"] for item in html.all("main")] == ["main"]


def test_headings_never_skip_a_level(html: Outline) -> None:
    levels = [int(name[1]) for name, _ in html.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_number_stands_to_the_right_with_its_unit_in_the_header(html: Outline) -> None:
    assert "tokens/s/chip" in html.text
    rates = [item for item in html.all("td") if item.get("data-label") == "rate, tokens/s/chip"]
    assert rates
    assert all(item["class"] == "number" for item in rates)


def test_a_hostile_label_is_text_in_html(files: dict[str, bytes], html: Outline) -> None:
    assert b"<script" not in files["index.html"]
    assert "\u202e" not in files["index.html"].decode()
    assert "<script>alert(1)</script>" in html.text


def test_a_hostile_label_is_text_in_markdown(files: dict[str, bytes]) -> None:
    text = files["report.md"].decode()
    assert "<script" not in text.replace("\\<", "")
    assert "\u202e" not in text
    assert "](javascript" not in text.replace("\\]", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    tables = [len(re.findall(r"(?<!\\)\|", row)) for row in rows if "alert" in row]
    assert tables
    assert set(tables) <= {len(re.findall(r"(?<!\\)\|", row)) for row in rows if "alert" not in row}


def test_every_table_of_the_markdown_keeps_its_columns(files: dict[str, bytes]) -> None:
    text = files["report.md"].decode()
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) >= 7
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1


def test_markdown_links_lead_to_anchors_that_are_there(files: dict[str, bytes]) -> None:
    text = files["report.md"].decode()
    assert set(re.findall(r"\(#(r-[0-9a-f]{12})\)", text)) <= set(re.findall(r'<a id="(r-[0-9a-f]{12})">', text))
    assert "](#r-" in text


def test_both_pages_say_how_they_judge_and_how_pairs_were_chosen(files: dict[str, bytes]) -> None:
    for name in ("index.html", "report.md"):
        text = " ".join(files[name].decode().split())
        assert "judged under the rules named here" in text
        assert "How pairs were chosen" in text
        assert "adjusted by Holm" in text


def test_a_refused_comparison_prints_no_change(files: dict[str, bytes]) -> None:
    refused = re.search(r"### Rejected comparisons\n(.*?)\n##", files["report.md"].decode(), re.DOTALL)
    assert refused is not None
    assert "2 settings changed; only 1 may: pattern, dimensions" in refused[1]
    assert "%" not in refused[1]


def test_the_same_values_give_the_same_bytes(data: WeekData, files: dict[str, bytes]) -> None:
    assert render(data, cases.rulebook().rules) == files


def test_json_carries_the_values_behind_the_pages(data: WeekData, files: dict[str, bytes]) -> None:
    tree = json.loads(files["report.json"])
    assert tree["schema_version"] == "2.0"
    assert tree["lanes"][0]["accepted"]["shown"][0]["high"] == data.lanes[0].accepted[0].high
    assert tree["receipts"][0]["receipt"]["id"] == data.receipts[0].receipt.id


def test_an_empty_week_is_a_page_all_the_same(tmp_path: Path) -> None:
    store = week.fill(tmp_path / "empty.sqlite", [])
    made = render(collect(store, cases.rulebook(), Week.parse(week.WEEK), moment(week.AS_OF)), cases.rulebook().rules)
    assert b"No receipt ran in 2026-W10. None ran before." in made["report.md"]
    assert Outline(made["index.html"].decode()).open == []


def test_a_template_of_the_user_comes_first(data: WeekData, tmp_path: Path) -> None:
    own = '{% extends "parts/page.html.j2" %}{% block main %}<p>{{ data.week }}</p>{% endblock %}'
    (tmp_path / "weekly.html.j2").write_text(own, encoding="utf-8")
    made = render(data, cases.rulebook().rules, [tmp_path])
    assert b"<p>2026-W10</p>" in made["index.html"]
    assert made["report.md"] == render(data, cases.rulebook().rules)["report.md"]


@pytest.mark.parametrize("text", ["{{ page.titel }}", "{{ nothing }}", "{% for %}", "{{ 1 / 0 }}"])
def test_a_template_that_is_wrong_is_named(data: WeekData, tmp_path: Path, text: str) -> None:
    (tmp_path / "weekly.html.j2").write_text(text, encoding="utf-8")
    with pytest.raises(ResourceError, match=r"template weekly\.html\.j2"):
        render(data, cases.rulebook().rules, [tmp_path])


def test_what_a_user_template_prints_is_escaped_unasked(data: WeekData, tmp_path: Path) -> None:
    text = "{% for item in data.receipts %}{{ item.receipt.name }}\n{% endfor %}"
    (tmp_path / "weekly.html.j2").write_text(text, encoding="utf-8")
    assert b"&lt;script&gt;" in render(data, cases.rulebook().rules, [tmp_path])["index.html"]


def test_other_files_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "report.md").write_text("old", encoding="utf-8")
    write_folder(tmp_path, {"report.md": b"new"}, over=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"notes.txt": "mine", "report.md": "new"}


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path, {"report.md": b"old", "index.html": b"old"}, over=True)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match="No space left"):
        write_folder(tmp_path, {"report.md": b"new", "index.html": b"new"}, over=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"report.md": b"old", "index.html": b"old"}


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="name a folder"):
        write_folder(tmp_path / "report", {"report.md": b""}, over=True)


def test_the_command_writes_its_files_and_names_them(
    place: Path, data: WeekData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--store", str(place), "report", "weekly", "--week", week.WEEK, "--as-of", week.AS_OF]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    told = capsys.readouterr().out
    assert "2026-W10: 11 receipts" in told
    names = ["comparisons.parquet", "index.html", "receipts.parquet", "report.json", "report.md"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    assert all(str(tmp_path / "a" / name) in told for name in names)
    assert main([*words, "--out", str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["week"] == data.week
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("words", [["--week", "47"], ["--as-of", "soon"], ["--lane", "gpu"]])
def test_a_wrong_call_ends_with_two_and_writes_nothing(
    place: Path, data: WeekData, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(place), "report", "weekly", "--out", str(tmp_path / "out"), *words]) == 2
    assert capsys.readouterr().err.startswith("receipts: ")
    assert not (tmp_path / "out").exists()


def test_the_week_is_that_of_as_of_unless_named(
    place: Path, data: WeekData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--store", str(place), "report", "weekly", "--as-of", "2026-04-01", "--out", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out.startswith("2026-W14: 0 receipts")
    assert "the newest ran in 2026-W10: --week 2026-W10" in told.err


@given(st.text(max_size=300))
def test_no_text_breaks_a_markdown_cell(text: str) -> None:
    shown = cell(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<>`*\[\]]", shown)
    assert all(char.isprintable() for char in shown)


def test_text_is_one_printable_line_of_bounded_length() -> None:
    assert plain("a\x00b\u202ec\nd") == "a\\x00b\\u202ec d"
    assert len(plain("x" * 10_000)) == 120
    assert plain("\x00" * 200).endswith("…")


def test_numbers_are_printed_for_people() -> None:
    assert [number(item) for item in (None, 26374.6, 8, 0.51234)] == ["~", "26,375", "8", "0.5123"]
    assert [gib(2**30), gib(None)] == ["1.00", "~"]
    assert [percent(0.2917), percent(None)] == ["29.2", "~"]
    assert [change(1.133), change(0.9), change(None)] == ["+13.30", "\u221210.00", "~"]
    assert [span(0.9, 1.1), span(None, None)] == ["\u221210.00 to +10.00", "~"]


@given(st.text(min_size=1, max_size=40).filter(lambda text: text != "~"), st.sampled_from([Link, Code, Mark]))
def test_markdown_reads_a_value_as_it_is(text: str, kind: type[Link | Code | Mark]) -> None:
    shown = plain(text, CELL)  # a column of tildes is left out: it says that there is nothing
    part = kind("open", text) if kind is Mark else kind(text, "r-1") if kind is Link else kind(text)
    template = environment().from_string(
        "## t [](#t)\n- {{ a }}\n- x {{ b }}\n\n*c*\n{{ columns('A | B') }}\n| {{ a }} | {{ b }}\n"
    )
    (section,) = _Reader({}, {}).page(template.render(a=text, b=part)).sections
    own = replace(part, text=shown)
    assert section.points == (("", ((shown,), ("x ", own))),)
    assert section.tables[0].rows[0].cells == ((shown,), (own,))
