"""The picture of a bridge: its bars, and that it is a picture as the others of a page are."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from receipts.plugins.study import bridge_page
from receipts.publish.svg import VARIABLES

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>\u202e\x00 \" ' & ]]> " + "w" * 10_000


def picture(label: str = "bridge", name: str = "p5") -> str:
    hops = [bridge_page.WaterfallHop(label, math.log(1.25)), bridge_page.WaterfallHop("recompute", math.log(0.8))]
    total = bridge_page.WaterfallHop("B against A", 0.0, -0.02, 0.02)
    drawn = bridge_page.waterfall(hops, total, metric="tokens/s", name=name, title=label)
    assert drawn is not None
    return drawn


def texts(svg: str) -> list[str]:
    return [item.text or "" for item in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_same_values_give_the_same_bytes() -> None:
    assert picture() == picture()


def test_it_has_a_role_a_name_and_a_description() -> None:
    root = ElementTree.fromstring(picture())
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.attrib["role"] == "img"
    assert title.attrib["id"] == root.attrib["aria-labelledby"]
    assert description.attrib["id"] == root.attrib["aria-describedby"]
    assert re.search(r"\d", description.text or "")


def test_a_hostile_label_is_text_and_short() -> None:
    svg = picture(HOSTILE)
    tags = {item.tag.removeprefix(SVG) for item in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "title", "desc", "defs", "g", "path", "text", "use"}
    assert all(len(text) < 120 for text in texts(svg))


def test_it_loads_nothing_and_its_colors_are_the_pages() -> None:
    svg = picture()
    assert "<style" not in svg
    assert re.findall(r"(?:href|src)=\"(?!#)", svg) == []
    assert set(re.findall(r"var\((--[a-z0-9-]+),", svg)) <= set(VARIABLES.values())


def test_two_pictures_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]*)"', picture("a", name))) for name in ("one", "two")]
    assert not ids[0] & ids[1]


def test_axes_have_titles_with_units() -> None:
    assert {"change of tokens/s against A, % (log scale)", "+25.00 %", "−20.00 %"} <= set(texts(picture()))


def test_no_hop_is_no_picture_and_a_hop_of_nothing_is_one() -> None:
    total = bridge_page.WaterfallHop("B against A", 0.0)
    assert bridge_page.waterfall([], total, metric="tokens/s", name="p", title="t") is None
    assert bridge_page.waterfall([bridge_page.WaterfallHop("nothing", 0.0)], total, metric="m", name="p", title="t")


def test_bars_of_a_bridge_follow_one_another_and_end_where_the_whole_does() -> None:
    svg = picture()
    bars = re.findall(r'd="M (-?[\d.]+) [\d.]+ L (-?[\d.]+) [\d.]+ L [^"]*z" style="fill', svg)
    (first, second, whole) = [tuple(float(x) for x in bar) for bar in bars]
    assert first[1] == second[1]
    assert second[0] == pytest.approx(first[0], abs=0.02)
    assert whole[0] == pytest.approx(first[0], abs=0.02)
