"""The weekly report: what it says of a week that holds one of everything."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import report_store as week
import rule_cases as cases
import section_store as section
from receipts.base.errors import NotFound, UsageError
from receipts.cli import main
from receipts.publish.report.render import render
from receipts.questions.week import failures
from receipts.questions.week.collect import WeekData, collect
from receipts.questions.week.data import Cut, refs_in
from receipts.questions.week.failures import offenses
from receipts.questions.week.interval import Week, asked, moment
from receipts.questions.week.links import MAX_NEAREST, ComparedPair, Configurations, Links, Neighbours
from receipts.questions.week.pairs import _judged
from receipts.questions.week.reader import ReportReader
from receipts.receipt import Parsed
from receipts.store import Store, open_store

pytestmark = pytest.mark.slow


def report(store: Store, at: str = week.AS_OF, name: str = week.WEEK, lanes: tuple[str, ...] = ()) -> WeekData:
    return collect(store, cases.rulebook(), Week.parse(name), moment(at), lanes)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return week.fill(tmp_path_factory.mktemp("report") / "store.sqlite", week.everything())


@pytest.fixture(scope="module")
def data(store: Store) -> WeekData:
    return report(store)


def test_the_header_counts_receipts_by_what_the_rules_say_now(data: WeekData) -> None:
    counts = data.counts
    assert (counts.submitted, counts.valid, counts.open, counts.invalid) == (11, 8, 1, 2)
    assert data.rules == cases.rulebook().rules.digest
    assert data.week == "2026-W10"


def test_the_frontier_holds_the_best_valid_result_with_its_five_answers(data: WeekData) -> None:
    (lane,) = data.lanes
    (best,) = lane.frontier
    assert best.receipt.name == "small decoder, 4 threads"
    assert best.rate_source == "steps"
    assert best.tokens_per_second_per_chip == pytest.approx(16 * 256 / 0.6, rel=0.01)
    assert best.peak_bytes == 640_000_000
    assert len(best.answers) == 5
    path = next(item for item in best.answers if item.question == "on its path?")
    assert (path.answer, path.state) == ("witnessed: sdpa_flash", "yes")


def test_a_stated_result_stands_apart_and_never_on_the_frontier(data: WeekData) -> None:
    (lane,) = data.lanes
    (told,) = lane.stated
    assert told.receipt.name == "from a notebook"
    assert "R301" in told.open_questions
    assert told.receipt not in [item.receipt for item in lane.frontier]


def test_an_accepted_comparison_has_its_axis_its_effect_and_its_interval(data: WeekData) -> None:
    (lane,) = data.lanes
    (made,) = lane.accepted
    assert made.counted == ("flags.OMP_NUM_THREADS",)
    assert made.effect == "faster"
    assert made.low is not None
    assert made.high is not None
    assert 1.3 < made.low < 0.8 / 0.6 < made.high < 1.35
    assert (len(made.a), len(made.b)) == (3, 3)


def test_a_refused_comparison_names_the_axes_that_moved(data: WeekData) -> None:
    (lane,) = data.lanes
    refused = next(item for item in lane.refused if "C101" in [reason.code for reason in item.reasons])
    assert refused.counted == ("pattern", "dimensions")
    assert ("model.hidden", "256", "320") in [(moved.path, moved.a, moved.b) for moved in refused.moved]


def test_a_refused_comparison_names_the_rule_where_one_axis_moved(data: WeekData) -> None:
    (lane,) = data.lanes
    left = next(item for item in lane.refused if item.b[0].name == "left its path")
    assert left.counted == ("path.attention",)
    assert [(reason.code, reason.side) for reason in left.reasons] == [("R302", "B")]


def test_a_stated_launch_beside_measured_ones_is_left_out_of_their_comparison_and_counted(data: WeekData) -> None:
    (lane,) = data.lanes
    (made,) = lane.accepted
    assert not made.stated
    assert made.why.endswith("not asked for: A 1 of other labels")
    assert lane.inconclusive.total == 0


def test_failures_of_one_shape_are_one_cause_with_what_was_asked_for_and_what_they_cost(data: WeekData) -> None:
    made = data.sections.failures
    (cause,) = made.causes
    assert (made.launches, cause.launches, cause.outcome) == (2, 2, "oom")
    assert (cause.phases, cause.classes) == (("first_window",), ("runtime_alloc",))
    assert (cause.requested_bytes, cause.limit_bytes, cause.micro_batch) == (3 * 2**30, 16 * 2**30, 64)
    assert [ref.name for ref in cause.receipts] == ["micro batch 64", "micro batch 64 again"]
    assert (cause.cost.timed, cause.cost.untimed) == (2, 0)
    assert cause.cost.chip_seconds == pytest.approx(2 * 260, abs=1)


def test_failures_of_other_shapes_or_messages_are_other_causes_and_known_ones_are_named_once(tmp_path: Path) -> None:
    crash: dict[str, Any] = {"run__outcome": "crash", "run__exit_code": 1, "failure": {"message": "lost a link"}}
    with open_store(str(tmp_path / "causes.sqlite")) as made:
        section.put(made, [section.known_failure(-9, "before"), section.known_failure(1, "again")])
        section.put(made, [section.known_failure(2, "larger", batch__micro_batch=16, batch__accumulation=1)])
        section.put(made, [section.launch("a", 3, **crash), section.launch("b", 4, numerics__learning_rate=5, **crash)])
        sections = section.report(made).sections
    found = sections.failures
    assert [(item.launches, failures.named(item)) for item in found.causes] == [
        (2, "crash: lost a link"),
        (1, "OOM at 4,096 × micro batch 16, 8 × h200-sxm"),
        (1, "OOM at 4,096 × micro batch 8, 8 × h200-sxm"),
    ]
    assert sorted((item.first.name, item.times) for item in sections.repeats) == [("a", 2), ("before", 2)]


def test_a_run_that_left_its_path_is_an_incident(data: WeekData) -> None:
    (incident,) = (item for item in data.sections.offenses if item.incident)
    assert (incident.code, incident.launches, [item.at for item in incident.seen]) == (
        "R302",
        1,
        ["path.witnessed.attention"],
    )
    assert [ref.name for ref in incident.receipts] == ["left its path"]


def test_a_launch_with_two_findings_of_a_rule_is_one_incident(store: Store) -> None:
    reader = ReportReader(store, cases.rulebook(), moment(week.AS_OF))
    (left,) = (item for item in reader.items(reader.rows) if item.entry.label == "left its path")
    finding = next(item for item in left.verdict.findings if item.code == "R302")
    both = (finding, replace(finding, at="path.witnessed.gemm"))
    items = [replace(left, verdict=replace(left.verdict, findings=both))]
    items.append(replace(left, entry=left.entry._replace(id="f" * 64), verdict=items[0].verdict))
    (incident,) = offenses(items)
    assert incident.launches == len(incident.receipts) == 2
    assert [(item.at, item.launches) for item in incident.seen] == [
        ("path.witnessed.attention", 2),
        ("path.witnessed.gemm", 2),
    ]


def test_a_lineage_that_nobody_stated_is_no_drift_and_one_that_is_stated_in_part_may_be(tmp_path: Path) -> None:
    def found(name: str, **leaves: Any) -> list[str]:
        with open_store(str(tmp_path / f"{name}.sqlite")) as made:
            section.put(made, [section.launch(name, 1, **leaves)])
            return [seen.found for item in section.report(made).sections.offenses for seen in item.seen]

    bare: dict[str, Any] = {"wheels__transformer_engine": None, "platform__cudnn": None}
    assert found("bare", **bare) == []
    (drifted,) = found("old", platform__cudnn=None, wheels__transformer_engine="2.1.0")
    assert "transformer_engine 2.1.0" in drifted


def test_memory_is_read_chip_by_chip(data: WeekData) -> None:
    tightest = data.headroom[0]
    assert tightest.chips == 1
    assert (tightest.leaders, tightest.skew, tightest.first_chips, tightest.faulty) == ((0,), None, (), False)
    assert tightest.left == pytest.approx(1 - 640_000_000 / 2**34)


def test_the_noise_floor_comes_from_launches_that_differ_in_nothing(data: WeekData) -> None:
    (lane,) = data.lanes
    assert (lane.noise.groups, lane.noise.launches) == (2, 6)
    assert lane.noise.sigma == pytest.approx(0.001, rel=0.05)


def test_every_receipt_that_is_named_is_described(data: WeekData) -> None:
    described = {item.receipt.id for item in data.receipts}
    (lane,) = data.lanes
    named = {item.receipt.id for item in (*lane.frontier, *lane.stated)}
    named |= {ref.id for pair in (*lane.accepted, *lane.inconclusive, *lane.refused) for ref in (*pair.a, *pair.b)}
    named |= {ref.id for ref in refs_in(data.sections.failures)} | {tight.receipt.id for tight in data.headroom}
    assert named <= described


def test_what_ran_after_as_of_is_not_looked_at(store: Store) -> None:
    early = report(store, "2026-03-03")
    assert early.counts.submitted == 6
    assert early.sections.failures.causes.total == 0


def test_the_same_store_gives_the_same_values(store: Store, data: WeekData) -> None:
    assert report(store) == data


def test_a_week_without_receipts_names_the_newest(store: Store) -> None:
    empty = report(store, "2026-11-20", "2026-W30")
    assert empty.counts.submitted == 0
    assert empty.last_week == "2026-W10"
    assert empty.lanes[0].frontier[0].in_week is False


def test_an_empty_store_gives_an_empty_report(tmp_path: Path) -> None:
    empty = report(week.fill(tmp_path / "empty.sqlite", []))
    assert (empty.lanes, empty.receipts, empty.last_week) == ((), (), None)


def test_only_the_lanes_that_were_asked_for_are_told(tmp_path: Path) -> None:
    other = cases.group(cases.build({"base": "megatron", "set": week.day(3)}), "m", 1)
    store = week.fill(tmp_path / "lanes.sqlite", [*week.launches("a"), *other])
    assert [lane.name for lane in report(store).lanes] == ["cpu-torch", "nvidia-megatron"]
    assert [lane.name for lane in report(store, lanes=("nvidia-megatron",)).lanes] == ["nvidia-megatron"]


def test_an_unknown_lane_is_refused_with_the_known_ones(store: Store) -> None:
    with pytest.raises(NotFound) as refused:
        report(store, lanes=("gpu", "cpu-torch", "nvidia-megaton"))
    first, second, third = str(refused.value).splitlines()
    assert first == "there is no lane 'gpu'"
    assert second.startswith("there is no lane 'nvidia-megaton'; did you mean nvidia-megatron")
    assert third.startswith("known: cpu-jax, ")


def test_nothing_is_compared_across_lanes(tmp_path: Path) -> None:
    other = week.one("b", {"run.lane": "unlisted", **week.day(3)})
    made = report(week.fill(tmp_path / "two.sqlite", [*week.launches("a"), *other]))
    assert made.compared == 0


def test_shapes_stand_apart_on_the_frontier(tmp_path: Path) -> None:
    shape = {"batch.sequence_length": 512, "measurement.tokens_per_step": 16 * 512, "run.label": "longer"}
    shape["run.finished"] = "2026-03-03T09:10:00+00:00"
    longer = week.one("b", {**week.day(3), **shape}, {"seconds": 1.6})
    made = report(week.fill(tmp_path / "shapes.sqlite", [*week.launches("a"), *longer]))
    assert [item.sequence_length for item in made.lanes[0].frontier] == [256, 512]


@pytest.mark.parametrize("column", ["lane", "geometry", "depth", "sequence_length", "chips"])
def test_what_makes_a_shape_is_never_folded(store: Store, column: str) -> None:
    from receipts.questions.week.frontier import shapes

    rows = [row for row in store.find() if row.outcome == "ok" and row.model == "decoder-4m"]
    other = [row._replace(**{column: "other" if column == "lane" else 7}) for row in rows]
    named = [row._replace(family="other", model="other", label="other") for row in rows]
    assert len(shapes([*rows, *other, *named])) == 2 * len(shapes(rows))


def test_a_projection_is_no_result(tmp_path: Path) -> None:
    projected = week.one("a", {"run.provenance": "projected"})
    (lane,) = report(week.fill(tmp_path / "projected.sqlite", projected)).lanes
    assert (lane.frontier.total, lane.stated.total) == (0, 0)


def test_what_was_dropped_leads_no_frontier_unless_the_decision_was_revised(tmp_path: Path) -> None:
    base, faster = week.launches("a"), week.one("b", {**week.day(2), **week.THREADS}, {"seconds": 0.6}, 2)
    store = week.fill(tmp_path / "dropped.sqlite", [*base, *faster])
    store.published.decide(faster[0].id, "drop", "the loss parts after 200 steps")
    made = report(store)
    (lane,) = made.lanes
    assert [item.receipt.id for item in (*lane.frontier, *lane.peaks, *lane.stated)] == [base[0].id]
    assert lane.left_out == (("decided drop", 2),)
    assert "2 launches: decided drop." in render(made, cases.rulebook().rules)["report.md"].decode()
    store.published.decide(faster[0].id, "ship", "it was the seed")
    (lane,) = report(store).lanes
    assert [item.receipt.name for item in lane.frontier] == [faster[0].receipt.run.label]


def _megatron(side: str, day: int, seconds: float, leaves: dict[str, Any]) -> list[Parsed]:
    times = {f"run.{name}": f"2026-03-{day:02d}T09:{at}:00Z" for name, at in (("started", "00"), ("finished", 20))}
    values = {**times, "run.label": side, **leaves}
    return cases.group(cases.build({"base": "megatron", "steps": {"seconds": seconds}, "set": values}), side, 1)


def test_what_cost_a_feature_that_its_lane_requires_leads_no_frontier(tmp_path: Path) -> None:
    def megatron(side: str, day: int, seconds: float, **features: bool) -> list[Parsed]:
        return _megatron(side, day, seconds, {"features": {"complete": True, "ngram_hash": True, **features}})

    base, lost = megatron("a", 3, 2.3, structure=True), megatron("b", 4, 2.0)
    (lane,) = report(week.fill(tmp_path / "feature.sqlite", [*base, *lost])).lanes
    assert [reason.code for item in lane.refused for reason in item.reasons] == ["C115"]
    assert [item.receipt.id for item in (*lane.frontier, *lane.peaks, *lane.stated)] == [base[0].id]
    assert lane.left_out == (("without features.structure, which the lane requires", 1),)


ATTENTION = {"model.attention_kinds": "52 full"}


def test_a_dense_stack_keeps_its_row_beside_a_hybrid_one(tmp_path: Path) -> None:
    features = {"complete": True, "ngram_hash": True, "structure": True}
    hybrid = _megatron("a", 3, 2.3, {"features": features})
    dense = _megatron("b", 4, 2.0, {"features": features, "model.pattern": "A", "model.family": "dense", **ATTENTION})
    (lane,) = report(week.fill(tmp_path / "models.sqlite", [*hybrid, *dense])).lanes
    assert {item.family for item in lane.frontier} == {"hybrid", "dense"}
    assert lane.left_out == ()


def test_a_superseded_receipt_is_counted_and_judged_no_more(tmp_path: Path) -> None:
    first, second = week.launches("a", 2)
    store = week.fill(tmp_path / "gone.sqlite", [first, second])
    store.retract(first.id, "the clock was wrong")
    made = report(store)
    assert (made.counts.submitted, made.counts.valid, made.counts.superseded) == (2, 1, 1)
    assert [item.receipt.id for item in made.receipts] == [second.id]


def test_an_unsound_repeat_does_not_spoil_the_launches_that_it_repeats(tmp_path: Path) -> None:
    (bare,) = week.one("g", week.day(3))
    tree = json.loads(bare.raw)
    cases.take(tree, "measurement.step_durations_seconds")
    faster = week.one("b", {**week.day(2), **week.THREADS}, {"seconds": 0.6}, 3)
    store = week.fill(tmp_path / "repeat.sqlite", [*week.launches("a", 3), cases.parsed(tree), *faster])
    (lane,) = report(store).lanes
    assert [len(item.a) for item in lane.accepted] == [3]


def test_a_run_counts_in_the_week_in_which_it_ended(tmp_path: Path) -> None:
    over = week.one("a", {"run.started": "2026-03-01T23:59:00+00:00", "run.finished": "2026-03-02T00:03:20+00:00"})
    store = week.fill(tmp_path / "sunday.sqlite", over)
    assert report(store).counts.submitted == 1
    assert report(store, name="2026-W09").counts.submitted == 0


@cache
def _sides() -> tuple[list[Parsed], list[Parsed]]:
    return week.launches("a", 3), week.one("b", {**week.day(2), **week.THREADS}, {"seconds": 0.6}, 3)


def test_holm_takes_back_what_is_significant_alone_only(store: Store) -> None:
    reader = ReportReader(store, cases.rulebook(), moment(week.AS_OF))
    assert Neighbours(reader.rows).before(reader.rows[0]) == []
    made = Configurations(reader).group(reader.items(reader.rows))
    a, b = (one for one in made if len(one.launches) == 3)
    verdict = Links(reader, reader.items(reader.rows)).between(a.head, b.head, "tokens_per_second")
    assert verdict is not None
    assert verdict.status == "accepted"
    barely = replace(
        verdict, results=tuple(replace(item, effect=replace(item.effect, p_beyond=0.04)) for item in verdict.results)
    )
    (alone,), _ = _judged([ComparedPair(a, b, barely)], cases.rulebook().rules)
    assert (alone.status, alone.effect) == ("accepted", "faster")
    among, adjusted = _judged([ComparedPair(a, b, barely), ComparedPair(a, b, barely)], cases.rulebook().rules)
    assert adjusted == 2
    assert {(item.status, item.effect) for item in among} == {("inconclusive", "ambiguous")}
    assert "Holm p 0.080" in among[0].why


def test_neighbours_are_earlier_rows_and_never_more_than_the_nearest(store: Store) -> None:
    (row, *_) = list(store.find())
    rows = [
        row._replace(
            id=f"{index:064d}",
            seq=index,
            outcome="ok",
            stands=True,
            started=row.started + timedelta(minutes=index),
        )
        for index in range(3000)
    ]
    near = Neighbours(rows)
    found = near.before(rows[2000])
    assert len(found) == MAX_NEAREST
    assert [other.seq for other in found] == list(range(1999, 1999 - MAX_NEAREST, -1))


def test_what_a_list_leaves_out_is_counted(data: WeekData) -> None:
    from receipts.questions.week.pairs import ended

    (refused, *_) = data.lanes[0].refused
    kept = ended([refused] * 15, "rejected", 12)
    assert (len(kept), kept.more, kept.total) == (12, 3, 15)
    assert ended([refused], "accepted", 12) == Cut((), 0)


def test_a_week_is_read_and_bounded_in_utc() -> None:
    one = Week.parse("2026-w01")
    assert str(one) == "2026-W01"
    assert (one.since.isoformat(), one.until.isoformat()) == ("2025-12-29T00:00:00+00:00", "2026-01-05T00:00:00+00:00")
    assert Week.of(moment("2026-03-09T00:30:00+01:00")) == Week.parse("2026-W10")


@pytest.mark.parametrize("text", ["2026-W54", "2026-47", "W47", "2026-W00", "0000-W01", "0001-W01", "9999-W52", ""])
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no such ISO week"):
        Week.parse(text)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("2026W47", "did you mean 2026-W47?"),
        ("2026-47", "did you mean 2026-W47?"),
        ("2026-w7", "did you mean 2026-W07?"),
        ("2026-W54", "2026 has the weeks W01 to W53"),
        ("2025-W53", "2025 has the weeks W01 to W52"),
        ("w47", "write it as 2026-W47"),
    ],
)
def test_what_is_nearly_a_week_is_told_how_it_is_written(text: str, instead: str) -> None:
    with pytest.raises(UsageError) as refused:
        Week.parse(text)
    assert str(refused.value) == f"--week {text}: there is no such ISO week; {instead}"


@pytest.mark.parametrize(
    ("week_", "since", "until"),
    [("2026-W13", None, None), (None, "2026-03-21", None), (None, "2026-03-21T10:00Z", "2026-04-01")],
)
def test_what_lies_ahead_is_refused(week_: str | None, since: str | None, until: str | None) -> None:
    with pytest.raises(UsageError, match=r"it begins after 2026-03-20 23:59 UTC.*later --as-of"):
        asked(week_, since, until, moment("2026-03-20"))
    assert str(asked("2026-W12", None, None, moment("2026-03-20"))) == "2026-W12"


def test_a_day_that_does_not_exist_is_told_as_it_was_written() -> None:
    with pytest.raises(UsageError, match="--as-of 2026-11-31: there is no such day"):
        moment("2026-11-31")


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2026-03-01T", "2026-13-01", "0001-01-01T00:00:00+14:00", "0001-01-01", "9999-12-31"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--as-of"):
        moment(text)


@pytest.mark.parametrize(("since", "until"), [("0001-01-01", "2026-03-20"), ("2026-03-01", "9999-12-31")])
def test_an_interval_without_an_end_is_refused(since: str, until: str) -> None:
    with pytest.raises(UsageError, match="write a moment of the years 1900 to 9998"):
        asked(None, since, until, moment("2026-03-20"))


def test_a_bare_date_means_the_end_of_that_day() -> None:
    assert moment("2026-03-08").isoformat() == "2026-03-08T23:59:59+00:00"
    assert moment("2026-03-08T09:00").isoformat() == "2026-03-08T09:00:00+00:00"


def test_few_launches_are_judged_by_the_floor_that_the_lane_has_shown_as_compare_judges_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "floor.sqlite")
    buckets = {"parallelism__bucket_bytes": section.BUCKETS, "numerics__learning_rate": 7}
    with open_store(place) as made:
        section.put(
            made, [*section.side("before", -20, 2.3), *section.side("base", 0.5, 2.3, {"numerics.learning_rate": 5})]
        )
        section.put(
            made,
            [
                section.launch("one", 1, 2.3, numerics__learning_rate=7),
                section.launch("other", 1 + section.HOUR, 2.2, **buckets),
            ],
        )
        (lane,) = section.report(made).lanes
    told = next(item for item in lane.accepted if item.b[0].name == "other" and item.a[0].name == "one")
    assert (len(told.a), len(told.b), told.effect) == (1, 1, "faster")
    assert main(["--store", place, "compare", told.a[0].id, told.b[0].id, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (headline,) = [item for item in said["results"] if item["metric"] == told.metric]
    assert (headline["effect"]["low"], headline["effect"]["high"]) == pytest.approx((told.low, told.high))


def test_a_floor_is_of_equal_launches_of_the_class_that_had_run(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "floors.sqlite")) as made:
        alone = section.launch("alone", 1, 2.3, numerics__learning_rate=5)
        section.put(made, [*section.side("before", -20, 2.3), alone])
        section.put(made, section.side("later", 9, 2.5, {"numerics.learning_rate": 8}))
        section.put(made, section.side("longer", -9, 2.5, {"batch.sequence_length": 8192, "batch.global_batch": 32}))
        reader = ReportReader(made, cases.rulebook(), section.AS_OF, (), section.MONDAY)
        floor = reader.comparisons.floor(alone)
        assert (floor.groups, floor.launches) == (1, 3)
        assert floor.sigma == pytest.approx(0.001, rel=0.3)


def test_an_empty_list_is_named_and_a_cut_one_says_where_the_rest_stands(data: WeekData) -> None:
    from receipts.publish.report.render import render

    (lane,) = data.lanes
    cut = replace(lane, accepted=Cut(), refused=replace(lane.refused, more=3))
    text = render(replace(data, lanes=(cut,)), cases.rulebook().rules)["report.md"].decode()
    assert "There are no accepted comparisons and no undecided comparisons.\n" in text
    assert "And 3 more rejected comparisons, in comparisons.parquet." in text
