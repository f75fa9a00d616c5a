"""Launches as a recorder writes them, and what the product says of one, of two sides, of a lane and of a claim.

The clean bases are those of the rule cases. Every launch here has noise of its own, clocks that agree, the digest of
its recorder and evidence whose files are listed: what is judged is the edit, not what a base lacks.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import receipts
import rule_cases
from receipts.metrics import registry
from receipts.receipt import Document, parse
from receipts.receipt.leaves import counted_entries
from receipts.receipt.parse import UNWRITTEN, sealed

Tree = dict[str, Any]
STEPS, WALLS = "measurement.step_durations_seconds", "measurement.step_wall_seconds"
GOODPUT = "measurement.goodput"
FIRST = datetime.fromisoformat("2026-11-25T09:00:00+00:00")
# Words that let a number through.
PASSES = frozenset({"valid", "accepted", "supported", "validated", "repeated", "worked", "shown"})


class Answer(NamedTuple):
    """What the product says: its word, the grade of the evidence where it has one, and the first reason."""

    word: str
    why: str
    grade: str = ""

    @property
    def passes(self) -> bool:
        """Whether a number gets through at the grade of a program's own record."""
        return self.word in PASSES and self.grade != "typed"


def launch(base: str = "cpu", number: int = 0, seconds: float = 0.8, **kinds: Any) -> Tree:
    """An honest launch: so many seconds a step, with noise of its own, in a run that is as long as all it did.

    ``kinds``: ``day`` on which it ran, ``count`` of steps, ``gap`` of seconds between them.
    """
    tree = rule_cases.base(base)
    for name in ("stated", "path_counters"):
        tree["measurement"].pop(name, None)
    steps = rule_cases.durations({"seconds": seconds, "seed": 100 + number, "count": kinds.get("count", 300)})
    steps = [round(step * (1 + 0.001 * math.sin(number)), 6) for step in steps]
    gap = kinds.get("gap", 0.002)
    tree["measurement"] |= {"step_durations_seconds": steps, "steps": len(steps)}
    tree["measurement"]["step_wall_seconds"] = [round(step + gap, 6) for step in steps]
    goodput = tree["measurement"]["goodput"]
    goodput |= {"step_seconds": round(math.fsum(steps), 6), "compile_seconds": 0.0, "data_seconds": 0.0}
    goodput |= {"eval_seconds": 0.0, "idle_seconds": 9.0 + gap * len(steps)}
    started = FIRST + timedelta(days=kinds.get("day", 0), hours=number, seconds=number)
    finished = started + timedelta(seconds=math.fsum(goodput.values()))
    tree["run"] |= {"launch": f"launch-{base}-{number}", "started": started.isoformat()}
    tree["run"]["finished"] = finished.isoformat()
    for entry in tree["evidence"]:
        entry["sha256"] = entry["sha256"].replace(UNWRITTEN, 64 * "2")
    lane = rule_cases.rulebook().lanes.of(tree["run"]["lane"])
    tree["evidence"][0]["read"] = {f"path.witnessed.{name}": "event 1" for name in lane.witness}
    return tree


def edited(tree: Tree, changes: Mapping[str, Any] | None = None, drop: Sequence[str] = ()) -> Tree:
    """A copy with other values at dotted paths, or with what a function makes of the value that is there."""
    other = copy.deepcopy(tree)
    for path in drop:
        rule_cases.take(other, path)
    for path, value in (changes or {}).items():
        rule_cases.put(other, path, value(_at(other, path)) if callable(value) else value)
    return other


def _at(tree: Tree, path: str) -> Any:
    node: Any = tree
    for part in path.split("."):
        node = node[part]
    return node


def times(factor: float) -> Callable[[Any], Any]:
    """A function that makes a number, or every number of a list, so many times as large."""
    return lambda value: [round(item * factor, 9) for item in value] if isinstance(value, list) else value * factor


def written(tree: Tree, by: str | None = "recorder") -> bytes:
    """The document with the digest of the program that is said to have written it; of a person's none."""
    tree = copy.deepcopy(tree)
    if by is not None:
        tree["run"]["recorded"] = {"by": by, "digest": UNWRITTEN}
    tree["run"]["entries"] = counted_entries(tree)
    return sealed(json.dumps(tree).encode())


def typed(tree: Tree) -> Tree:
    """What a person writes down: no program, no evidence, no steps."""
    return edited(tree, drop=("evidence", STEPS, WALLS, "measurement.window", "measurement.step_flags"))


def _reason(findings: Iterable[Any]) -> str:
    weight = {"E": 0, "I": 1, "W": 2}
    first = min(findings, key=lambda item: weight[item.level.value], default=None)
    return f"{first.code} {first.found}" if first is not None else ""


def check(document: bytes | Tree, *, witnesses: Iterable[bytes] = ()) -> Answer:
    """What `receipts check` says of a document."""
    raw = document if isinstance(document, bytes) else written(document)
    verdict = receipts.check(raw, witnesses=witnesses).verdict
    return Answer(verdict.status, _reason(verdict.findings) or verdict.grade_why, verdict.grade)


def observed(tree: Tree, true: Tree) -> Answer:
    """The verdict on a launch beside what its launcher saw: the ends of the steps that were really made."""
    from receipts.workflows.evidence import amended

    ends = [0, *accumulate(round(seconds * 1e9) for seconds in true["measurement"]["step_wall_seconds"])]
    edges = [[count, end, [end - 1000, end + 1000]] for count, end in enumerate(ends)][1:]
    seen = {"receipts_outer_clock": 1, "clocks": ["CLOCK_BOOTTIME"], "launch": tree["run"]["launch"], "edges": edges}
    with TemporaryDirectory() as folder:
        receipt, clock = (Path(folder) / name for name in ("run.json", "outer-clock.json"))
        receipt.write_bytes(written(tree))
        clock.write_text(json.dumps(seen))
        return check(amended(str(receipt), [str(clock)]).document.raw)


def shown(tree: Tree, metric: str, claimed: float = 0.0) -> Answer:
    """The number of a metric that a receipt's page shows; *recomputed* where it is not what is claimed."""
    answer = check(tree)
    if answer.word == "invalid":
        return answer
    reading = rule_cases.rulebook().launch(parse(Document(written(tree), "hack"))).read(registry.get(metric))
    if reading.value is None:
        return Answer("not shown", "nothing names what it divides by", answer.grade)
    word = "recomputed" if claimed and abs(reading.value / claimed - 1) > 0.05 else "shown"
    return Answer(word, f"{registry.shown(registry.get(metric), reading.value)}: {reading.text}", answer.grade)


def pair(a: Sequence[Tree | bytes], b: Sequence[Tree | bytes], metric: str = "tokens_per_second") -> Answer:
    """What `receipts compare` says of two sides."""
    sides = [[item if isinstance(item, bytes) else written(item) for item in side] for side in (a, b)]
    verdict = receipts.compare(*sides, metric=metric).verdict
    return Answer(verdict.status, _reason(verdict.findings), verdict.grade)


class Shelf:
    """A store of its own, for questions that need one."""

    def __init__(self, documents: Iterable[Tree | bytes] = ()) -> None:
        self._folder = TemporaryDirectory()
        self.store = receipts.open(os.fspath(Path(self._folder.name) / "store.sqlite"), create=True)
        for item in documents:
            self.submit(item)

    def submit(self, document: Tree | bytes) -> Any:
        """Store a document."""
        return self.store.submit(document if isinstance(document, bytes) else written(document))

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self._folder.cleanup()


def ceiling(documents: Iterable[Tree | bytes], lane: str = "cpu-torch") -> Answer:
    """The best grade of a lane's ceilings."""
    with Shelf(documents) as shelf:
        grades = [item["grade"] for group in shelf.store.ceiling(lane=lane).to_dict()["frontiers"]
                  for item in group["ceilings"]]  # fmt: skip
    return Answer(grades[0], f"ceiling of {len(grades)} shapes") if grades else Answer("none", "no shape was sustained")


def preflight(documents: Iterable[Tree | bytes], plan: Tree) -> Answer:
    """What a lane's launches say of a plan."""
    with Shelf(documents) as shelf:
        data = shelf.store.preflight(written(plan, None)).to_dict()
    return Answer(data["status"], data["why"])


def claim(documents: Sequence[Tree | bytes], **table: Any) -> Answer:
    """The verdict on a claim about stored launches, of which it names the labels."""
    lines = [
        'schema_version = "1.0"',
        "[[claim]]",
        'id = "hack"',
        *(f"{name} = {json.dumps(value)}" for name, value in table.items()),
    ]
    with Shelf(documents) as shelf:
        (verdict,) = shelf.store.claim_check(("\n".join(lines) + "\n").encode()).to_dict()
    return Answer(verdict["status"], str(verdict.get("assessment", verdict)))
