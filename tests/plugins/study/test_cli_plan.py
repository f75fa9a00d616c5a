"""`receipts plan`: a screen is planned, launched in part, and read at its looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Shell, shell
from grid_store import Grid, keep
from receipts.plugins.study.experiment import Contrast, read_experiment
from receipts.plugins.study.progress import decide
from receipts.questions.plan import read_plan
from receipts.store import Store, open_store

__all__ = ["shell"]
AXIS = "flags.ALPHA"
SCREEN = 'base = "{base}"\n[vary]\n"flags.ALPHA" = [2, 3]\n'


def planned(shell: Shell, *words: str, stored: int = 3) -> Path:
    grid = Grid({AXIS: ("1", "2")}, {AXIS: 0.97})
    with open_store(str(shell.folder / "store.sqlite"), create=True) as store:
        (launches,) = grid.put(store, [()], stored).values()
    (shell.folder / "arms.toml").write_text(SCREEN.format(base=launches[0].id))
    said = shell("plan", "--screen", "arms.toml", "-o", "screen", "--sigma", "0.3%", *words)
    assert said.code == 0, said.out + said.err
    return shell.folder / "screen"


def launch(store: Store, folder: Path, names: list[str], seed: int, factor: float) -> None:
    for index, name in enumerate(names):
        plan = read_plan(str(folder / name))
        at = {AXIS} if "ALPHA" in name else set()
        flags = plan.receipt.model_dump(mode="json")["flags"]["ALPHA"]
        value = flags["value"] if isinstance(flags, dict) else flags
        grid = Grid({AXIS: ("1", str(value))}, {AXIS: factor}, seed=seed + index)
        keep(store, [grid.launch(at, run__label=plan.receipt.run.label)])


def test_a_screen_counts_what_is_stored_and_ends_when_it_is_decided(shell: Shell) -> None:
    folder = planned(shell)
    experiment = read_experiment(folder)
    assert len(experiment.arm("base").receipts) == 3
    assert [name for _, name, _ in experiment.runs[:3]] == ["base", "ALPHA-2", "ALPHA-3"]
    assert sum(name == "base" for _, name, _ in experiment.runs) == experiment.looks.most - 3
    said = shell("plan", "--next", "screen", "--json")
    assert said.code == 3
    assert said.json["status"] == "run these"
    for seed in (100, 200, 300):
        runs = shell("plan", "--next", "screen", "--json").json["next"]
        with open_store(str(shell.folder / "store.sqlite")) as store:
            launch(store, folder, runs, seed, 0.95)
    said = shell("plan", "--next", "screen", "--json")
    assert (said.code, said.json["status"]) == (0, "decided")
    assert {item["answer"] for item in said.json["answers"]} == {"faster"}
    assert "look" in shell("plan", "--next", "screen").out


def test_a_budget_that_is_too_small_writes_nothing(shell: Shell) -> None:
    planned(shell)
    said = shell("plan", "--screen", "arms.toml", "-o", "other", "--sigma", "0.3%", "--budget", "0.001chip-h")
    assert said.code == 1
    assert "cannot be decided within the budget" in said.err
    assert not (shell.folder / "other").exists()


def test_wrong_files_say_what_to_do(shell: Shell) -> None:
    folder = planned(shell)
    assert "give one of" in shell("plan").err
    (shell.folder / "wrong.toml").write_text('base = "x"\nvary.flags.ALPHA = [1]\nnothing = 1\n')
    said = shell("plan", "--screen", "wrong.toml")
    assert said.code == 2
    assert "nothing" in said.err
    assert "quotes" in said.err
    (folder / "experiment.json").write_text(json.dumps({"version": 99}))
    assert "write one: receipts plan" in shell("plan", "--next", "screen").err


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [(1.002, 1.02, "faster"), (0.9, 0.99, "slower"), (0.995, 1.004, "equivalent"), (0.9, 1.1, "run on")],
)
def test_equivalent_is_an_interval_within_delta_and_nothing_else(low: float, high: float, answer: str) -> None:
    assert decide(Contrast("x", "a", "b"), low, high, 0.01) == answer
