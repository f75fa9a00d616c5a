"""Memory over the topology: where chips stand, which shade a value has, and what a picture holds."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from receipts.base.units import GIB
from receipts.plugins.chips.page import lines
from receipts.plugins.chips.topology import ChipLayout, Heat, chip_picture, layout


def place(made: ChipLayout, chip: int) -> tuple[int, int, int]:
    return tuple(made.places[chip])  # type: ignore[return-value]  # three numbers


@pytest.mark.parametrize(
    ("physical", "count", "chip", "expected"),
    [("4x4", 16, 6, (0, 1, 2)), ("16x16", 256, 17, (0, 1, 1)), ("2x4", 8, 3, (0, 1, 1)), ("4x4x4", 64, 27, (1, 2, 3))],
)
def test_a_torus_has_its_first_coordinate_fastest(
    physical: str, count: int, chip: int, expected: tuple[int, int, int]
) -> None:
    made = layout(range(count), count=count, physical=physical, accelerator="TPU v6e")
    assert place(made, chip) == expected


def test_machines_without_a_torus_stand_in_rows_by_host() -> None:
    made = layout(range(16), count=16, hosts=2, physical="2x8", accelerator="NVIDIA H200")
    assert (made.rows, made.columns, made.row_word) == (2, 8, "host")
    assert place(made, 9) == (0, 1, 1)


def test_a_shape_that_does_not_hold_the_chips_is_not_drawn() -> None:
    made = layout(range(8), count=8, physical="4x4", accelerator="TPU v6e")
    assert "does not hold these 8 chips" in made.note


def test_a_chip_without_a_row_keeps_its_place() -> None:
    made = layout([0, 1, 3], count=4, physical="2x2", accelerator="TPU v6e")
    assert place(made, 2) == (0, 1, 0)


def test_ordinals_with_gaps_stand_in_their_order() -> None:
    made = layout([8, 9, 12, 13], count=4, physical="2x2", accelerator="TPU v6e")
    assert [place(made, chip)[2] for chip in (8, 9, 12, 13)] == [0, 1, 2, 3]


def heat(*values: float, **more: object) -> Heat:
    amounts = {chip: value * GIB for chip, value in enumerate(values)}
    return Heat(layout(list(amounts), count=len(amounts)), amounts, "title", "about", **more)  # type: ignore[arg-type]  # each as its field


def test_chips_alike_look_alike() -> None:
    made = heat(100.0, 100.1)
    low, high = made.scale
    assert high - low == pytest.approx(0.05 * 100.1 * GIB)
    assert abs((made.share(0) or 0) - (made.share(1) or 0)) < 0.03


def test_the_least_headroom_is_the_darkest() -> None:
    made = heat(1.0, 20.0, worse="lower")
    assert made.share(0) == 1.0
    assert made.share(1) == 0.0


def test_a_change_is_white_where_there_is_none_and_red_where_pressure_grew() -> None:
    grew, shrank = heat(-5.0, 0.0, 10.0, worse="either"), heat(-5.0, 0.0, 10.0, worse="either", relief="up")
    assert [grew.share(chip) for chip in range(3)] == [-0.5, 0.0, 1.0]
    assert [shrank.share(chip) for chip in range(3)] == [0.5, 0.0, -1.0]


def test_a_map_falls_back_to_percents_and_then_to_shades() -> None:
    made = heat(*(float(value) for value in range(10, 18)), limits=dict.fromkeys(range(8), 20.0 * GIB))
    for width, cells, texts in ((80, "GiB a chip", ("10.0", "17.0")), (40, "percent", ("50", "85")), (24, "shade", ())):
        shown = "\n".join(lines(made, width=width))
        assert f"cells: {cells}" in shown or f"cells: a {cells}" in shown
        assert all(text in shown for text in texts)
        assert max(map(len, shown.splitlines())) <= max(width, 30)


def texts(chips: int, hosts: int = 1) -> tuple[float, list[str]]:
    """The height of a picture, and its texts."""
    shares = {chip: (12 + chip % 7) / 20 for chip in range(chips)}
    place = layout(range(chips), count=chips, hosts=hosts)
    limits = dict.fromkeys(shares, 20.0 * GIB)
    leaders = frozenset(chip for chip, share in shares.items() if share == max(shares.values()))
    values = {chip: 20.0 * GIB * share for chip, share in shares.items()}
    drawn = chip_picture(Heat(place, values, "GiB", "", limits=limits, leaders=leaders, thin=frozenset({0})), "p")
    root = ElementTree.fromstring(drawn or "")
    return float(root.attrib["height"]), [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_chip_has_a_cell_where_the_topology_has_it() -> None:
    assert {"one host", "15.0", "12.0!"} <= set(texts(4)[1])
    values = [text for text in texts(16, 2)[1] if text.rstrip("!").replace(".", "").isdigit() and "." in text]
    assert len(values) == 16


def test_hundreds_of_chips_are_no_taller_than_a_page() -> None:
    assert texts(512)[0] < 400
