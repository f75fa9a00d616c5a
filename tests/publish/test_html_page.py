"""Pages as HTML: everything of a page is there, all of it escaped, and no link leads nowhere."""

from __future__ import annotations

import re

from receipts.publish.markup import document, html
from receipts.publish.page import Badge, Code, Column, Entry, Link, Mark, Page, Section, Table, row
from receipts.publish.terminal import Terminal

ATTACK = "<script>alert(1)</script>'\"&\u202e"
PAGE = Page(
    title="A → B",
    headline=(Mark("no", "REJECTED"), "  two settings changed"),
    badges=(Badge("16.0 %", "faster", "yes"),),
    facts=(("A", (Code("3f9c"),)), ("", ("lane cpu",))),
    lead=("One sentence.",),
    next=(("receipts bridge a b", "Split it"),),
    sections=(
        Section(
            "changed",
            "Changed",
            tables=(Table("Changed", (Column("axis"), Column("size", "GiB", numeric=True)), (row("x", "1.50"),)),),
            points=(("step times", (("record them",),)), ("", (("alone",),))),
        ),
        Section(
            "findings",
            "Findings",
            fold="1 finding",
            entries=(
                Entry(
                    "finding-1", (Link("R302", "rule-R302"),), (("", ("there",)),), ("see ", Link("above", "changed"))
                ),
            ),
        ),
    ),
    foot=(("", ("rejected",)),),
)


def _attacked() -> Page:
    cells = (ATTACK, Code(ATTACK), Mark("open", ATTACK), Link(ATTACK, ATTACK))
    table = Table(ATTACK, (Column(ATTACK, ATTACK),), (row(cells),), (ATTACK,))
    sections = (
        Section("s", ATTACK, (ATTACK,), ((ATTACK, (cells,)),), (table,), entries=(Entry("e", cells),), fold=ATTACK),
    )
    return Page(ATTACK, cells, (Badge(ATTACK, ATTACK),), ((ATTACK, cells),), (ATTACK,), ((ATTACK, ATTACK),), sections)


def test_a_fragment_holds_every_part_of_the_page() -> None:
    shown = re.sub(r"<[^>]+>", "", html(PAGE)).replace("\u00a0", " ")
    for text in ("REJECTED", "16.0 %", "3f9c", "lane cpu", "One sentence.", "receipts bridge a b", "GiB", "1.50"):
        assert text in shown
    assert "record them" in shown
    assert "✗" in shown, "the state is read without colors"


def test_no_line_is_broken_within_a_number_its_sign_and_its_unit() -> None:
    text = "tokens/s +16.01 %, 5 + 5 launches"
    page = Page("p", headline=(text, Code(text, command=True)))
    shown = html(page)
    assert shown.count("+16.01\u00a0%, 5\u00a0+\u00a05\u00a0launches") == 1, "but a command is copied as it is"
    for width in range(20, 40):
        lines = list(Terminal(width=width).page(Page("p", headline=(text,))))
        assert " ".join(line.strip() for line in lines) == text
        assert any("+16.01 %" in line for line in lines)
        assert any("5 + 5 launches" in line for line in lines)


def test_the_style_of_a_fragment_reaches_nothing_outside_it() -> None:
    style = html(PAGE).partition("<style>")[2].partition("</style>")[0]
    depth, selectors = 0, []
    for line in re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL).splitlines():
        if depth == 0 and line.strip():
            selectors.append(line.partition("{")[0].strip())
        depth += line.count("{") - line.count("}")
    assert depth == 0
    # The theme of a notebook is said above the fragment; what it colors is the fragment alone.
    parts = [part for item in selectors for part in item.split(", ")]
    assert all(part.startswith((".receipts", "@media")) or part.endswith(" .receipts") for part in parts)


def test_text_of_a_receipt_becomes_no_markup() -> None:
    for text in (html(_attacked()), document(_attacked())):
        assert "<script" not in text
        assert "\u202e" not in text


def test_a_link_leads_to_its_anchor_or_where_the_caller_says_or_nowhere() -> None:
    assert 'href="#changed"' in html(PAGE)
    assert "rule-R302" not in html(PAGE)
    assert 'href="/rules/rule-R302"' in html(PAGE, lambda anchor: f"/rules/{anchor}")
    assert "javascript:" not in html(PAGE, lambda _: "javascript:alert(1)")


def test_a_document_is_whole_and_a_section_without_a_title_has_no_heading() -> None:
    untitled = Page("A", sections=(Section("answers", "", ("text",)),))
    text = document(untitled, "Another title")
    assert text.startswith("<!doctype html>")
    assert "<title>Another title</title>" in text
    assert re.findall(r"<h[1-6]", text) == ["<h1"]
    assert 'href="#answers"' not in text


def test_a_row_too_wide_for_a_terminal_is_a_record_of_named_facts() -> None:
    wide = "x" * 50
    two = Table("", (Column("leaf"), Column("what would give it")), (row("run.host", f"--set {wide}"),))
    assert list(Terminal(width=40, room=40).table(two)) == ["  run.host", "    --set", f"      {wide}"]
    three = Table("", (Column("leaf"), Column("size", "GiB"), Column("from")), (row("a", wide, "b"),))
    assert [line.strip() for line in Terminal(width=40, room=40).table(three)] == ["a", "size GiB:", wide, "from: b"]
