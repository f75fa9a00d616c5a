"""One recipe: whoever compares two configurations finds one verdict, and an invalid launch changes none of them."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rule_cases as cases
import section_store as section
from receipts.api.questions.compare import compare
from receipts.axes.lane import Lane
from receipts.cli.session import Session
from receipts.judging.claim import claim_from_json
from receipts.judging.verdict import Comparison, verdict_to_json
from receipts.metrics import get
from receipts.plugins.lint.check import Checker
from receipts.plugins.study.chain import Judge
from receipts.plugins.study.sweep import sweep
from receipts.questions import noise
from receipts.questions.claims.judgment import gather as gather_claim
from receipts.questions.claims.judgment import judge
from receipts.questions.comparisons import Comparisons
from receipts.questions.neighbours import neighbours
from receipts.questions.week.links import Links
from receipts.questions.week.reader import ReportReader
from receipts.receipt import Parsed
from receipts.store import Filters, Store, open_store
from receipts.workflows.revalidate import Revalidation
from thorough import unless_thorough

pytestmark = pytest.mark.slow

METRIC = "tokens_per_second"
# Launches of each configuration by kind: from a lone one to more than any surface once read.
SIDES = unless_thorough(
    {"sound": (1, 3, 60), "unwitnessed": (3,), "spoilt": (2,)},
    {"sound": (1, 3, 3, 4, 5, 10, 25, 25, 60, 60), "unwitnessed": (1, 2, 3, 25), "spoilt": (1, 2, 3)},
)
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
        "hardware.accelerator": "X100 [80GB]" if leaves.get("odd") else "TPU v6e",
        **{path: value for path, value in leaves.items() if path != "odd"},
    }
    table = {"set": values, "drop": ["measurement.stated", *drop], "steps": {"seconds": seconds, "seed": name}}
    return cases.parsed(cases.build(table, "tpu"), f"{name}.json")


def put(store: Store, *launches: Parsed) -> None:
    section.put(store, list(launches))


class Lab:
    """Configurations one axis apart, launched in turns in one session, beside what must enter no side unasked.

    Sound ones, unwitnessed ones, and such of which every launch is spoilt; every second has 2 % slower launches of
    twenty days ago, some under another label in the session itself, and a spoilt one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.heads: dict[str, Parsed] = {}
        draw = random.Random(5)
        made: list[Parsed] = []
        counts = [(kind, count) for kind, several in SIDES.items() for count in several]
        for index, (kind, count) in enumerate(counts):
            rate = {"numerics.learning_rate": 1e-4 * (index + 1)}
            drop = ("path.witnessed",) if kind == "unwitnessed" else ()
            seconds, name = 1.2 + 0.06 * draw.randrange(12), f"{kind}{index}"

            def one(label: str, at: int, hours: float, seconds: float, leaves: dict[str, Any]) -> Parsed:
                return launch(f"{label}-{at}", hours, seconds, {**rate, **leaves, "numerics.seed": at}, drop)  # noqa: B023

            group = []
            for at in range(count):
                leaves = draw.choice(SPOILT[:2]) if kind == "spoilt" else {}
                # The last of every configuration are launched together, so that the newest one is of the session.
                hours = 12 - (count - at) * 12 / 61 + index / 200
                group.append(one(name, at, hours, seconds * (1 + 0.001 * (at % 5)), leaves))
            self.heads[name] = group[0]
            made += group
            if index % 2:
                made += (one(name, 100 + at, at / 3 - 480, 1.02 * seconds * (1 + 0.001 * at), {}) for at in range(5))
                made += (one(f"other-{name}", 200 + at, 10 + at / 9, 0.9 * seconds, {}) for at in range(3))
                made.append(one(name, 300, 11.5 + index / 200, 3 * seconds, draw.choice(SPOILT)))
        put(store, *made)

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
    return compare(session(store.url), [a.id], [b.id], **{"metric": METRIC, **words}).verdict


def by_labels(store: Store, a: Parsed, b: Parsed) -> Comparison:
    one, other = (f"label={side.receipt.run.label}" for side in (a, b))
    return compare(session(store.url), [one], [other], metric=METRIC).verdict


@cache
def session(url: str) -> Session:
    """A command's session: its rules are loaded once."""
    return Session(url)


def claimed(store: Store, a: Parsed, b: Parsed, metric: str = METRIC) -> Comparison | None:
    stated = {"id": "c", "text": "b is faster", "kind": "speedup", "effect": ">= 1.01x", "metric": metric}
    claim = claim_from_json(json.dumps({**stated, "baseline": [a.id], "candidate": [b.id]}), "claim")
    return judge(claim, gather_claim(claim, cases.rulebook(), store), cases.rulebook()).comparison


class Surfaces:
    """All that compares two stored receipts, each as its command does."""

    def __init__(self, store: Store) -> None:
        self.store, self.rules = store, cases.rulebook()
        reader = ReportReader(store, self.rules, AS_OF)
        self.reader, self.links = reader, Links(reader, reader.items(reader.rows))
        self.checker = Checker(self.rules, lambda: store)
        self.comparisons = Comparisons(store, self.rules)
        self.near: dict[str, dict[str, Comparison]] = {}

    def each(self, a: Parsed, b: Parsed) -> Iterator[tuple[str, Comparison | None]]:
        first = command(self.store, a, b)
        yield "compare", first
        yield "neighbours", self.neighbour(a, first)
        bridged = Judge(self.store, self.rules, a, b, get(METRIC))
        yield "bridge", bridged.compared(bridged.a, bridged.b).verdict
        yield "lint", self.checker._compared(a, b, get(METRIC))
        yield "claims", claimed(self.store, a, b)
        again = json.loads(json.dumps(verdict_to_json(first)))
        yield "revalidate", Revalidation(self.store, self.rules)._compare(again, self.comparisons)
        one, other = (self.reader.item(self.store.entry(item.id)) for item in (a, b))
        yield "report links", self.links.between(one, other, METRIC)
        yield "report retests", self.reader.comparisons.compare([a], [b], METRIC, named=(), beside=())

    def neighbour(self, a: Parsed, like: Comparison) -> Comparison | None:
        if a.id not in self.near:
            found = neighbours(self.store, a, self.rules, limit=50)
            self.near[a.id] = {
                name: item.verdict
                for item in (*found.compared, *found.refused)
                if item.entry.outcome == "ok"
                for name in (*item.verdict.b, *(one.receipt for one in item.verdict.lost))
            }
        return self.near[a.id].get(like.b[0])


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each document and each noise floor of a store that does not change once for all surfaces."""
    parsed, floor = cache(Store.parsed), noise.noise_floor
    floors: dict[tuple[object, ...], noise.Floor] = {}

    def kept(store: Store, like: Parsed, lane: Lane, until: datetime | None = None) -> noise.Floor:
        key = (store.url, lane.name, until, *noise.floor_key(like))
        if key not in floors:
            floors[key] = floor(store, like, lane, until)
        return floors[key]

    monkeypatch.setattr(Store, "parsed", lambda store, name: parsed(store, name))
    monkeypatch.setattr(noise, "noise_floor", kept)


@pytest.mark.slow
@pytest.mark.usefixtures("read_once")
def test_all_surfaces_give_one_verdict_for_one_pair(lab: Lab) -> None:
    surfaces, statuses = Surfaces(lab.store), Counter[str]()
    pairs = list(lab.pairs())
    assert len(pairs) >= unless_thorough(10, 200)
    for a, b in pairs:
        verdicts = dict(surfaces.each(a, b))
        wanted = verdicts["compare"]
        assert wanted is not None
        statuses[wanted.status] += 1
        # The report asks of labels, and so takes further sessions that both have; a spoilt launch has its own alone.
        spoilt = "spoilt" in (a.name + b.name)
        labelled = wanted if spoilt else by_labels(lab.store, a, b)
        for name, verdict in verdicts.items():
            assert verdict is not None, name
            of = labelled if name == "report links" else wanted
            assert said(verdict) == said(of), f"{name}: {a.name} and {b.name}"
    assert all(statuses[status] >= len(pairs) / 6 for status in ("accepted", "rejected", "inconclusive")), statuses


@pytest.mark.slow
@pytest.mark.usefixtures("read_once")
def test_a_cell_of_a_sweep_has_the_verdict_of_its_comparison(lab: Lab) -> None:
    comparisons = Comparisons(lab.store, cases.rulebook())
    # A sweep names its base alone: an invalid launch of another cell is counted, and does not reject.
    pairs = [(a, b) for a, b in lab.pairs() if not b.name.startswith("spoilt")]
    statuses = Counter[str]()
    for a, b in pairs:
        verdict = sweep([a, b], ["learning_rate"], comparisons, METRIC, a).cells[1].against_base
        assert verdict is not None
        statuses[verdict.status] += 1
        assert said(verdict) == said(command(lab.store, a, b)), f"{a.name} and {b.name}"
    assert statuses["accepted"]
    assert statuses["inconclusive"]


def fresh(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "store.sqlite"))


def side(name: str, seconds: float, hours: float = 0, count: int = 4, **leaves: Any) -> list[Parsed]:
    """Launches of one configuration, a seed each, two thirds of an hour apart: beside others in turns."""
    values = {path.replace("__", "."): value for path, value in leaves.items()}
    return [
        launch(f"{name}-{at}", (hours + 2 * at) / 3, seconds * (1 + 0.001 * at), {**values, "numerics.seed": at})
        for at in range(count)
    ]


def ceiling(store: Store) -> tuple[str, str]:
    stated = {"id": "top", "text": "it holds", "kind": "ceiling", "candidate": ["label=base"]}
    claim = claim_from_json(json.dumps(stated), "claim")
    verdict = judge(claim, gather_claim(claim, cases.rulebook(), store), cases.rulebook())
    return verdict.status, verdict.assessment.grade or ""


def test_invalid_launches_change_no_answer_and_are_counted(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        a, b = side("base", 1.2), side("fast", 1.05, 1, numerics__learning_rate=1e-3)
        elsewhere = [launch("base-20", 240, 1.2, {"numerics.seed": 20})]  # a second day, for the ceiling
        put(store, *a, *b, *elsewhere)

        def answers() -> list[object]:
            surfaces = [said(verdict) for _, verdict in Surfaces(store).each(a[0], b[0]) if verdict is not None]
            return [surfaces, ceiling(store), Comparisons(store, cases.rulebook()).floor(a[0])]

        before = answers()
        assert before[0][0][0] == "accepted"
        assert ceiling(store) == ("supported", "validated")
        for at, spoilt in enumerate(SPOILT):
            put(store, launch(f"base-{50 + at}", 3 + at, 2.4, {**spoilt, "numerics.seed": 50 + at}))
        assert answers() == before
        verdict = command(store, a[0], b[0])
        assert verdict.launches_lost[0] == "A: 4 of 7 launches count; R111 on 1, R303 on 1, crash on 1"
        assert "4 of 7 launches count" in verdict.last_line()
        assert "C119" in {item.code for item in verdict.findings}


def test_an_invalid_launch_rejects_where_it_is_named_and_not_where_a_label_names_it(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        a, b = side("base", 1.2), side("fast", 1.05, 1, numerics__learning_rate=1e-3)
        spoilt = launch("base-9", 5, 1.2, HOST_READS)
        put(store, *a, *b, spoilt)
        assert command(store, spoilt, b[0]).status == "rejected"
        asked = compare(Session(store.url), ["label=base"], ["label=fast"], metric=METRIC, join="only")
        assert asked.verdict.status == "accepted"


def test_one_unsteady_launch_does_not_silence_the_others(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        a, b = side("base", 1.2), side("fast", 1.05, 1, numerics__learning_rate=1e-3)
        tree = json.loads(a[0].raw)
        tree["run"].update(launch="base-8", started=(MONDAY + timedelta(hours=4)).isoformat(), finished=None)
        steps = cases.durations({"seconds": 1.2, "drift": 0.5, "seed": 8})
        tree["measurement"]["step_durations_seconds"] = steps
        put(store, *a, *b, cases.parsed(tree, "drifting"))
        verdict = command(store, a[0], b[0])
        assert (verdict.status, verdict.launches_lost) == ("accepted", ("A: 4 of 5 launches count; R203 on 1",))


def test_seeds_do_not_tell_launches_apart(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        a = side("base", 0.8, count=3)
        put(store, *a)
        verdict = command(store, a[0], a[1])
        assert (verdict.difference.axes, verdict.difference.unknown) == ((), ())
        found = Comparisons(store, cases.rulebook()).pool([a[0]], [])
        assert {item.id for item in found} == {item.id for item in a}


def test_an_accelerator_whose_name_is_a_pattern_has_a_noise_floor(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        put(store, *(made := side("base", 0.8, odd=True)))
        assert Comparisons(store, cases.rulebook()).floor(made[0]).launches == 4


def test_a_speedup_claimed_of_memory_has_the_floor_that_the_comparison_has(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        a, b = side("base", 1.2), side("fast", 1.05, 1, numerics__learning_rate=1e-3)
        put(store, *a, *b)
        made = claimed(store, a[0], b[0], "peak_bytes")
        assert made is not None
        assert said(made) == said(command(store, a[0], b[0], metric="peak_bytes"))


def test_a_launch_whose_mfu_alone_is_spoilt_is_of_the_noise_floor(tmp_path: Path) -> None:
    spoilt = {
        "measurement.stated.mfu": 0.4,
        "measurement.stated.mfu_stated": "0.4",
    }
    with fresh(tmp_path) as store:
        group = [mfu_stated(f"base-{at}", 30 * at, 0.8 + 0.001 * at, spoilt, at) for at in range(4)]
        put(store, *group)
        rows = list(store.find(Filters(())))
        assert {row.status for row in rows} == {"invalid"}
        floor = Comparisons(store, cases.rulebook()).floor(group[0])
        assert (floor.groups, floor.launches) == (1, 4)
        put(store, launch("base-9", 300, 2.4, {**HOST_READS, "numerics.seed": 9}))
        assert Comparisons(store, cases.rulebook()).floor(group[0]) == floor


def mfu_stated(name: str, hours: float, seconds: float, leaves: dict[str, Any], seed: int) -> Parsed:
    """A launch with an MFU of no formula and no peak (R104)."""
    return launch(name, hours, seconds, {**leaves, "numerics.seed": seed})
