"""The sections of a report beside comparisons: what each says of a store that holds what it tells of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rule_cases as cases
import section_store as week
from receipts.base.environment import this_process
from receipts.base.untrusted_text import plain
from receipts.publish.report.render import render
from receipts.questions.week.collect import WeekData
from receipts.receipt import Parsed
from receipts.store import Entry, Store, open_store
from store_copies import FileCopies, no_receipts

pytestmark = pytest.mark.slow


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    """An empty store on each engine."""
    with open_store(made_url) as made:
        yield made


@pytest.fixture
def small(file_copies: FileCopies, tmp_path: Path) -> Iterator[Store]:
    """An empty store on SQLite."""
    with open_store(file_copies.file(tmp_path / "store.sqlite", "no receipts", no_receipts)) as made:
        yield made


def labelled(store: Store, label: str) -> list[Entry]:
    return [entry for entry in store.find() if entry.label == label]


def full() -> list[Parsed]:
    """A gain that vanished, and a failure that came back."""
    return [*week.local_gain(), *week.at_target(2.31), week.known_failure(-9, "a"), week.known_failure(2, "b")]


def shown(data: WeekData) -> str:
    return render(data, cases.rulebook().rules)["report.md"].decode()


# What did not survive


def test_a_local_gain_that_is_none_at_the_target_has_vanished(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    made = week.report(store).sections.survival
    (gain,) = made.vanished
    assert gain.there is not None
    assert (gain.local.effect, gain.there.effect) == ("faster", "equivalent")
    assert [moved.path for moved in gain.moved] == ["parallelism.bucket_bytes"]
    assert {ref.name for ref in gain.there.b} == {"target buckets"}
    assert (made.waiting, made.held) == ((), ())


def test_a_launch_that_recompiled_at_the_target_does_not_hide_what_its_repeats_show(small: Store) -> None:
    compiled: dict[str, Any] = {"compile__compiles_after_warmup": 3}
    buckets: dict[str, Any] = {"parallelism__bucket_bytes": week.BUCKETS}
    week.put(small, [*week.local_gain(), *week.at_target(2.31)])
    week.put(small, [week.launch("spoilt base", 3, **compiled), week.launch("spoilt", 4, **compiled, **buckets)])
    made = week.report(small).sections.survival
    (gain,) = made.vanished
    assert gain.there is not None
    assert (gain.there.effect, len(gain.there.a), len(gain.there.b)) == ("equivalent", 3, 3)


@pytest.mark.parametrize("started", [6, 9], ids=["was running at the end", "began after the end"])
def test_a_trial_takes_no_launch_that_ran_after_the_end(small: Store, started: int) -> None:
    week.put(small, [*week.local_gain(), *week.at_target(2.31)])
    values: dict[str, Any] = {"run__finished": (week.MONDAY + timedelta(days=10)).isoformat()}
    later = week.launch("target buckets-9", started, 1.9, parallelism__bucket_bytes=week.BUCKETS, **values)
    week.put(small, [later])
    (gain,) = week.report(small).sections.survival.vanished
    assert gain.there is not None
    assert [later.id in {ref.id for ref in side} for side in (gain.there.a, gain.there.b)] == [False, False]
    assert len(gain.there.b) == 3


def test_what_ran_after_the_end_changes_no_parquet(small: Store) -> None:
    week.put(small, [*week.local_gain(), *week.at_target(2.31)])
    before = week.basis(small)
    week.put(small, [week.launch("target buckets-9", 9, 1.9, parallelism__bucket_bytes=week.BUCKETS)])
    assert week.basis(small) == before


def test_the_loss_of_a_later_week_is_held_against_the_gain_of_an_earlier_one(small: Store) -> None:
    week.put(small, [*week.local_gain(), *week.at_target(2.5, day=9)])
    first = week.report(small)
    assert [gain.fate for gain in first.sections.survival.waiting] == ["waits"]
    later = week.report(small, "2026-W11", week.AS_OF + timedelta(days=7))
    (gain,) = later.sections.survival.vanished
    assert gain.there is not None
    assert gain.there.effect == "slower"
    assert {ref.name for ref in gain.local.b} == {"local buckets"}


def test_a_gain_that_ran_out_of_memory_at_the_target_has_vanished(small: Store) -> None:
    failed = {**week.changed(), "run.outcome": "oom", "run.exit_code": 1, "failure": week.OOM["failure"]}
    flat = {path.replace(".", "__"): value for path, value in failed.items()}
    week.put(
        small, [*week.local_gain(), *week.side("target base", 2 - week.HOUR, 2.3), week.launch("too much", 2, **flat)]
    )
    (gain,) = week.report(small).sections.survival.vanished
    assert gain.there is not None
    assert gain.there.effect == "ended in oom"
    assert gain.there.ratio is None


def test_a_gain_that_nobody_tried_at_the_target_waits_and_one_that_holds_there_is_told_as_such(small: Store) -> None:
    week.put(small, week.local_gain())
    data = week.report(small)
    (gain,) = data.sections.survival.waiting
    assert gain.there is None
    assert gain.target == "NAM56R production"
    assert "not tried at NAM56R production" in shown(data)
    week.put(small, week.at_target(2.07))
    made = week.report(small).sections.survival
    assert [gain.fate for gain in made.held] == ["held"]
    assert made.waiting == ()


def test_the_trial_of_another_value_is_no_trial_of_the_change(small: Store) -> None:
    other = week.side("other buckets", 2, 2.31, {"parallelism.bucket_bytes": 4 * week.BUCKETS})
    week.put(small, [*week.local_gain(), *week.side("target base", 2 - week.HOUR, 2.3), *other])
    made = week.report(small).sections.survival
    assert made.vanished == ()
    assert [gain.fate for gain in made.waiting] == ["waits"]


def test_launches_that_differ_in_another_axis_as_well_are_no_trial_of_the_change(small: Store) -> None:
    other = week.side("two axes", 2, 2.31, week.changed({"numerics.learning_rate": 99}))
    week.put(small, [*week.local_gain(), *week.side("target base", 2 - week.HOUR, 2.3), *other])
    made = week.report(small).sections.survival
    assert [gain.fate for gain in made.waiting] == ["waits"]
    assert (made.vanished, made.held) == ((), ())


def test_a_claim_that_holds_away_from_its_target_waits_until_it_is_withdrawn(store: Store) -> None:
    week.put(store, week.local_gain())
    with week.clock(week.MONDAY - timedelta(days=3)):
        week.claim(store, "buckets", text="a tenth faster", **week.SPEEDUP)
    data = week.report(store)
    (waiting,) = data.sections.survival.claims
    assert (waiting.id, waiting.target) == ("buckets", "NAM56R production")
    assert [why.code for why in waiting.reasons] == ["K104"]
    assert data.sections.survival.waiting[0].claim == "buckets"
    with week.clock(week.MONDAY + timedelta(days=1)):
        store.published.supersede_claim("buckets", None, "nobody needs it")
    after = week.report(store).sections
    assert after.survival.claims.total == 0
    (changed,) = after.claims.changed
    assert changed.id == "buckets"
    assert re.fullmatch(rf"withdrawn, recorded by .*{this_process()}: nobody needs it", changed.replaced or "")
    later = week.report(store, "2026-W11", week.AS_OF + timedelta(days=7)).sections
    assert later.claims.judged == 0


# Decisions


def test_decisions_of_the_week_stand_with_their_reasons_and_later_ones_do_not(store: Store) -> None:
    week.put(store, [week.launch("one", 0), week.launch("two", 1, parallelism__bucket_bytes=week.BUCKETS)])
    (one,), (two,) = labelled(store, "one"), labelled(store, "two")
    for days, entry, decision, reason in (
        (-1, one, "ship", "before"),
        (1, one, "hold", "too little headroom"),
        (2, one, "drop", "worse at length"),
        (2, two, "ship", "it holds"),
        (7, two, "drop", "after"),
    ):
        with week.clock(week.MONDAY + timedelta(days=days)):
            store.published.decide(entry.id, decision, reason)
    made = week.report(store).sections.decisions
    assert [(item.decision, item.reason, item.revised) for item in made] == [
        ("ship", "it holds", False),
        ("drop", "worse at length", False),
        ("hold", "too little headroom", True),
    ]
    assert week.report(store, lanes=("cpu-torch",)).sections.decisions.total == 0


# Claims


def test_a_claim_whose_receipt_fell_is_stale_and_names_the_documents_that_quote_it(store: Store) -> None:
    week.put(store, week.local_gain())
    with week.clock(week.MONDAY - timedelta(days=3)):
        week.claim(store, "buckets", text="a tenth faster", quoted_in=["README.md"], **week.SPEEDUP)
        store.published.quote("docs/results.md", [(labelled(store, "local base")[0].id, "2.3 s")])
        store.published.quote("docs/gone.md", [(labelled(store, "local base")[0].id, "2.3 s")])
    with week.clock(week.MONDAY - timedelta(days=2)):
        store.published.quote("docs/gone.md", [])
    with week.clock(week.MONDAY + timedelta(days=30)):
        store.published.quote("docs/later.md", [(labelled(store, "local base")[0].id, "2.3 s")])
    assert week.report(store).sections.claims.stale.total == 0
    with week.clock(week.MONDAY + timedelta(days=2)):
        store.retract(labelled(store, "local buckets")[0].id, "a wrong run")
    made = week.report(store).sections.claims
    (stale,) = made.stale
    assert stale.documents.shown == ("README.md", "docs/results.md")
    assert stale.reasons[0].code == "K106"
    assert [(item.before, item.recorded, item.status) for item in made.changed] == [("unproven", "unproven", "stale")]
    assert week.report(store).sections.survival.claims.total == 0
    with week.clock(week.MONDAY + timedelta(days=3)):
        week.judge_again(store, "buckets")
    (changed,) = week.report(store).sections.claims.changed
    assert (changed.before, changed.recorded) == ("unproven", "stale")


def test_a_claim_that_was_added_in_the_week_is_told_and_one_that_did_not_move_is_not(small: Store) -> None:
    week.put(small, week.local_gain())
    with week.clock(week.MONDAY - timedelta(days=3)):
        week.claim(small, "old", text="a tenth faster", **week.SPEEDUP)
    with week.clock(week.MONDAY + timedelta(days=3)):
        week.claim(small, "new", text="a twentieth faster", **week.SPEEDUP)
    with week.clock(week.MONDAY + timedelta(days=10)):
        week.claim(small, "next", text="a third faster", **week.SPEEDUP)
    made = week.report(small).sections.claims
    assert [(item.id, item.added) for item in made.changed] == [("new", True)]
    assert made.judged == 2


def test_a_claim_of_another_lane_is_left_out(small: Store) -> None:
    week.put(small, week.local_gain())
    with week.clock(week.MONDAY):
        week.claim(small, "buckets", text="a tenth faster", **week.SPEEDUP)
    assert week.report(small, lanes=("cpu-torch",)).sections.claims.judged == 0
    assert week.report(small, lanes=("nvidia-megatron",)).sections.claims.judged == 1


# Ceilings and regimes


def test_validated_ceilings_stand_apart_from_peaks_with_the_nearest_failure(store: Store) -> None:
    long: dict[str, Any] = {"batch__sequence_length": 8192, "batch__global_batch": 32, "batch__accumulation": 2}
    longer = {**long, "batch__sequence_length": 16384, "batch__global_batch": 16, "batch__accumulation": 1}
    later = week.launch("longer", 9, **longer)
    week.put(
        store,
        [
            *week.at_target(2.31),
            week.launch("target base-9", 0),
            week.launch("long", 2, **long),
            week.known_failure(3, "too much"),
            later,
        ],
    )
    data = week.report(store)
    (group,) = data.sections.ceilings["nvidia-megatron"].reached.frontiers
    made = group.ceilings
    assert [(item.grade, item.size[0], item.launches) for item in made] == [
        ("validated", 4096, 7),
        ("peak", 8192, 1),
    ]
    assert [(failed.size[1], failed.launches) for failed in made[0].failures] == [(8, 1)]
    text = shown(data)
    assert text.index("4,096 tokens × micro batch 8") < text.index("8,192 tokens × micro batch")


@pytest.mark.parametrize(
    ("leaves", "seconds", "regimes"),
    [
        ({}, 2.3, ("enough work",)),
        ({"measurement__exposed_communication_seconds": 0.5}, 2.3, ("communication-heavy",)),
        ({"measurement__exposed_communication_seconds": 0.4}, 2.3, ("enough work",)),
        ({"hardware__chips": None}, 2.3, ()),
    ],
)
def test_the_regime_follows_from_what_is_stated(
    small: Store, leaves: dict[str, Any], seconds: float, regimes: tuple[str, ...]
) -> None:
    from receipts.questions.answers import work

    launch = week.launch("one", 0, seconds, **leaves)
    week.put(small, [launch])
    assert work(*_judged(small)).regimes == regimes


def _judged(store: Store) -> Any:
    from receipts.questions.week.reader import ReportReader

    reader = ReportReader(store, cases.rulebook(), week.AS_OF, (), week.MONDAY)
    (row,) = reader.rows
    item = reader.item(row)
    return item.launch, item.verdict.findings, reader.rulebook.rules


def test_a_chip_that_keeps_too_little_is_memory_limited_and_a_missing_fact_is_named(small: Store) -> None:
    from receipts.questions.answers import work

    rows = [{"chip": n, "phase": "steady", "peak_bytes": 95, "bytes_limit": 100, "bytes_used": 90} for n in range(8)]
    week.put(small, [week.launch("one", 0, memory__chips=rows, measurement__exposed_communication_seconds=None)])
    made = work(*_judged(small))
    assert made.regimes == ("memory-limited",)
    assert made.missing == ("exposed communication",)


def test_steps_that_never_settle_are_unstable(small: Store) -> None:
    from receipts.questions.answers import work

    launch = week.drifting("one")
    week.put(small, [launch])
    assert "unstable" in work(*_judged(small)).regimes


# Failures that were known


def test_a_failure_that_came_back_is_told_with_what_it_cost(store: Store) -> None:
    again = week.known_failure(3, "again", compile__compile_seconds=720.0)
    week.put(store, [week.known_failure(-20, "first"), again, week.known_failure(4, "third")])
    week.put(store, [week.known_failure(-30, "retracted"), week.known_failure(-10, "second")])
    store.retract(labelled(store, "retracted")[0].id, "a wrong run")
    week.put(store, [week.known_failure(9, "next week"), week.known_failure(2, "other", batch__micro_batch=16)])
    (made,) = week.report(store).sections.repeats
    assert made.first.name == "first"
    assert [ref.name for ref in made.again] == ["again", "third"]
    assert (made.times, made.compile_seconds, made.failed_seconds) == (4, 720.0, 1200.0)
    assert "32.0" in shown(week.report(store))


def test_the_first_failure_of_a_signature_is_no_repeat(small: Store) -> None:
    week.put(small, [week.known_failure(3, "first")])
    data = week.report(small)
    assert data.sections.repeats.total == 0
    assert "known failures" in empty(data)


# Intake and the self-check


def test_receipts_that_are_invalid_are_told_by_rule_and_those_that_fell_by_reason(store: Store) -> None:
    left: dict[str, Any] = {"path__witnessed__attention": "unfused"}
    week.put(store, [week.launch("fine", 0), week.launch("left", 1, **left), week.launch("left-2", 2, **left)])
    with week.clock(week.MONDAY - timedelta(days=1)):
        week.put(store, [week.launch("before", -3)])
        store.retract(labelled(store, "before")[0].id, "long ago")
    with week.clock(week.MONDAY + timedelta(days=3)):
        store.retract(labelled(store, "fine")[0].id, "a wrong run")
    sections = week.report(store).sections
    assert {(item.code, item.launches) for item in sections.offenses if item.code == "R302"} == {("R302", 2)}
    assert [(item.receipt and item.receipt.name, item.successor_id, item.reason) for item in sections.fallen] == [
        ("fine", None, "a wrong run")
    ]


def test_the_self_check_counts_pairs_of_equal_launches_and_who_was_told_apart(small: Store) -> None:
    week.put(small, [*week.local_gain(), *week.at_target(2.31)])
    data = week.report(small)
    (lane,) = data.lanes
    assert lane.noise.check.pairs == 4
    assert lane.noise.check.excluded_one == lane.noise.check.faster + lane.noise.check.slower
    assert f"{lane.noise.check.excluded_one} of 4 pairs of equal launches told apart" in shown(data)


def test_a_stated_result_names_what_keeps_it_from_the_frontier_whatever_it_is(small: Store) -> None:
    week.put(small, [week.launch("no pattern", 1, model__pattern=None, model__family="sparse")])
    (lane,) = week.report(small).lanes
    (told,) = lane.stated
    assert told.open_questions == ("R109", "R126")


def test_the_frontier_shows_the_lineage_that_a_result_ran_on(small: Store) -> None:
    week.put(small, [week.launch("one", 1), week.launch("two", 2)])
    data = week.report(small)
    (lane,) = data.lanes
    assert lane.ranked[0].lineage
    assert f"Lineage, {lane.ranked[0].lineage}." in shown(data)


# Pages


def test_every_rule_that_is_cited_is_explained_on_the_page(small: Store) -> None:
    two = week.launch("two axes", 4, 2.2, parallelism__bucket_bytes=1, numerics__learning_rate=99)
    week.put(small, [*full(), two])
    text = shown(week.report(small))
    for code in ("C101", "K104", "R414"):
        assert f"](#rule-{code})" in text
        assert f'<a id="rule-{code}"></a>' in text
    assert "A compile of twenty minutes that ends out of memory was paid for once already." in text


def empty(data: WeekData) -> str:
    """The one line that names what there is nothing to tell of."""
    return shown(data).partition("- **none of**: ")[2].partition("\n")[0]


def test_what_there_is_nothing_to_tell_of_stands_in_one_line_and_nowhere_else(small: Store) -> None:
    data = week.report(small)
    for name in (
        "gains lost or waiting for a target",
        "decisions",
        "claims that changed or are stale",
        "offenses",
        "failed launches",
        "known failures",
        "memory by chip",
        "noise floors",
        "receipts",
    ):
        assert name in empty(data)
    assert re.findall("^## (.*)$", shown(data), re.MULTILINE) == ["In short", "How it was judged"]


def test_a_section_that_has_something_to_tell_is_not_among_the_empty_ones(small: Store) -> None:
    week.put(small, full())
    assert "known" not in empty(week.report(small))
    assert "## Known failures" in shown(week.report(small))


HOSTILE = '<script>alert(1)</script>|`*[x](javascript:1)\u202eRTL "quotes" ' + "w" * 10_000


def test_hostile_text_of_people_is_text_in_every_section(small: Store) -> None:
    label = HOSTILE[:450]
    named = [week.known_failure(day, f"failed{day}", run__label=label) for day in (-9, 2)]
    week.put(small, [*week.local_gain(), week.launch("one", 0, run__label=label), *named])
    one = next(entry for entry in labelled(small, label) if entry.outcome == "ok")
    with week.clock(week.MONDAY + timedelta(days=1)):
        small.published.decide(one.id, "hold", f"{HOSTILE}\0")
        week.claim(small, "buckets", text=HOSTILE[:9000], quoted_in=[HOSTILE[:400]], **week.SPEEDUP)
        small.retract(labelled(small, "local base")[0].id, HOSTILE)
    files = render(week.report(small), cases.rulebook().rules)
    html, text = files["index.html"].decode(), files["report.md"].decode()
    assert plain(HOSTILE, 60)[:20] in html.replace("&lt;", "<").replace("&gt;", ">")
    for page in (html, text):
        assert "\u202e" not in page
        assert "\0" not in page
        assert "w" * 1300 not in page
    assert "<script" not in html
    assert "<script" not in text.replace("\\<", "")
    assert "](javascript" not in text.replace("\\]", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.rstrip().endswith("|") for line in rows)


def test_the_same_store_gives_the_same_bytes_whatever_was_written_from_it(small: Store) -> None:
    week.put(small, full())
    with week.clock(week.MONDAY - timedelta(days=1)):
        week.claim(small, "buckets", text="a tenth faster", **week.SPEEDUP)
        small.published.decide(labelled(small, "local base")[0].id, "hold", "wait")
    first = render(week.report(small), cases.rulebook().rules)
    with week.clock(week.AS_OF + timedelta(days=1)):
        small.published.quote(
            "report.md", [(item["receipt"]["id"], None) for item in json.loads(first["report.json"])["receipts"]]
        )
    assert render(week.report(small), cases.rulebook().rules) == first


def test_a_failure_names_its_pattern_its_wheels_with_their_lineage_and_what_was_tried_after(store: Store) -> None:
    ladder = [{"launch": "half", "rung": "device_batch"}, {"launch": "short", "rung": "sequence_length"}]
    failed = {path.replace(".", "__"): value for path, value in week.OOM.items()}
    failed["failure"] = {**week.OOM["failure"], "ladder": ladder}
    week.put(store, [week.launch("too much", 1, **failed, wheels__transformer_engine="2.12.0")])
    (cause,) = week.report(store).sections.failures.causes
    assert cause.models == ("AEMEAEMEAEMR to depth 52",)
    assert cause.attempts == ("device batch: half", "sequence length: short")
    (software,) = cause.software
    assert software.startswith("torch 2.12.0.dev20260409+cu132, transformer_engine 2.12.0")
    assert "neither documented nor validated; nearest " in software
    assert "transformer_engine 2.12.0 (there 2.13" in software


def test_failures_of_one_launch_stand_in_the_order_of_the_ladder(store: Store) -> None:
    failed = {path.replace(".", "__"): value for path, value in week.OOM.items()}
    shapes = [(2, 4096), (16, 4096), (8, 4096), (2, 512), (2, 2048)]
    for micro, length in shapes:
        leaves = {**failed, "batch__micro_batch": micro, "batch__sequence_length": length}
        week.put(store, [week.launch(f"m{micro}l{length}x", 1, **leaves)])
    causes = week.report(store).sections.failures.causes
    ordered = [(cause.micro_batch, cause.sequence_length) for cause in causes]
    assert ordered == [(16, 4096), (8, 4096), (2, 4096), (2, 2048), (2, 512)]
