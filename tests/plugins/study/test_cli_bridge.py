"""``receipts bridge``: what it prints, writes and answers with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command_line import HOSTILE, Shell
from grid_store import Grid, keep
from receipts.questions.plan import read_plan
from receipts.receipt import Parsed
from receipts.store import open_store

pytestmark = pytest.mark.slow

X, Y = "flags.ALPHA", "flags.BETA"
VALUES: dict[str, tuple[Any, Any]] = {X: ("0", "1"), Y: ("1", "2")}
EVERY = frozenset(VALUES)
CORNERS = (frozenset[str](), frozenset({X}), frozenset({Y}), EVERY)


def stored(shell: Shell, corners: Iterable[frozenset[str]], launches: int = 3) -> dict[frozenset[str], Parsed]:
    """A launch of each corner of a grid, the first of those that the shell's store now holds."""
    grid = Grid(VALUES, {X: 0.9, Y: 1.1}, {EVERY: 0.95})
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        return {corner: group[0] for corner, group in grid.put(store, corners, launches).items()}


def ends(made: dict[frozenset[str], Parsed]) -> tuple[str, str]:
    return made[frozenset()].id[:12], made[EVERY].id[:12]


def test_a_bridge_is_a_waterfall_that_ends_with_the_total(shell: Shell) -> None:
    said = shell("bridge", *ends(stored(shell, CORNERS)))
    assert said.code == 0
    assert "Bridge of 2 hops; the best evidenced of 2 chains" in said.out
    assert re.search(r"total +[+−]\d+\.\d\d %", said.out)
    assert "Gain of each axis over 2 chains" in said.out
    assert "Interactions, where a 2×2 of receipts exists" in said.out
    assert re.match(r"BRIDGED  [+−]\d+\.\d\d % on tokens_per_second in 2 accepted hops: ", said.lines[0])


def test_the_picture_of_a_bridge_has_its_hops_and_its_total(shell: Shell) -> None:
    made = stored(shell, CORNERS)
    path = shell.folder / "bridge.svg"
    said = shell("bridge", *ends(made), "--svg", str(path))
    assert said.code == 0
    texts = {item.text for item in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {X, Y, "change of tokens/s against A, % (log scale)"}
    total = re.search(r"total +([+−]\d+\.\d\d) %", said.out)
    assert total is not None
    assert f"{total[1]} %" in texts


def test_where_there_is_no_bridge_no_picture_is_written(shell: Shell) -> None:
    made = stored(shell, [CORNERS[0], EVERY])
    path = shell.folder / "bridge.svg"
    said = shell("bridge", *ends(made), "--svg", str(path))
    assert said.code in (1, 3)
    assert "is not written: there is no bridge" in said.err
    assert not path.exists()


@pytest.mark.parametrize("columns", ["60", "120"])
def test_no_line_is_wider_than_the_terminal(shell: Shell, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    whole = shell("bridge", *ends(stored(shell, CORNERS)))
    assert max(map(len, whole.lines)) <= int(columns)
    for word in (X, Y, "cumulative", "95 %"):
        assert word in whole.out


def test_as_json_the_log_ratios_of_each_chain_add_to_the_total(shell: Shell) -> None:
    made = stored(shell, CORNERS)
    told = shell("bridge", *ends(made), "--json").json
    assert told["status"] == "bridged"
    assert set(told["axes"]) == EVERY
    for chain in told["chains"]:
        added = sum(hop["gain"]["log_ratio"] for hop in chain)
        assert added == pytest.approx(told["total"]["log_ratio"], abs=1e-14)
        assert all(hop["status"] == "accepted" for hop in chain)
    assert told["interactions"][0]["shown"] is True
    assert set(told["by_axis"]) == EVERY


def test_graphviz_text_has_every_configuration_and_dashes_what_is_not_accepted(shell: Shell) -> None:
    made = stored(shell, [CORNERS[0], EVERY])
    cold = {"measurement__window": {"start": 0, "stop": 120, "warmup_steps": 0}}
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        grid = Grid(VALUES, {X: 0.9, Y: 1.1}, seed=9)
        keep(store, [grid.launch([X], run__label=f'{HOSTILE} "quoted"', **cold)])
    said = shell("bridge", *ends(made), "--dot")
    assert said.out.startswith("digraph bridge {")
    assert said.out.endswith("}\n")
    assert said.out.count("style=dashed") == 2
    assert "style=dotted" in said.out
    assert '\\"quoted\\"' in said.out
    assert "\x1b" not in said.out
    for line in said.lines[2:-1]:
        assert re.fullmatch(r'  \w+( -> \w+)? \[label="(?:[^"\\]|\\.)*".*\];', line), line


def test_missing_runs_are_written_as_plans_and_nothing_is_overwritten(shell: Shell) -> None:
    made = stored(shell, [CORNERS[0], EVERY])
    said = shell("bridge", *ends(made), "--plan", "missing")
    assert said.code == 3
    (path,) = Path("missing").iterdir()
    assert f"receipts run --plan {path} -- COMMAND…" in " ".join(said.out.split())
    plan = read_plan(str(path))
    moved = {X: plan.stated[X] == "1", Y: plan.stated[Y] == 2}
    assert sorted(moved.values()) == [False, True]
    before = path.read_bytes()
    again = shell("bridge", *ends(made), "--plan", "missing")
    assert again.code == 2
    assert "exists and is kept" in again.err
    assert path.read_bytes() == before


def test_where_nothing_is_missing_no_plan_is_written_and_that_is_said(shell: Shell) -> None:
    said = shell("bridge", *ends(stored(shell, CORNERS)), "--plan", "missing")
    assert said.code == 0
    assert "nothing is missing" in said.err
    assert not Path("missing").exists()


def test_files_are_bridged_by_what_they_ran(shell: Shell) -> None:
    made = stored(shell, CORNERS)
    for name, one in (("a", made[frozenset()]), ("b", made[EVERY])):
        (shell.folder / f"{name}.json").write_bytes(one.raw)
    assert shell("bridge", "a.json", "b.json").code == 0


def test_a_bridge_goes_by_options_that_no_leaf_has(shell: Shell) -> None:
    heads, lr = "inputs.options.heads", "inputs.options.lr"
    grid = Grid({heads: ("8", "2"), lr: ("1e-3", "1e-2")}, {heads: 0.9, lr: 1.1})
    corners = [frozenset[str](), frozenset({heads}), frozenset({lr}), frozenset({heads, lr})]
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        made = {
            corner: [
                grid.launch(corner, schema_version="1.1", inputs__program="t.py", inputs__capture="whole")
                for _ in range(3)
            ]
            for corner in corners
        }
        keep(store, [item for group in made.values() for item in group])
    said = shell("bridge", made[corners[0]][0].id[:12], made[corners[-1]][0].id[:12])
    assert said.code == 0
    assert said.lines[0].startswith("BRIDGED")
    for name, values, gain in (("inputs.heads", "8 → 2", 11.1), ("inputs.lr", "1e-3 → 1e-2", -9.1)):
        hop = re.search(rf"{re.escape(name)} +{values} +([+−]\d+\.\d+) %", said.out)
        assert hop is not None
        assert float(hop[1].replace("−", "-")) == pytest.approx(gain, abs=0.5)


def test_a_wrong_call_says_what_to_do(shell: Shell) -> None:
    a, b = ends(stored(shell, CORNERS))
    both = shell("bridge", a, b, "--dot", "--json")
    assert (both.code, "ask for one of them" in both.err) == (2, True)
    assert shell("bridge", a, "nowhere").code == 2
    unknown = shell("bridge", a, b, "--metric", "tokens_per_secnd")
    assert (unknown.code, "tokens_per_second" in unknown.err) == (2, True)
    assert shell("bridge", a, a).code == 2
