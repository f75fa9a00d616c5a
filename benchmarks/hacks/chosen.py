"""Selection and identity: which launches speak for a side, and whose number it is."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.hacks.launches import (
    GOODPUT,
    STEPS,
    WALLS,
    Answer,
    Shelf,
    Tree,
    check,
    edited,
    launch,
    pair,
    times,
    written,
)  # fmt: skip
from benchmarks.hacks.suite import Hack
from benchmarks.hacks.works import THREADS, side

SPREAD = (1.0, 1.03, 0.97, 1.05, 0.95, 1.02, 0.98, 1.04, 0.96)


def _night(letter: str, **changes: Any) -> list[Tree]:
    """Nine launches of one side, of which each is as fast as its luck."""
    numbers = range(letter == "b", 18, 2)
    made = [launch(number=number, seconds=0.8 * speed) for number, speed in zip(numbers, SPREAD, strict=True)]
    return [edited(item, {"run.label": letter} | changes) for item in made]


def _asked(a: list[Tree], b: list[Tree], best: int, **options: Any) -> Answer:
    """The best launches of B against the worst of A, of all that a store has."""
    with Shelf([*a, *b]) as shelf:
        ids = [[shelf.submit(item).id for item in group] for group in (a, b)]
        paces = [[sum(item["measurement"]["step_durations_seconds"]) for item in group] for group in (a, b)]
        slow = sorted(zip(paces[0], ids[0], strict=True), reverse=True)[:best]
        fast = sorted(zip(paces[1], ids[1], strict=True))[:best]
        compared = shelf.store.compare([name for _, name in slow], [name for _, name in fast], **options)
    verdict = compared.verdict
    left = sum(item.count for item in verdict.left_out)
    why = "; ".join(f"{item.code} {item.found}" for item in verdict.findings[:1])
    return Answer(verdict.status, f"{why}; {left} left out" if left else why, verdict.grade)


def _jittered(tree: Tree, number: int, share: float) -> Tree:
    noise = random.Random(number)
    steps = [round(step * (1 + noise.gauss(0, share)), 6) for step in tree["measurement"]["step_durations_seconds"]]
    other = launch(number=number)
    run = {f"run.{name}": other["run"][name] for name in ("launch", "started", "finished")}
    goodput = {f"{GOODPUT}.step_seconds": sum(steps)}
    return edited(tree, run | goodput | {STEPS: steps, WALLS: [step + 0.002 for step in steps]})


def _superseded(faster: bool) -> Answer:
    """The candidate's launches replaced by successors: with other step times, or with evidence added."""
    a, b = side("a"), side("b", 0.8, THREADS)
    with Shelf([*a, *b]) as shelf:
        ids = [shelf.submit(item).id for item in a]
        later = []
        for item in b:
            replaced = shelf.submit(item).id
            changes: dict[str, Any] = {"run.supersedes": {"target": replaced, "reason": "again"}}
            if faster:
                changes |= {STEPS: times(0.7), WALLS: times(0.7), f"{GOODPUT}.step_seconds": times(0.7)}
                changes |= {"run.finished": launch(number=0, seconds=0.56)["run"]["finished"]}
            other = edited(item, changes)
            if faster:
                other["run"]["finished"] = _end(other)
            later.append(shelf.submit(other).id)
        verdict = shelf.store.compare(ids, later).verdict
    why = "; ".join(f"{item.code} {item.found}" for item in verdict.findings[:1])
    return Answer(verdict.status, why, verdict.grade)


def _end(tree: Tree) -> str:
    from datetime import datetime, timedelta

    spent = sum(tree["measurement"]["goodput"].values())
    return (datetime.fromisoformat(tree["run"]["started"]) + timedelta(seconds=spent)).isoformat()


def _copies(share: float) -> Answer:
    first = edited(launch(number=1, seconds=0.5), THREADS)
    return pair(side("a"), [edited(_jittered(first, number, share), THREADS) for number in (1, 2, 5)])


def _best_window() -> Tree:
    """The quickest ten steps of three hundred, called the window."""
    tree = launch()
    steps = tree["measurement"]["step_durations_seconds"]
    start = min(range(20, 280), key=lambda at: sum(steps[at : at + 10]))
    return edited(tree, {"measurement.window": {"start": start, "stop": start + 10, "warmup_steps": start}})


HACKS = (
    Hack("selection", "the best three of nine against the worst three of nine", "B is 6 % faster",
         lambda: _asked(_night("a"), _night("b", **THREADS), 3),
         lambda: _asked(side("a"), side("b", 0.5, THREADS), 3)),
    Hack("selection", "the best three of nine, and no other asked for", "B is 6 % faster",
         lambda: _asked(_night("a"), _night("b", **THREADS), 3, join="only"),
         lambda: _asked(side("a"), side("b", 0.5, THREADS), 3, join="only")),
    Hack("selection", "one launch copied thrice, with noise of 0.1 %", "B is 60 % faster, ± 0.1 %",
         lambda: _copies(0.001), lambda: pair(side("a"), side("b", 0.5, THREADS))),
    Hack("selection", "one launch copied thrice, with noise of 0.02 %", "B is 60 % faster, ± 0.02 %",
         lambda: _copies(0.0002), lambda: pair(side("a"), side("b", 0.5, THREADS))),
    Hack("selection", "the quickest ten steps called the window", "5,180 tokens/s",
         lambda: check(_best_window()), lambda: check(launch())),
    Hack("selection", "a side whose slow launches were called crashed", "B is 60 % faster",
         lambda: pair(side("a"), [edited(item, {"run.outcome": "crash", "run.exit_code": 1})
                                  for item in side("b", 0.5, THREADS)]),
         lambda: pair(side("a"), side("b", 0.5, THREADS))),
    Hack("identity", "a faster receipt supersedes the slow one of its launch", "B is 43 % faster",
         lambda: _superseded(faster=True), lambda: _superseded(faster=False)),
    Hack("identity", "a program's receipt edited by hand", "B is 60 % faster",
         lambda: check(written(launch()).replace(b'"small decoder"', b'"fast decoder"')),
         lambda: check(launch())),
    Hack("identity", "another host's launches, called this host's", "B is 60 % faster",
         lambda: pair(side("a"), side("b", 0.5, THREADS | {"run.host": "bench-b"})),
         lambda: pair(side("a"), side("b", 0.5, THREADS))),
    Hack("identity", "another commit's code, imported and not named", "B is 60 % faster by OMP_NUM_THREADS",
         lambda: pair(side("a"), side("b", 0.5, THREADS | {"code.imported_digest": 64 * "9"})),
         lambda: pair(side("a"), side("b", 0.5, THREADS))),
    Hack("identity", "one launch on one host twice at one instant", "two launches agree",
         lambda: pair([launch(number=0), edited(launch(number=0), {"run.launch": "another"})], side("b", 0.5, THREADS)),
         lambda: pair(side("a"), side("b", 0.5, THREADS))),
)  # fmt: skip
