"""The few sentences above a report: what they say, where they lead, and that every form of the page has the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import rule_cases as cases
import section_store as week
from receipts.publish.report import WeekData, render
from receipts.publish.report.page import Link
from receipts.publish.report.summary import summary
from receipts.receipt import Parsed
from receipts.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as made:
        yield made


def said(data: WeekData, topic: str) -> list[str]:
    return [point.says for point in data.summary if point.topic == topic]


def tpu(name: str, **leaves: object) -> Parsed:
    """A launch of the TPU lane in the week, with leaves set (``__`` for the dot)."""
    start = week.MONDAY + timedelta(days=1)
    values = {
        "run.launch": name,
        "run.label": name,
        "run.started": start.isoformat(),
        "run.finished": (start + timedelta(minutes=30)).isoformat(),
        **{path.replace("__", "."): value for path, value in leaves.items()},
    }
    return cases.parsed(cases.build({"set": values, "steps": {"seconds": 2.3, "seed": name}}, "tpu"), f"{name}.json")


def test_it_says_who_took_the_frontier_by_how_much_and_over_whom(store: Store) -> None:
    week.put(store, [*week.side("older", -9, 2.5, {"numerics.learning_rate": 5}), *week.side("newer", 1, 2.3)])
    (sentence,) = said(week.report(store), "frontier")
    assert re.fullmatch(
        r"nvidia-megatron: [0-9a-f]{12} newer took hybrid NAM56R, 4,096 tokens, 8 × h200-sxm: 14,2\d\d tokens/s/chip, "
        r"\+8\.\d\d % \(\+8\.\d\d to \+8\.\d\d\) over [0-9a-f]{12} older\.",
        sentence,
    )


def test_what_took_the_frontier_by_many_axes_is_said_to_have_no_cause(store: Store) -> None:
    other = {"numerics.learning_rate": 5, "parallelism.bucket_bytes": week.BUCKETS}
    week.put(store, [*week.side("older", -9, 2.5, other), *week.side("newer", 1, 2.3)])
    (sentence,) = said(week.report(store), "frontier")
    assert sentence.endswith("older; 2 axes moved between them, so none is its cause.")


def test_a_frontier_that_did_not_move_and_a_lane_without_one_are_named(store: Store) -> None:
    week.put(store, [*week.side("older", -9, 2.3), week.launch("slower", 1, 2.5), tpu("syncs", **SYNCS)])
    assert said(week.report(store), "frontier") == [
        "Did not move: nvidia-megatron.",
        "No accepted result yet: tpu-torch-xla.",
    ]


SYNCS = {"path__witnessed__host_transfers_per_step": 1.0}


def test_lanes_stand_by_their_names_each_for_itself_whatever_is_faster(store: Store) -> None:
    week.put(store, [tpu("fast"), week.launch("slow", 1, 3.9)])
    data = week.report(store)
    assert [point.lane for point in data.summary if point.topic == "frontier"] == ["nvidia-megatron", "tpu-torch-xla"]
    for sentence in said(data, "frontier"):
        assert ("nvidia" in sentence) != ("tpu" in sentence)


def test_accepted_changes_stand_with_interval_and_refused_ones_with_their_rule_and_what_moved(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.side("both", 3, 2.0, {**week.LOCAL, **BOTH})])
    data = week.report(store)
    accepted = said(data, "accepted")
    assert any(
        line.startswith("nvidia-megatron: parallelism.bucket_bytes 40000000 → 80000000 is faster, tokens/s +11.10 % (")
        for line in accepted
    )
    week.put(
        store,
        [
            week.launch(
                "unfused", 2, path__witnessed__attention="unfused", parallelism__bucket_bytes=week.BUCKETS, **LONG
            )
        ],
    )
    (refused,) = said(week.report(store), "refused")
    assert "R302 left path (attention unfused)" in refused


BOTH = {"numerics.learning_rate": 9}
LONG = {path.replace(".", "__"): value for path, value in week.LOCAL.items()}


def test_incidents_are_counted_by_rule_and_their_remedy_comes_first_in_what_to_do(store: Store) -> None:
    week.put(store, [tpu("one", **SYNCS), tpu("two", **SYNCS, numerics__learning_rate=3), tpu("drift", **DRIFT)])
    data = week.report(store)
    assert said(data, "path") == ["Incidents: R303 host sync (2 launches), R305 lineage drift (1 launch)."]
    assert said(data, "next")[0].startswith("R303 host sync: keep values on the device")


DRIFT = {"wheels.libtpu": "0.0.21", "wheels.jax": "0.7.1", "wheels.jaxlib": "0.7.1"}


def test_a_place_by_one_launch_is_to_be_repeated_and_one_by_three_is_not(store: Store) -> None:
    week.put(store, [week.launch("alone", 1)])
    assert any("alone: on the frontier of nvidia-megatron by one launch" in line for line in next_steps(store))
    week.put(store, [week.launch("alone2", 1.1, 2.301), week.launch("alone3", 1.2, 2.299)])
    assert not any("by one launch" in line for line in next_steps(store))


def next_steps(store: Store) -> list[str]:
    return said(week.report(store), "next")


def test_a_gain_that_vanished_is_told_with_both_numbers(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    (sentence,) = said(week.report(store), "did not survive")
    assert sentence.startswith(
        "nvidia-megatron: parallelism.bucket_bytes 40000000 → 80000000 gained +11.10 % at 8 chips"
    )
    assert "at NAM56R production: −0." in sentence
    assert sentence.endswith("%, equivalent.")


def test_failures_that_were_known_cost_minutes_and_a_stale_claim_names_who_quotes_it(store: Store) -> None:
    week.put(store, [*week.local_gain(), week.known_failure(-9, "first"), week.known_failure(2, "again")])
    with week.clock(week.MONDAY - timedelta(days=3)):
        week.claim(store, "buckets", text="a tenth faster", quoted_in=["README.md"], **week.SPEEDUP)
    with week.clock(week.MONDAY + timedelta(days=2)):
        gone = next(entry for entry in store.find() if entry.label == "local buckets")
        store.retract(gone.id, "a wrong run")
        store.published.decide(gone.id, "drop", "the clock was wrong")
    data = week.report(store)
    assert said(data, "failures") == ["1 launch did not end well: 1 oom. 1 repeated a known failure, for 20.0 minutes."]
    assert said(data, "claims") == ["Stale: buckets, quoted in README.md."]
    assert any(line.endswith("local buckets: the clock was wrong") for line in said(data, "decisions"))
    assert "Mend README.md: quoting a stale claim." in said(data, "next")


@pytest.mark.slow
def test_page_markdown_and_json_say_the_same_and_every_link_leads_somewhere(store: Store) -> None:
    week.put(
        store, [*week.local_gain(), *week.at_target(2.31), week.known_failure(-9, "a"), week.known_failure(2, "b")]
    )
    data = week.report(store)
    files = {name: made.decode() for name, made in render(data, cases.rulebook().rules).items()}
    html = files["index.html"]
    told = json.loads(files["report.json"])["summary"]
    assert [item["says"] for item in told] == [point.says for point in data.summary]
    shown = re.sub("<[^>]*>|\\s+", "", html)
    for point in data.summary:
        assert re.sub("\\s", "", point.says) in shown
        for link in (part for part in point.parts if isinstance(part, Link)):
            assert f'id="{link.anchor}"' in html
            assert f"](#{link.anchor})" in files["report.md"]
    assert html.index('id="summary"') < html.index('id="lane-nvidia-megatron"')


def test_many_lanes_have_a_sentence_each_and_say_how_many_more_there_are(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    data = week.report(store)
    (lane,), (drawn,) = data.lanes, data.drawn.lanes.values()
    assert len(said(data, "frontier")) == 2
    names = [f"lane-{index}" for index in range(4)]
    many = replace(
        data,
        lanes=tuple(replace(lane, name=name) for name in names),
        drawn=replace(data.drawn, lanes=dict.fromkeys(names, drawn)),
    )
    told = [point.says for point in summary(many, cases.rulebook().rules) if point.topic == "frontier"]
    assert [line.partition(":")[0] for line in told] == [name for name in names for _ in range(2)]
    assert told[1::2] == [f"{name}: and 1 more shape." for name in names]


def test_one_remedy_of_many_findings_is_asked_for_once(store: Store) -> None:
    week.put(store, [tpu("one", path__witnessed__host_transfers_per_step=1.0)])
    week.put(store, [tpu("two", path__witnessed__host_transfers_per_step=2.0, numerics__learning_rate=3)])
    data = week.report(store)
    assert len([item for item in data.incidents if item.code == "R303"]) == 2
    assert len([line for line in said(data, "next") if line.startswith("R303")]) == 1


def test_a_change_that_was_accepted_at_several_shapes_is_told_once(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.07)])
    data = week.report(store)
    assert len(data.lanes[0].accepted) == 2
    told = said(data, "accepted")
    assert len([line for line in told if "bucket_bytes 40000000 → 80000000" in line]) == 1
    assert told[-1] == "nvidia-megatron: and 1 more."
