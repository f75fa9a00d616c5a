"""One recipe: whoever compares two configurations finds the same verdict, and an invalid launch changes none of them."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rule_cases as cases
import section_store as section
from receipts.bridge.point import Judge
from receipts.claims import judge
from receipts.claims.gather import gather as gather_claim
from receipts.claims.load import from_json
from receipts.cli.session import Session
from receipts.cli.sides import Asked, gather
from receipts.lint.check import Checker
from receipts.metrics import get
from receipts.neighbours import neighbours
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Parsed
from receipts.report.links import Links
from receipts.report.sections.retest import Retests
from receipts.report.shelf import Shelf
from receipts.revalidate import Revalidation
from receipts.store import Store, open_store
from receipts.store.stale import Compared
from receipts.verdict import Comparison, to_json

METRIC = "tokens_per_second"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
AS_OF = MONDAY + timedelta(days=60)
HOST_READS: dict[str, Any] = {"path.witnessed.host_transfers_per_step": 2.0}
# What makes a launch no sample: it reads the host in every step, its loss is not finite, it crashed.
SPOILT: tuple[dict[str, Any], ...] = (
    HOST_READS,
    {"measurement.loss.finite": False},
    {"run.outcome": "crash", "run.exit_code": 1},
)


def launch(name: str, hours: float, seconds: float, leaves: dict[str, Any], drop: tuple[str, ...] = ()) -> Parsed:
    start = MONDAY + timedelta(hours=hours)
    values = {
        "run.launch": name,
        "run.label": name.rpartition("-")[0],
        "run.started": start.isoformat(),
        "run.finished": (start + timedelta(minutes=14)).isoformat(),
        "hardware.accelerator": "A100 [80GB]" if leaves.get("odd") else "TPU v6e",
        **{path: value for path, value in leaves.items() if path != "odd"},
    }
    table = {"set": values, "drop": ["measurement.stated", *drop], "steps": {"seconds": seconds, "seed": name}}
    return cases.parsed(cases.build(table, "tpu"), f"{name}.json")


def put(store: Store, *launches: Parsed) -> None:
    section.put(store, list(launches))


class Lab:
    """Configurations one axis apart: sound ones, unwitnessed ones, and such of which every launch is spoilt."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.heads: dict[str, Parsed] = {}
        draw = random.Random(5)
        for index in range(21):
            kind = "sound" if index < 11 else "unwitnessed" if index < 17 else "spoilt"
            rate = {"numerics.learning_rate": 1e-4 * (index + 1)}
            drop = ("path.witnessed",) if kind == "unwitnessed" else ()
            seconds = 0.6 + 0.03 * draw.randrange(12)
            count = draw.choice((3, 4, 5)) if kind == "sound" else draw.choice((1, 3))
            for at in range(count):
                leaves = {**rate, **(draw.choice(SPOILT[:2]) if kind == "spoilt" else {}), "numerics.seed": at}
                one = launch(f"{kind}{index}-{at}", index + 30 * at, seconds * (1 + 0.001 * at), leaves, drop)
                put(store, one)
                self.heads.setdefault(f"{kind}{index}", one)
            if index % 2:
                for at in range(2):
                    leaves = {**rate, **draw.choice(SPOILT), "numerics.seed": 90 + at}
                    put(store, launch(f"{kind}{index}-{90 + at}", 200 + index + at, 3 * seconds, leaves, drop))

    def pairs(self) -> Iterator[tuple[Parsed, Parsed]]:
        return itertools.combinations(self.heads.values(), 2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_store(str(tmp_path_factory.mktemp("lab") / "store.sqlite")) as store:
        yield Lab(store)


def said(verdict: Comparison) -> tuple[object, ...]:
    answers = (verdict.status, verdict.comparable, verdict.path, verdict.effect)
    return (*answers, sorted(verdict.a), sorted(verdict.b))


def command(store: Store, a: Parsed, b: Parsed, **words: Any) -> Comparison:
    options: dict[str, Any] = {"metric": METRIC, "waive": (), "study": None, "witness": (), "no_replicates": False}
    asked = Asked(((a.id,), (b.id,)), **{**options, **words})
    return gather(Session(store.url), asked, stored=True).verdict


def claimed(store: Store, a: Parsed, b: Parsed, metric: str = METRIC) -> Comparison | None:
    stated = {"id": "c", "text": "b is faster", "kind": "speedup", "effect": ">= 1.01x", "metric": metric}
    claim = from_json(json.dumps({**stated, "baseline": [a.id], "candidate": [b.id]}), "claim")
    return judge(claim, gather_claim(claim, cases.rulebook(), store), cases.rulebook()).comparison


class Surfaces:
    """All that compares two stored receipts, each as its command does."""

    def __init__(self, store: Store) -> None:
        self.store, self.rules = store, cases.rulebook()
        shelf = Shelf(store, self.rules, AS_OF)
        self.shelf, self.links, self.retests = shelf, Links(shelf, shelf.items(shelf.rows)), Retests(shelf, AS_OF)
        self.checker = Checker(self.rules, lambda: store)
        self.near: dict[str, dict[str, Comparison]] = {}

    def each(self, a: Parsed, b: Parsed) -> Iterator[tuple[str, Comparison | None]]:
        first = command(self.store, a, b)
        yield "compare", first
        yield "neighbours", self.neighbour(a, first)
        bridged = Judge(self.store, self.rules, a, b, get(METRIC))
        yield "bridge", bridged.compared(bridged.a, bridged.b).verdict
        yield "lint", self.checker._compared(a, b, get(METRIC))
        yield "claims", claimed(self.store, a, b)
        again = Compared(1, json.loads(json.dumps(to_json(first))))
        comparisons = Comparisons(self.store, self.rules)
        yield "revalidate", Revalidation(self.store, self.rules)._compare(again, comparisons)
        one, other = (self.shelf.item(self.store.entry(item.id)) for item in (a, b))
        yield "report links", self.links.between(one, other, METRIC)
        yield "report retests", self.retests._compared(a, b, METRIC)

    def neighbour(self, a: Parsed, like: Comparison) -> Comparison | None:
        if a.id not in self.near:
            found = neighbours(self.store, a, self.rules, limit=50)
            self.near[a.id] = {
                name: item.verdict
                for item in (*found.found, *found.refused)
                if item.entry.outcome == "ok"
                for name in (*item.verdict.b, *(one.receipt for one in item.verdict.lost))
            }
        return self.near[a.id].get(like.b[0])


def test_all_surfaces_give_one_verdict_for_one_pair(lab: Lab) -> None:
    surfaces, statuses = Surfaces(lab.store), Counter[str]()
    pairs = list(lab.pairs())
    assert len(pairs) >= 200
    for a, b in pairs:
        verdicts = dict(surfaces.each(a, b))
        wanted = verdicts["compare"]
        assert wanted is not None
        statuses[wanted.status] += 1
        for name, verdict in verdicts.items():
            assert verdict is not None, name
            assert said(verdict) == said(wanted), f"{name}: {a.name} and {b.name}"
    assert all(statuses[status] >= len(pairs) / 5 for status in ("accepted", "rejected", "inconclusive")), statuses
