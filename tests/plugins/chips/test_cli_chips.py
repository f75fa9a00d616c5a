"""``receipts chips``: every chip where it stands, within the terminal's width, in words without colour, and as SVG."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rule_cases
from command_line import HOSTILE, Shell
from receipts.cli.asked import command
from receipts.metrics.chips import METRICS, PHASES
from receipts.plugins.chips.questions import chips

pytestmark = pytest.mark.slow

GIB = 2**30
SVG = "{http://www.w3.org/2000/svg}"


def rows(values: dict[int, float], phase: str = "steady", limit: float = 64, **more: Any) -> list[dict[str, Any]]:
    return [
        {"chip": chip, "phase": phase, "bytes_limit": int(limit * GIB), "peak_bytes": int(value * GIB), **more}
        for chip, value in values.items()
    ]


def slice_of(shell: Shell, name: str, count: int, physical: str, **leaves: Any) -> str:
    values = {chip: 20 + chip / 10 for chip in range(count)}
    hardware = {"accelerator": "TPU v6e", "chips": count, "physical": physical}
    return shell.write(name, "tpu", hardware=hardware, memory={"chips": rows(values)}, **leaves)


def test_the_options_are_those_of_the_account() -> None:
    choices = {option.name: getattr(option.type, "choices", None) for option in command(chips).params}
    assert tuple(choices["phase"] or ()) == PHASES
    assert tuple(choices["metric"] or ()) == METRICS


def test_each_chip_stands_where_it_is_on_the_torus(shell: Shell) -> None:
    said = shell("chips", slice_of(shell, "one", 16, "4x4"))
    assert said.code == 0
    lines = [line for line in said.lines if line.startswith("  y ")]
    assert [re.findall(r"\d+\.\d", line) for line in lines][1] == ["20.4", "20.5", "20.6", "20.7"]
    assert "15" in lines[3].strip().split("  ")[1]
    assert "chip 15 leads with 21.50 GiB live peak" in " ".join(said.out.split())


def test_planes_stand_for_the_third_coordinate(shell: Shell) -> None:
    said = shell("chips", slice_of(shell, "one", 8, "2x2x2"))
    assert "z 0" in said.out
    assert "z 1" in said.out


def test_gpus_stand_in_a_row_a_host(shell: Shell) -> None:
    values = {chip: 100.0 + chip for chip in range(16)}
    hardware = {"accelerator": "NVIDIA H200", "chips": 16, "hosts": 2}
    path = shell.write("one", "megatron", hardware=hardware, memory={"chips": rows(values, limit=139.8)})
    said = shell("chips", path)
    assert [line.split()[2] for line in said.lines if line.startswith("  host ")] == ["0–7", "8–15"]


@pytest.mark.parametrize("columns", [40, 60, 100, 120])
@pytest.mark.parametrize(("count", "physical"), [(1, "1x1"), (8, "2x4"), (64, "4x4x4"), (256, "16x16")])
def test_no_line_is_wider_than_the_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int, count: int, physical: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = shell("chips", slice_of(shell, "one", count, physical))
    assert said.code == 0
    assert max(map(len, said.lines)) <= columns


def test_a_missing_and_a_doubled_chip_are_drawn_and_named(shell: Shell) -> None:
    values = {chip: 20.0 for chip in range(8) if chip != 5}
    made = [*rows(values), *rows({2: 21.0})]
    hardware = {"accelerator": "TPU v6e", "chips": 8, "physical": "2x4"}
    said = shell("chips", shell.write("one", "tpu", hardware=hardware, memory={"chips": made}))
    text = " ".join(said.out.split())
    assert "chip 5 has no row" in text
    assert "chip 2 is listed twice" in text
    assert "-- no row" in text
    assert "= two rows" in text


def test_a_figure_for_all_chips_is_drawn_on_none(shell: Shell) -> None:
    memory = {"aggregate": {"bytes": 118 * GIB, "over": "unstated", "kind": "live"}}
    said = shell("chips", shell.write("one", "megatron", memory=memory))
    assert said.code == 3
    assert "it is no chip's own" in " ".join(said.out.split())
    assert "118.00 GiB" in said.out


def test_what_is_stated_is_told_where_the_figure_asked_for_is_not(shell: Shell) -> None:
    said = shell("chips", slice_of(shell, "one", 4, "2x2"), "--metric", "pool")
    assert said.code == 3
    assert "--phase steady --metric peak" in " ".join(said.out.split())


def test_without_a_name_the_first_figure_that_is_stated_is_drawn(shell: Shell) -> None:
    made = [{"chip": chip, "phase": "steady", "peak_reserved_bytes": (20 + chip) * GIB} for chip in range(4)]
    hardware = {"accelerator": "TPU v6e", "chips": 4, "physical": "2x2"}
    said = shell("chips", shell.write("one", "tpu", hardware=hardware, memory={"chips": made}))
    assert said.code == 0
    assert said.lines[0].startswith("steady: chip 3 leads with 23.00 GiB pool peak")
    assert "Pool peak by chip, steady, in GiB" in said.lines


def test_headroom_marks_the_chip_with_the_least(shell: Shell) -> None:
    said = shell("chips", slice_of(shell, "one", 4, "2x2"), "--metric", "headroom", "--json")
    assert said.json["tightest"]["chip"] == 3
    assert said.json["tightest"]["headroom_bytes"] == 64 * GIB - int(20.3 * GIB)


def test_the_worst_phase_is_drawn_unless_one_is_named(shell: Shell) -> None:
    made = [*rows({0: 9.0, 1: 8.0}, "post_step0"), *rows({0: 5.0, 1: 6.0})]
    hardware = {"accelerator": "TPU v6e", "chips": 2, "physical": "1x2"}
    path = shell.write("one", "tpu", hardware=hardware, memory={"chips": made})
    assert shell("chips", path, "--json").json["phase"] == "post_step0"
    assert shell("chips", path, "--phase", "steady", "--json").json["phase"] == "steady"


def moved(shell: Shell) -> tuple[str, str]:
    hardware = {"accelerator": "TPU v6e", "chips": 4, "physical": "2x2"}
    before, after = {0: 29.0, 1: 20.0, 2: 20.0, 3: 20.0}, {0: 22.0, 1: 20.0, 2: 28.8, 3: 20.0}
    return tuple(
        shell.write(name, "tpu", hardware=hardware, memory={"chips": rows(values)})
        for name, values in (("before", before), ("after", after))
    )  # type: ignore[return-value]  # two names, two paths


def test_pressure_that_moved_is_told_from_pressure_that_fell(shell: Shell) -> None:
    said = shell("chips", *moved(shell))
    assert said.code == 0
    assert "pressure moved: chip 0 fell from 29.00 GiB to 22.00 GiB, chip 2 rose" in " ".join(said.out.split())
    assert "+8.80" in said.out


def test_compare_says_the_same_of_pressure_as_chips_does(shell: Shell) -> None:
    a, b = moved(shell)
    words = " ".join(shell("chips", a, b).out.split())
    compared = shell("compare", a, b, "-v")
    sentence = re.search(r"pressure moved: .*?\(.*?%\)", words)
    assert sentence is not None
    assert sentence.group() in " ".join(compared.out.split())
    assert "C109 moved_pressure" in compared.out
    assert sentence.group().partition(" fell")[0] in shell("compare", a, b, "--format", "markdown").out
    assert shell("compare", a, b, "--json").json["memory"]["pressure"] == "moved"


def test_the_stores_equal_launches_say_what_counts_as_a_change(shell: Shell) -> None:
    steps = [2.3 + index % 7 / 1000 for index in range(300)]
    for index in range(3):
        own = [step * (1 + index / 1000) for step in steps]
        peaks = {0: 20.0 + index, **dict.fromkeys(range(1, 8), 19.0)}
        memory = {"chips": rows(peaks, limit=31.25, bytes_used=GIB)}
        leaves = {"measurement__step_durations_seconds": own, "measurement__stated": {}}
        shell.store(f"run-{index}", "tpu", memory=memory, **leaves)
    data = shell("chips", "run-0", "run-2", "--json").json["change"]
    assert data["margin_source"] == "store"
    assert data["margin"] == pytest.approx(2 / 22)
    assert data["pressure"] == "same"


def test_the_svg_names_itself_and_tells_every_value_in_words(shell: Shell) -> None:
    path = slice_of(shell, "one", 16, "4x4")
    assert shell("chips", path, "--svg", "one.svg").code == 0
    root = ElementTree.fromstring(Path("one.svg").read_text(encoding="utf-8"))
    assert root.get("role") == "img"
    assert (root.findtext(f"{SVG}title") or "").endswith("in GiB")
    said = root.findtext(f"{SVG}desc") or ""
    assert "chip 15 21.5" in said
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert texts.count("20.7") == 1
    assert "y 3" in texts


def test_the_svg_is_the_same_whenever_it_is_drawn(shell: Shell) -> None:
    path = slice_of(shell, "one", 8, "2x4")
    shell("chips", path, "--svg", "one.svg")
    shell("chips", path, "--svg", "two.svg")
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(shell: Shell) -> None:
    said = shell("chips", slice_of(shell, "one", 8, "2x4"), "--svg", "no/such/folder.svg")
    assert said.code == 2
    assert "name a place that can be written" in said.err
    assert not Path("no").exists()


def test_hostile_names_harm_neither_terminal_nor_picture(shell: Shell) -> None:
    path = slice_of(shell, "one", 4, "2x2", run__label=f"<b>&{HOSTILE}")
    said = shell("chips", path, "--svg", "one.svg")
    assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(said.out)
    text = Path("one.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(text)


def test_show_tells_what_chips_tells(shell: Shell) -> None:
    path = slice_of(shell, "one", 16, "4x4")
    shown, drawn = (" ".join(shell(verb, path).out.split()) for verb in ("show", "chips"))
    sentence = "steady: chip 15 leads with 21.50 GiB live peak, 3.6 % above the median chip"
    assert sentence in shown
    assert sentence in drawn
    memory = json.loads(shell("show", path, "--json").out)["memory"]
    assert memory["phases"] == shell("chips", path, "--json").json["phases"]


def test_the_weekly_report_tells_leader_skew_and_earlier_peak(shell: Shell) -> None:
    made = [*rows({0: 20.0, 1: 20.0, 2: 25.0}, step=12), *rows({3: 20.0}, step=40)]
    shell.store("one", "tpu", hardware={"accelerator": "TPU v6e", "chips": 4}, memory={"chips": made})
    started = datetime.fromisoformat(rule_cases.base("tpu")["run"]["started"])
    week = f"{started:%G-W%V}"
    data = shell("report", "weekly", "--week", week, "--as-of", "2100-01-01T00:00Z", "--json").json
    (found,) = data["headroom"]["shown"]
    assert (found["leaders"], found["skew"]) == ([2], pytest.approx(0.25))
    assert (found["first_chips"], found["first_step"], found["last_step"]) == ([0, 1, 2], 12, 40)
    page = Path("report/report.md").read_text(encoding="utf-8")
    assert "chips 0 to 2 at step 12, the last at 40" in page


def test_show_of_very_many_chips_lists_the_tightest(shell: Shell) -> None:
    said = shell("show", slice_of(shell, "one", 256, "16x16"))
    assert "the 16 tightest of 256 chips" in said.out
    assert next(line.split()[0] for line in said.lines if " steady  " in line) == "255"


def test_a_map_says_which_lineage_the_launch_ran_on(shell: Shell) -> None:
    said = shell("chips", shell.write("one", "tpu", wheels__torch="2.8.0"))
    assert "lineage neither documented nor validated" in " ".join(said.out.split())


def test_a_label_of_two_launches_has_a_map_of_each(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.store(name, "tpu", run__label="both")
    assert [item["name"] for item in shell("chips", "both", "--json").json] == ["both", "both"]
    assert shell("chips", "both", "--svg", "two.svg").code == 2
