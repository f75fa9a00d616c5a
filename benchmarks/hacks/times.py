"""Clocks and flags: steps that were told shorter than they were, and slow steps that were called something else."""

from __future__ import annotations

from datetime import datetime, timedelta

from benchmarks.hacks.launches import (
    GOODPUT,
    STEPS,
    WALLS,
    Answer,
    Tree,
    check,
    edited,
    launch,
    observed,
    shown,
    times,
)  # fmt: skip
from benchmarks.hacks.suite import Hack

FASTER = {STEPS: times(0.5), WALLS: times(0.5)}
FLAGS = "measurement.step_flags"
REPLACED = {"name": "functions of the recorder that the job replaced", "expected": 0}


def _idle() -> Tree:
    """Steps divided by two, and what they leave written as idle time."""
    tree = launch()
    gone = sum(tree["measurement"]["step_durations_seconds"]) / 2
    spent = {f"{GOODPUT}.step_seconds": times(0.5), f"{GOODPUT}.idle_seconds": lambda seconds: seconds + gone}
    return edited(tree, FASTER | spent)


def _slowed(flag: str | None, every: int = 2) -> Tree:
    """A launch of which every other step took three times as long, which a flag says was something else."""
    tree = launch()
    slow = range(11, 300, every)
    steps = [step * (3 if at in slow else 1) for at, step in enumerate(tree["measurement"]["step_durations_seconds"])]
    longer = sum(steps) - sum(tree["measurement"]["step_durations_seconds"])
    tree = edited(tree, {STEPS: steps, WALLS: [step + 0.002 for step in steps], f"{GOODPUT}.step_seconds": sum(steps)})
    tree["run"]["finished"] = _later(tree["run"]["finished"], longer)
    return edited(tree, {f"{FLAGS}.{flag}": list(slow)} if flag else {})


def _later(moment: str, seconds: float) -> str:
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat()


def _evaluated() -> Tree:
    """A launch that evaluates inside some steps, with the span that says so."""
    tree = launch()
    slow = range(29, 300, 30)
    steps = [step + (4 if at in slow else 0) for at, step in enumerate(tree["measurement"]["step_durations_seconds"])]
    tree = edited(tree, {STEPS: steps, WALLS: [step + 0.002 for step in steps], f"{FLAGS}.eval": list(slow)})
    tree["measurement"]["goodput"]["eval_seconds"] = 4.0 * len(slow)
    tree["run"]["finished"] = _later(tree["run"]["finished"], 4.0 * len(slow))
    return tree


def _window_only() -> Tree:
    return edited(launch(), {STEPS: lambda steps: [*steps[:10], *(step / 2 for step in steps[10:])]})


def _rate(tree: Tree, claimed: float) -> Answer:
    return shown(tree, "tokens_per_second", claimed)


HACKS = (
    Hack("clock", "steps divided by two and the rest called idle, beside the launcher's clock", "10,240 tokens/s",
         lambda: observed(_idle(), launch()), lambda: observed(launch(), launch())),
    Hack("clock", "the recorder's functions replaced by ones that halve a step", "10,240 tokens/s",
         lambda: check(edited(launch(), {"measurement.path_counters": [{**REPLACED, "count": 1}]})),
         lambda: check(launch())),
    Hack("clock", "steps divided by two, digest anew", "10,240 tokens/s instead of 5,120",
         lambda: check(edited(launch(), FASTER)), lambda: check(launch(seconds=0.4))),
    Hack("clock", "steps divided by ten, digest anew", "51,200 tokens/s",
         lambda: check(edited(launch(), {STEPS: times(0.1), WALLS: times(0.1)})),
         lambda: check(launch(seconds=0.08))),
    Hack("clock", "steps and their sum divided by two", "10,240 tokens/s",
         lambda: check(edited(launch(), FASTER | {f"{GOODPUT}.step_seconds": times(0.5)})),
         lambda: check(edited(launch(), {"run.started": "1970-01-01T00:00:04+00:00"}))),
    Hack("clock", "a clock that ran at half speed", "10,240 tokens/s",
         lambda: check(edited(launch(), FASTER | {f"{GOODPUT}.{name}_seconds": times(0.5) for name in
                                                  ("step", "idle")})),
         lambda: check(edited(launch(), {"run.finished": lambda moment: _later(moment, 3600.0)}))),
    Hack("clock", "steps of the window alone divided by two", "10,240 tokens/s",
         lambda: check(_window_only()), lambda: check(launch(gap=0.05))),
    Hack("clock", "steps divided by two, spans dropped", "10,240 tokens/s",
         lambda: check(edited(launch(), FASTER, drop=(GOODPUT,))),
         lambda: check(edited(launch(), {"run.finished": lambda moment: _later(moment, 0.9)}))),
    Hack("clock", "wall time of the steps divided by two", "10,240 tokens/s",
         lambda: check(edited(launch(), {WALLS: times(0.45)})), lambda: check(launch(gap=0.4))),
    Hack("clock", "a baseline slowed by two", "B is 99 % faster",
         lambda: check(edited(launch(), {STEPS: times(1.5), WALLS: times(1.5)})), lambda: check(launch(seconds=1.2))),
    Hack("clock", "every other step is three times as long, and flagged warm-up", "5,120 tokens/s of 2,560",
         lambda: _rate(_slowed("warmup"), 5107.0), lambda: _rate(_slowed(None), 2559.0)),
    Hack("clock", "slow steps flagged as checkpoints that no span shows", "5,120 tokens/s of 2,560",
         lambda: _rate(_slowed("checkpoint"), 5107.0), lambda: _rate(_evaluated(), 5107.0)),
    Hack("clock", "slow steps flagged as profiled, without a profile", "5,120 tokens/s of 2,560",
         lambda: _rate(_slowed("profile"), 5107.0), lambda: _rate(_evaluated(), 5107.0)),
    Hack("clock", "slow steps flagged as waits for data", "5,120 tokens/s of 2,560",
         lambda: _rate(_slowed("data"), 5107.0), lambda: _rate(_evaluated(), 5107.0)),
)  # fmt: skip
