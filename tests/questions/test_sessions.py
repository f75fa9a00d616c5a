"""What was asked is what is judged: launches of other days, labels and programs enter no side, and decide nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rule_cases as cases
import section_store as section
from receipts.api.comparison import compared
from receipts.judging.verdict import Comparison, LeftOut
from receipts.publish.comparison import answer_line
from receipts.publish.page import text
from receipts.questions.comparisons import Comparisons
from receipts.questions.neighbours import neighbours
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import asked
from receipts.receipt import Parsed
from receipts.store import Store, open_store

pytestmark = pytest.mark.slow

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
FAST: dict[str, Any] = {"numerics.learning_rate": 1e-3}


def launch(name: str, hours: float, seconds: float, drop: tuple[str, ...] = (), **leaves: Any) -> Parsed:
    start = MONDAY + timedelta(hours=hours)
    values = {
        "run.launch": name,
        "run.label": name.rpartition("-")[0],
        "run.started": start.isoformat(),
        "run.finished": (start + timedelta(minutes=14)).isoformat(),
        "numerics.seed": hash_of(name),
        **{path.replace("__", "."): value for path, value in leaves.items()},
    }
    table = {"set": values, "drop": ["measurement.stated", *drop], "steps": {"seconds": seconds, "seed": name}}
    return cases.parsed(cases.build(table, "tpu"), f"{name}.json")


def hash_of(name: str) -> int:
    return sum(map(ord, name)) % 1000


def side(name: str, seconds: float, hours: list[float], noise: float = 0.002, **leaves: Any) -> list[Parsed]:
    draw = random.Random(name)
    return [
        launch(f"{name}-{at}", start, seconds * (1 + draw.gauss(0, noise)), **leaves) for at, start in enumerate(hours)
    ]


def turns(count: int, start: float = 0.0) -> tuple[list[float], list[float]]:
    """Hours of launches in turns ABBA, twenty minutes apart."""
    order = [at for at in range(2 * count) if at % 4 in (0, 3)], [at for at in range(2 * count) if at % 4 in (1, 2)]
    return [start + at / 3 for at in order[0]], [start + at / 3 for at in order[1]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as opened:
        yield opened


def put(store: Store, *launches: Parsed) -> None:
    section.put(store, list(launches))


def judged(store: Store, a: list[Any] | str, b: list[Any] | str, **options: Any) -> Comparison:
    sides = [[word] if isinstance(word, str) else word for word in (a, b)]
    return compared(store, cases.rulebook(), *sides, **options).verdict


def told(verdict: Comparison) -> tuple[str, str, int, int]:
    return verdict.status, verdict.effect, len(verdict.a), len(verdict.b)


def codes(verdict: Comparison) -> set[str]:
    return {item.code for item in verdict.findings}


def first_line(verdict: Comparison) -> str:
    return text(answer_line(verdict, cases.rulebook().rules))


@pytest.mark.parametrize("words", [("label=base", "label=cand"), None])
def test_twenty_launches_of_twenty_days_ago_decide_nothing(store: Store, words: tuple[str, str] | None) -> None:
    """Pooled they made 'faster 1.0176 [1.0138, 1.0215]' of no effect at all."""
    at_a, at_b = turns(5)
    a, b = side("base", 0.8, at_a), side("cand", 0.8, at_b, **FAST)
    old = [launch(f"base-{90 + i}", -480 + i / 3, 0.8 * 1.02 * (1 + 0.0005 * (i % 5))) for i in range(20)]
    put(store, *a, *b)
    alone = judged(store, *(words or (a[0].id, b[0].id)))
    put(store, *old)
    verdict = judged(store, *(words or (a[0].id, b[0].id)))
    assert told(alone) == told(verdict) == ("accepted", "equivalent", 5, 5)
    assert alone.headline is not None
    assert verdict.headline is not None
    assert alone.headline.effect.ratio == verdict.headline.effect.ratio
    assert "C124" in codes(verdict)
    assert "20 launches of A of other sessions lie −1.9 %" in {
        item.found.partition(" from")[0] for item in verdict.findings if item.code == "C124"
    }
    if words is None:
        assert verdict.left_out == (LeftOut("a", 20, "of other sessions"),)
        assert "not asked for: A 20 of other sessions" in first_line(verdict)
        pooled = judged(store, a[0].id, b[0].id, join="all")
        assert len(pooled.a) == 25
        assert "pooled over days and labels" in first_line(pooled)
        assert pooled.effect in ("equivalent", "ambiguous"), "a random effect a day, and no twenty launches of one"


def test_a_label_means_the_launches_that_carry_it(store: Store) -> None:
    at_a, at_b = turns(4)
    a, b = side("base", 0.8, at_a), side("cand", 0.76, at_b, **FAST)
    stray = side("elsewhere", 0.9, [at + 0.1 for at in at_a])
    put(store, *a, *b, *stray)
    for words in (("label=base", "label=cand"), (a[0].id, b[0].id), (a[1].id, "label=cand")):
        verdict = judged(store, *words)
        assert told(verdict) == ("accepted", "faster", 4, 4), words
        assert verdict.left_out == (LeftOut("a", 4, "of other labels"),)


def test_launches_of_another_compiled_program_join_no_side(store: Store) -> None:
    at_a, at_b = turns(4)
    one, other = {"compile__program_digest": "a" * 64}, {"compile__program_digest": "b" * 64}
    a, b = side("base", 0.8, at_a, **one), side("cand", 0.76, at_b, **FAST, **one)
    strange = [launch(f"cand-{50 + i}", at_b[i] + 0.1, 0.8, **FAST, **other) for i in range(4)]
    put(store, *a, *b, *strange)
    verdict = judged(store, a[0].id, b[0].id)
    assert told(verdict) == ("accepted", "faster", 4, 4)
    assert verdict.left_out == (LeftOut("b", 4, "of another compiled program"),)


def test_ten_nights_of_one_launch_a_side_are_a_good_sample(store: Store) -> None:
    """Nights 1 % apart, and an effect of 3 % within each."""
    draw = random.Random(5)
    a, b = [], []
    for night in range(10):
        level = 0.8 * (1 + draw.gauss(0, 0.01))
        order = (0.0, 0.5) if night % 2 else (0.5, 0.0)
        a.append(launch(f"base-{night}", 24 * night + order[0], level * (1 + draw.gauss(0, 0.002))))
        b.append(launch(f"cand-{night}", 24 * night + order[1], level * 0.97 * (1 + draw.gauss(0, 0.002)), **FAST))
    put(store, *a, *b, launch("base-77", 24 * 40, 0.9))
    verdict = judged(store, "label=base", "label=cand")
    assert told(verdict) == ("accepted", "faster", 10, 10)
    assert verdict.headline is not None
    effect = verdict.headline.effect
    assert (effect.design, effect.sessions) == ("sessions", 10)
    assert effect.low is not None
    assert effect.high is not None
    assert effect.high - effect.low < 0.01
    assert "A: 10 of 11 launches count; another session on 1" in verdict.last_line()
    assert "C119" not in codes(verdict), "a session of one side alone is no launch that failed"
    later = MONDAY + timedelta(days=60)
    report = collect(store, cases.rulebook(), asked(None, "2026-03-01", "2026-03-31", later), later)
    (pair,) = (pair for lane in report.lanes for pair in lane.accepted.shown)
    asked_back = judged(store, "label=cand", "label=base").headline
    assert asked_back is not None
    assert (len(pair.a), len(pair.b), pair.ratio, pair.low) == (
        *(10, 10),
        *(asked_back.effect.ratio, asked_back.effect.low),
    ), "the report has the side first that ran first"


def test_other_days_are_open_where_nobody_knows_how_far_days_lie_apart(store: Store) -> None:
    a, b = side("base", 0.8, [0, 1, 2, 3]), side("cand", 0.78, [96, 97, 98, 99], **FAST)
    put(store, *a, *b)
    verdict = judged(store, "label=base", "label=cand")
    assert told(verdict)[:2] == ("inconclusive", "unproven")
    assert "other days: run both in turns" in {item.do for item in verdict.findings if item.code == "C124"}
    assert "C110" not in codes(verdict), "more launches of other days settle nothing"


def test_other_days_are_judged_by_the_spread_that_the_lane_shows_from_day_to_day(store: Store) -> None:
    draw = random.Random(3)
    other = {"numerics.learning_rate": 7.0}
    known = [
        launch(f"known-{day}{i}", -24 * day + i, 0.8 * (1 + level + draw.gauss(0, 0.001)), **other)
        for day in range(1, 9)
        for level in [draw.gauss(0, 0.004)]
        for i in range(2)
    ]
    a, b = side("base", 0.8, [0, 1, 2, 3]), side("cand", 0.75, [96, 97, 98, 99], **FAST)
    put(store, *known, *a, *b)
    verdict = judged(store, "label=base", "label=cand")
    assert verdict.headline is not None
    assert (verdict.headline.effect.design, verdict.effect) == ("days", "faster")
    near = side("near", 0.796, [120, 121, 122, 123], **{"numerics.learning_rate": 2e-3})
    put(store, *near)
    assert judged(store, "label=base", "label=near").effect == "ambiguous"


def test_all_of_one_side_before_the_other_is_open_where_a_drift_would_do_the_same(store: Store) -> None:
    a = [launch(f"base-{i}", i / 3, 0.8 * (1 + 0.004 * i)) for i in range(5)]
    b = [launch(f"cand-{i}", (5 + i) / 3, 0.8 * (1 + 0.004 * (5 + i)), **FAST) for i in range(5)]
    put(store, *a, *b)
    verdict = judged(store, "label=base", "label=cand")
    assert verdict.effect in ("ambiguous", "equivalent")
    assert judged(store, "label=base", "label=cand").status != "rejected"
    noisy = side("noisy", 0.78, [24 + i / 3 for i in range(5)], 0.01, **{"numerics.learning_rate": 5e-3})
    later = side("later", 0.8, [26 + i / 3 for i in range(5)], 0.01)
    put(store, *noisy, *later)
    assert judged(store, "label=noisy", "label=later").status == "inconclusive"


def test_a_declared_session_joins_launches_of_many_days(store: Store) -> None:
    named = {"run__session": "array-7"}
    a = side("base", 0.8, [0, 30, 60, 90], **named)
    b = side("cand", 0.76, [15, 45, 75, 105], **FAST, **named)
    put(store, *a, *b)
    verdict = judged(store, a[0].id, b[0].id)
    assert told(verdict) == ("accepted", "faster", 4, 4)
    assert verdict.headline is not None
    assert verdict.headline.effect.sessions == 1


def test_a_spoilt_launch_that_is_submitted_changes_no_answer(store: Store) -> None:
    at_a, at_b = turns(4)
    put(store, *(a := side("base", 0.8, at_a)), *(b := side("cand", 0.76, at_b, **FAST)))
    before = judged(store, a[0].id, b[0].id)
    spoilt = {"path.witnessed.host_transfers_per_step": 2.0}
    put(store, launch("base-90", 8.0, 2.4, **spoilt), launch("base-91", 16.0, 0.8))
    after = judged(store, a[0].id, b[0].id)
    assert told(before) == told(after) == ("accepted", "faster", 4, 4)
    assert "A: 4 of 5 launches count; R303 on 1" in after.last_line()


def test_only_means_exactly_those_that_are_named(store: Store) -> None:
    at_a, at_b = turns(4)
    put(store, *(a := side("base", 0.8, at_a)), *(b := side("cand", 0.76, at_b, **FAST)))
    verdict = judged(store, a[0].id, b[0].id, join="only")
    assert (len(verdict.a), len(verdict.b)) == (1, 1)
    assert verdict.left_out == (LeftOut("a", 3, "of this session"), LeftOut("b", 3, "of this session"))


def test_one_configuration_under_two_labels_is_two_sides(store: Store) -> None:
    at_a, at_b = turns(4)
    put(store, *(a := side("base", 0.8, at_a)), *(b := side("again", 0.8, at_b)))
    assert told(judged(store, a[0].id, b[0].id))[2:] == (4, 4)
    assert len(Comparisons(store, cases.rulebook()).pool([a[0]], [a[1]])) == 1


def test_a_neighbor_is_the_launch_of_the_session_and_not_the_newest(store: Store) -> None:
    at_a, at_b = turns(4)
    a, b = side("base", 0.8, at_a), side("cand", 0.76, at_b, **FAST)
    put(store, *a, *b, launch("cand-9", 900, 0.9, **FAST))
    (near,) = neighbours(store, a[0], cases.rulebook()).compared
    assert near.entry.id in {item.id for item in b}
    assert told(near.verdict) == told(judged(store, a[0].id, near.entry.id)) == ("accepted", "faster", 4, 4)


@pytest.mark.parametrize(("numbers", "counted"), [((1, 2, 3, 4), 4), ((0, 1, 2, 3), 4), ((2, 4, 8, 16), 1)])
def test_labels_that_number_launches_from_one_are_one_label(
    store: Store, numbers: tuple[int, ...], counted: int
) -> None:
    hours_a, hours_b = turns(4)
    a = [launch(f"a-{at}", hours_a[at], 0.8, run__label=f"slow {number}") for at, number in enumerate(numbers)]
    b = [launch(f"b-{at}", hours_b[at], 0.7, run__label=f"fast {n}", **FAST) for at, n in enumerate(numbers)]
    put(store, *a, *b)
    verdict = judged(store, a[0].id, b[0].id)
    assert (len(verdict.a), len(verdict.b)) == (counted, counted)


def test_a_pair_without_tokens_is_as_open_in_the_report_as_where_it_is_compared(store: Store) -> None:
    at_a, at_b = turns(4)
    drop = ("measurement.tokens_per_step", "batch.global_batch", "batch.micro_batch", "batch.sequence_length")
    a, b = (
        [launch(f"{name}-{at}", hour, seconds * (1 + 0.001 * at), drop, **leaves) for at, hour in enumerate(hours)]
        for name, hours, seconds, leaves in (("base", at_a, 0.8, {}), ("cand", at_b, 0.76, FAST))
    )
    put(store, *a, *b)
    verdict, later = judged(store, "label=base", "label=cand"), MONDAY + timedelta(days=1)
    report = collect(store, cases.rulebook(), asked(None, "2026-03-01", None, later), later)
    (pair,) = (pair for lane in report.lanes for pair in lane.inconclusive.shown)
    assert (verdict.status, verdict.metric) == (pair.status, pair.metric) == ("inconclusive", "step_seconds")
    assert "C107" in {reason.code for reason in pair.reasons}


def test_a_configuration_that_equals_what_led_is_no_new_best(store: Store) -> None:
    at_a, at_b = turns(5)
    put(store, *side("base", 0.8, at_a, 0.001), *side("cand", 0.798, at_b, 0.001, **FAST))
    put(store, *(launch(f"base-{90 + at}", -480 + at / 3, 0.82 * (1 + 0.0005 * at)) for at in range(5)))
    later = MONDAY + timedelta(days=1)
    report = collect(store, cases.rulebook(), asked(None, "2026-03-01", None, later), later)
    ((first, *_),) = [lane.frontier for lane in report.lanes]
    assert first.change is not None
    assert first.change.state == "equal"
    assert [lane.moved for lane in report.lanes] == [()]
