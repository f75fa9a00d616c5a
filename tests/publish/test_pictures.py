"""Pictures that stand inside a page: what each says, what it may never do, and that it takes the page's colours."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from receipts.publish import plots
from receipts.publish.plots import Ran, Trace, launches_picture
from receipts.publish.plots import steps_picture as drawn_steps
from receipts.publish.report import frontier
from receipts.publish.svg import MARKS, VARIABLES, contrast

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>\u202e\x00\ud800\ufffe שלום 訓練 $x^2$ \" ' & ]]> " + "w" * 10_000
SVG = "{http://www.w3.org/2000/svg}"


def sequence_picture(label: str = "dense", name: str = "p1") -> str | None:
    points = [
        frontier.SequencePoint(label, 4096, 20_000.0, 0.4, True, 19_000.0, 21_000.0, "validated"),
        frontier.SequencePoint(label, 8192, 18_000.0, 0.38, True, grade="repeated"),
        frontier.SequencePoint("sparse", 4096, 9_000.0, None, False),
    ]
    return frontier.sequence_picture(points, name=name, title=label)


def effects(label: str = "buckets 1 → 2", name: str = "p6") -> str | None:
    found = [
        plots.ForestRow(label, 1.1, 1.08, 1.12, 0.01, True),
        plots.ForestRow("rate", 0.999, 0.98, 1.02, 0.01, False),
    ]
    return plots.effects_picture(found, name=name, title=label)


def steps_picture(label: str = "pair", name: str = "p4") -> str | None:
    traces = [Trace(f"{side}: {label}", [0.02, 0.021, 0.019, 0.5], [0, 1, 2]) for side in "AB"]
    return drawn_steps(traces, name=name, title=label)


Draws = Callable[..., str | None]
ALL: dict[str, Draws] = {
    "sequence": sequence_picture,
    "forest": effects,
    "steps": steps_picture,
}
every = pytest.mark.parametrize("draw", ALL.values(), ids=ALL)


def made(draw: Draws, *given: str) -> str:
    found = draw(*given)
    assert found is not None
    return found


def texts(svg: str) -> list[str]:
    return [item.text or "" for item in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@every
def test_the_same_values_give_the_same_bytes(draw: Draws) -> None:
    assert draw() == draw()


def test_another_process_draws_the_same_bytes() -> None:
    code = "import test_pictures as t; print(t.effects() + t.sequence_picture(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout == made(effects) + made(sequence_picture)


@every
def test_a_picture_has_a_role_a_name_and_a_description(draw: Draws) -> None:
    root = ElementTree.fromstring(made(draw))
    assert root.attrib["role"] == "img"
    title, says = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert says is not None
    assert (title.attrib["id"], says.attrib["id"]) == (
        root.attrib["aria-labelledby"],
        root.attrib["aria-describedby"],
    )
    assert title.text
    assert re.search(r"\d", says.text or "")


@every
def test_a_hostile_label_is_text_and_short(draw: Draws) -> None:
    svg = made(draw, HOSTILE)
    tags = {item.tag.removeprefix(SVG) for item in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "title", "desc", "defs", "g", "path", "text", "use"}
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\x00-\x08]", svg)
    assert all(len(text) < 160 for text in texts(svg))
    assert len(svg) < 60_000


@every
def test_a_picture_loads_nothing_and_has_no_sheet_of_its_own(draw: Draws) -> None:
    svg = made(draw)
    assert "<style" not in svg
    assert "font-family" not in svg
    assert re.findall(r"(?:href|src)=\"(?!#)", svg) == []
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)", svg))


@every
def test_two_pictures_share_no_id_and_each_link_stays_in_its_own(draw: Draws) -> None:
    both = [made(draw, "a", "one"), made(draw, "a", "two")]
    ids = [set(re.findall(r' id="([^"]*)"', svg)) for svg in both]
    assert not ids[0] & ids[1]
    for svg, own in zip(both, ids, strict=True):
        assert set(re.findall(r'href="#([^"]*)"', svg)) <= own


@every
def test_every_colour_is_one_that_the_page_may_change(draw: Draws) -> None:
    svg = made(draw)
    assert re.sub(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", "", svg).count("#") == svg.count('href="#')
    assert set(re.findall(r"var\((--[a-z0-9-]+),", svg)) <= set(VARIABLES.values())


@pytest.mark.parametrize(("ground", "which"), [("#ffffff", "light"), ("#16181a", "dark")])
def test_marks_stand_out_on_their_ground(ground: str, which: str) -> None:
    for mark in MARKS:
        assert contrast(ground, getattr(mark, which)) >= 4.5


def test_series_differ_without_colour() -> None:
    assert len({mark.shape for mark in MARKS}) == len({mark.dash for mark in MARKS}) == len(MARKS)


@pytest.mark.parametrize(
    ("draw", "units"),
    [
        (sequence_picture, {"tokens/s/chip", "MFU, %", "sequence length, tokens (log scale)", "4K"}),
        (effects, {"change of B against A, %; the band is no change that matters", "+10.00 % (+8.00 to +12.00)"}),
        (
            steps_picture,
            {"step time, ms (axis from 19)", "step", "A: pair", "2 slower steps at the edge, up to 500 ms"},
        ),
    ],
)
def test_axes_have_titles_with_units(draw: Draws, units: set[str]) -> None:
    assert units <= set(texts(made(draw)))


def test_launches_stand_where_they_ran_each_with_the_mark_of_its_side() -> None:
    turns = [Ran(side, at * 60.0, 100.0 + at) for at, side in enumerate((0, 1, 1, 0))]
    svg = launches_picture(turns, ("A", "B"), "tokens/s", name="p5") or ""
    assert {"tokens/s", "minutes from the first start", "A", "B"} <= set(texts(svg))
    one = launches_picture(turns[:1], ("A", "B"), "tokens/s", name="p5")
    assert one is None


def test_an_axis_that_does_not_begin_at_zero_says_so() -> None:
    assert any("(axis from 19)" in text for text in texts(made(steps_picture)))
    assert "0" in texts(made(sequence_picture))


def test_what_is_stated_only_is_hollow() -> None:
    lengths = ((1024, True), (2048, False), (4096, True))
    points = [frontier.SequencePoint("a", length, 10.0, None, proven) for length, proven in lengths]
    svg = frontier.sequence_picture(points, name="p", title="t")
    assert svg is not None
    fills = re.findall(r"<use [^>]*style=\"fill: var\((--[a-z0-9-]+),", svg)
    assert sorted(fills) == ["--mark-1"] * 3 + ["--paper"]  # one is the legend's


def test_ceilings_have_a_bar_and_intervals_feet() -> None:
    bare = [frontier.SequencePoint("a", length, 10.0, None, True) for length in (1024, 2048, 4096)]

    def lines(points: list[frontier.SequencePoint]) -> int:
        return (frontier.sequence_picture(points, name="p", title="t") or "").count("stroke: var(--mark-1")

    plain = lines(bare)
    assert lines([replace(bare[0], grade="peak"), *bare[1:]]) == plain
    assert lines([replace(bare[0], grade="repeated"), *bare[1:]]) == plain + 1
    assert lines([replace(bare[0], low=9.0, high=11.0), *bare[1:]]) == plain + 1


def test_no_more_series_are_drawn_than_can_be_told_apart() -> None:
    points = [frontier.SequencePoint(f"s{index}", 1024, 10.0 + index, None, True) for index in range(20)]
    drawn, names = frontier.shown_points([*points, frontier.SequencePoint("s13", 2048, 9.0, None, True)])
    assert len(names) == len(MARKS)
    assert "s13" in names
    assert {item.series for item in drawn} == set(names)


def test_nothing_to_draw_is_no_picture() -> None:
    point = frontier.SequencePoint("a", 1024, 10.0, None, True)
    assert frontier.sequence_picture([], name="p", title="t") is None
    assert frontier.sequence_picture([point], name="p", title="t") is None
    assert frontier.sequence_picture([replace(point, rate=None), replace(point, length=0)], name="p", title="t") is None
    assert drawn_steps([Trace("A", [1.0], [])], name="p", title="t") is None


def test_a_lone_effect_is_no_picture() -> None:
    assert plots.effects_picture([plots.ForestRow("a", 1.1, 1.0, 1.2, 0.01, True)], name="p", title="t") is None


def test_an_effect_lies_where_its_axis_says_and_what_is_open_is_hollow() -> None:
    svg = made(effects)
    fills = re.findall(r"<use [^>]*style=\"fill: var\((--[a-z0-9-]+),", svg)
    assert fills == ["--mark-1", "--paper"]
    places = [float(x) for x in re.findall(r"<use x=\"([\d.]+)\"", svg)]
    assert places[0] > places[1]


def test_equal_numbers_are_no_error() -> None:
    assert drawn_steps([Trace("A", [1.0] * 9, range(9))], name="p", title="t") is not None
    same = [frontier.SequencePoint("a", length, 10.0, 0.0, True) for length in (1024, 1024, 2048)]
    assert frontier.sequence_picture(same, name="p", title="t") is not None
