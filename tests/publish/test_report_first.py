"""The first screen of a report: what it says, where it leads, and that every form of the page has the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import rule_cases as cases
import section_store as week
from receipts.base.errors import ResourceError
from receipts.cli import main
from receipts.publish.page import Cell, Link
from receipts.publish.page import text as as_text
from receipts.publish.report.functions import days
from receipts.publish.report.render import first_screen, page, render
from receipts.publish.report.template import environment
from receipts.questions.week.collect import WeekData
from receipts.questions.week.data import cut
from receipts.receipt import Parsed
from receipts.store import Store, open_store

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as made:
        yield made


def cells(data: WeekData, topic: str) -> tuple[Cell, ...]:
    sections = first_screen(data, cases.rulebook().rules).sections
    return dict(point for section in sections for point in section.points).get(topic, ())


def said(data: WeekData, topic: str) -> list[str]:
    return [as_text(cell, signs=True) for cell in cells(data, topic)]


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
    (sentence,) = said(week.report(store), "new best")
    assert re.fullmatch(
        r"nvidia-megatron: newer is a new best of hybrid NAM56R, 4,096 tokens, 8 × h200-sxm: "
        r"\+8\.\d\d % over older; 3 launches\.",  # ten days apart: no interval
        sentence,
    )


def test_what_took_the_frontier_by_many_axes_is_said_to_have_no_cause(store: Store) -> None:
    other = {"numerics.learning_rate": 5, "parallelism.bucket_bytes": week.BUCKETS}
    week.put(store, [*week.side("older", -9, 2.5, other), *week.side("newer", 1, 2.3)])
    (sentence,) = said(week.report(store), "new best")
    assert sentence.endswith("older; 2 settings changed between them, so none is its cause; 3 launches.")


def test_a_frontier_that_did_not_move_and_a_lane_without_one_are_named(store: Store) -> None:
    week.put(store, [*week.side("older", -9, 2.3), week.launch("slower", 1, 2.5), tpu("syncs", **SYNCS)])
    data = week.report(store)
    assert (said(data, "new best"), said(data, "did not move")) == ([], ["nvidia-megatron."])
    assert said(data, "fastest")[-1] == "No rate that counts: tpu-torch-xla."


def test_the_first_of_a_kind_is_no_news(store: Store) -> None:
    week.put(store, [week.launch("alone", 1)])
    data = week.report(store)
    assert (said(data, "new best"), said(data, "accepted")) == ([], [])
    files = render(data, cases.rulebook().rules)
    assert "accepted result" not in files["report.md"].decode()
    assert "first of" not in files["report.md"].decode()


def test_the_screen_says_what_was_accepted_lost_and_failed_and_what_is_next(store: Store) -> None:
    week.put(
        store, [*week.local_gain(), *week.at_target(2.31), *week.side("older", -9, 2.5, {"numerics.learning_rate": 5})]
    )
    week.put(store, [week.known_failure(-9, "a"), week.known_failure(2, "b"), tpu("syncs", **SYNCS)])
    shown = first_screen(week.report(store), cases.rulebook().rules)
    first, leaders = shown.sections
    assert [topic for topic, _ in first.points if topic != "none of"] == ["accepted", "lost", "failed", "next"]
    assert [topic for topic, _ in leaders.points] == ["new best", "fastest"]
    assert len(shown.badges) == 5
    assert as_text(shown.headline).startswith(
        "bucket bytes 40000000 → 80000000 is 11.1 % faster on nvidia-megatron. 1 of 3 "
    )


def test_the_first_tile_is_the_news_or_what_ran(store: Store) -> None:
    week.put(store, [week.launch("alone", 1)])
    (ran, *_, failed) = first_screen(week.report(store), cases.rulebook().rules).badges
    assert (ran.value, ran.label, failed.value) == ("1", "run: 1 valid, 0 open, 0 invalid", "0")
    week.put(store, week.local_gain())
    news, accepted, *_ = first_screen(week.report(store), cases.rulebook().rules).badges
    assert (news.value, accepted.value) == ("+11.1 %", "1")


def test_a_substrate_is_never_the_headline_and_a_lane_with_targets_leads_with_them(store: Store) -> None:
    week.put(store, week.side("small", 1, 2.3, week.LOCAL))
    (lane,) = week.report(store).lanes
    assert (lane.leaders, [item.standing for item in lane.frontier]) == ((), ["proven"])
    assert said(week.report(store), "fastest") == [
        "nvidia-megatron: no rate at NAM56R production, where its claims must hold."
    ]
    week.put(store, week.side("target", 2, 2.3))
    (sentence,) = said(week.report(store), "fastest")
    assert sentence.startswith("nvidia-megatron, ✓ proven: target, 14,")


def test_rates_of_several_lanes_are_never_in_one_line(store: Store) -> None:
    week.put(store, [tpu("fast"), *week.side("slow", 1, 3.9)])
    badges = first_screen(week.report(store), cases.rulebook().rules).badges
    assert not [item for item in badges if "tokens/s/chip" in item.label]


def test_the_headline_is_a_mean_within_its_interval_and_the_best_launch_only_a_peak(store: Store) -> None:
    week.put(store, [week.launch(f"many-{at}", 1 + at / 24, 2.3 * (1.0 + 0.01 * (at % 3))) for at in range(9)])
    week.put(store, [week.launch("lucky-1", 2, 1.9, **FASTER), week.launch("lucky-2", 2.1, 3.4, **FASTER)])
    data = week.report(store)
    (lane,) = data.lanes
    (held,), (peak,) = lane.frontier, lane.peaks
    assert (held.standing, held.launches, held.sessions) == ("proven", 9, 1)
    assert held.low is not None
    assert held.low < (held.tokens_per_second_per_chip or 0) < (held.high or 0)
    assert (held.fastest_rate or 0) > (held.high or 0)
    assert (peak.standing, peak.launches, peak.receipt.name) == ("peak", 2, "lucky")
    assert said(data, "fastest")[1].endswith("best of 2 launches.")
    page = as_text_of(render(data, cases.rulebook().rules)["report.md"].decode())
    assert re.search(r"9 launches, 95 % [\d,]+ to [\d,]+; best of them", page)


def as_text_of(markdown: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)


def test_two_launches_far_apart_are_not_proven(store: Store) -> None:
    week.put(store, [week.launch("one", 1, 2.3), week.launch("two", 1.1, 3.335)])
    data = week.report(store)
    (held,) = data.lanes[0].frontier
    assert held.standing == "unsettled"
    (sentence,) = said(data, "fastest")
    assert sentence.startswith("nvidia-megatron, ? not settled: two")
    assert any("with a 95 % interval wider than ±5 %" in line for line in said(data, "next"))


def test_what_is_fastest_stands_proven_beside_reported(store: Store) -> None:
    unseen = {"path__witnessed": None, "evidence": None, "numerics__recompute_applied": None}
    week.put(store, [*week.side("proven", 1, 2.3), week.launch("reported", 2, 2.0, **unseen)])
    first, second = said(week.report(store), "fastest")
    assert first.startswith("nvidia-megatron, ✓ proven: proven, 14,")
    assert second.startswith("nvidia-megatron, ? reported, not proven: reported, 16,")


FASTER = {"numerics__learning_rate": 5}


def test_a_faster_single_launch_is_a_peak_beside_the_repeated_headline(store: Store) -> None:
    week.put(store, [*week.side("ceiling", 1, 2.3), week.launch("record", 2, 2.0, **FASTER)])
    data = week.report(store)
    headline, peak = said(data, "fastest")
    assert headline.startswith("nvidia-megatron, ✓ proven: ceiling, 14,")
    assert headline.endswith(", 3 launches.")
    assert peak.startswith("nvidia-megatron, ? peak, not repeated: record, 16,")
    table = render(data, cases.rulebook().rules)["report.md"].decode()
    assert re.search(r"^\| \? peak \| \[?16,", table, re.MULTILINE)
    assert re.search(r"^\| ✓ proven \| \[?14,", table, re.MULTILINE)
    (step,) = [line for line in said(data, "next") if "record" in line]
    assert step.startswith("Repeat record, on the frontier of nvidia-megatron by one launch. receipts repro ")


def test_what_no_script_repeats_is_to_be_stated_first(store: Store) -> None:
    week.put(store, [week.launch("bare", 2, 1.9, numerics__seed=None)])
    (step,) = [line for line in said(week.report(store), "next") if "bare" in line]
    assert step.startswith("See what is not stated of bare, on the frontier of nvidia-megatron by one launch. ")


def test_a_peak_moves_no_frontier_until_it_is_repeated(store: Store) -> None:
    week.put(store, [*week.side("older", -9, 2.3), week.launch("record", 1, 2.0, **FASTER)])
    assert said(week.report(store), "new best") == []
    week.put(store, [week.launch("record-2", 2, 2.01, **FASTER)])
    (sentence,) = said(week.report(store), "new best")
    assert sentence.startswith("nvidia-megatron: record is a new best")
    assert sentence.endswith("over older; 2 launches in 2 sessions.")


def test_a_repeated_result_is_sought_beyond_many_faster_peaks_of_earlier_weeks(store: Store) -> None:
    peaks = [week.launch(f"peak {index}", -9 - index, 2.0, numerics__learning_rate=10 + index) for index in range(6)]
    week.put(store, [*week.side("ceiling", -9, 2.3), *peaks, week.launch("slow", 1, 2.9, **FASTER)])
    headline, peak = said(week.report(store), "fastest")
    assert headline.startswith("nvidia-megatron, ✓ proven: ceiling, 14,")
    assert "peak, not repeated: peak" in peak


SYNCS = {"path__witnessed__host_transfers_per_step": 1.0}


def test_lanes_stand_by_their_names_each_for_itself_whatever_is_faster(store: Store) -> None:
    week.put(store, [tpu("fast"), week.launch("slow", 1, 3.9)])
    data = week.report(store)
    assert [line.partition(",")[0] for line in said(data, "fastest")] == ["nvidia-megatron", "tpu-torch-xla"]
    for sentence in said(data, "fastest"):
        assert ("nvidia" in sentence) != ("tpu" in sentence)


def test_accepted_changes_stand_with_interval_and_refused_ones_with_their_rule_and_what_moved(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.side("both", 3, 2.0, {**week.LOCAL, **BOTH})])
    data = week.report(store)
    accepted = said(data, "accepted")
    assert any(
        line.startswith(
            "nvidia-megatron: parallelism.bucket_bytes 40000000 → 80000000 is faster, tokens/s +11.07 % (95 %: "
        )
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
    (rejected,) = said(week.report(store), "lost")
    assert re.search(r"^✗ \d+ rejected: .*1 left path \(R302\)", rejected)
    assert "receipts compare " in rejected


BOTH = {"numerics.learning_rate": 9}
LONG = {path.replace(".", "__"): value for path, value in week.LOCAL.items()}


def test_the_remedy_of_the_worst_incident_comes_first_in_what_to_do(store: Store) -> None:
    week.put(store, [tpu("one", **SYNCS), tpu("two", **SYNCS, numerics__learning_rate=3)])
    first, *_ = said(week.report(store), "next")
    assert re.match(r"Keep values on the device.*: \w+ and 1 more \(R303\)\. receipts show [0-9a-f]{12}", first)


def test_a_place_by_one_launch_is_to_be_repeated_and_one_by_three_is_not(store: Store) -> None:
    week.put(store, [week.launch("alone", 1)])
    assert any("alone, on the frontier of nvidia-megatron by one launch" in line for line in next_steps(store))
    week.put(store, [week.launch("alone2", 1.1, 2.301), week.launch("alone3", 1.2, 2.299)])
    assert not any("by one launch" in line for line in next_steps(store))


def next_steps(store: Store) -> list[str]:
    return said(week.report(store), "next")


def test_a_gain_that_vanished_is_told_with_both_numbers(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    sentence, *_ = said(week.report(store), "lost")
    assert sentence.startswith(
        "nvidia-megatron: parallelism.bucket_bytes 40000000 → 80000000 gained +11.07 % at 8 chips"
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
    cause, again = said(data, "failed")
    assert cause.startswith("Out of memory: again, 4,096 tokens × micro batch 8, 8 × h200-sxm. receipts show ")
    assert again == "1 launch repeated a known failure, for 20.0 minutes."
    assert "Stale: buckets, quoted in README.md." in said(data, "lost")
    assert "Mend README.md: quoting a stale claim. receipts claim show buckets" in said(data, "next")


@pytest.mark.slow
def test_page_and_markdown_say_the_same_and_every_link_leads_somewhere(store: Store) -> None:
    week.put(
        store, [*week.local_gain(), *week.at_target(2.31), week.known_failure(-9, "a"), week.known_failure(2, "b")]
    )
    data = week.report(store)
    files = {name: made.decode() for name, made in render(data, cases.rulebook().rules).items()}
    html = files["index.html"]
    shown = re.sub("<[^>]*>|\\s+", "", html)
    for _, sentences in first_screen(data, cases.rulebook().rules).sections[0].points:
        for sentence in sentences:
            assert re.sub("\\s", "", as_text(sentence, signs=True)) in shown
            for link in (part for part in sentence if isinstance(part, Link)):
                assert f'id="{link.anchor}"' in html
                assert f"](#{link.anchor})" in files["report.md"]
    assert html.index('id="summary"') < html.index('id="lane-nvidia-megatron"')


def test_many_lanes_have_a_sentence_each_and_say_how_many_more_there_are(store: Store) -> None:
    old = {"numerics.learning_rate": 5}
    week.put(store, [*week.side("a", -9, 2.9, old), *week.side("b", -8, 2.9, {**week.LOCAL, **old})])
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    data = week.report(store)
    (lane,), (drawn,) = data.lanes, data.courses.values()
    assert len(said(data, "new best")) == 2
    names = [f"lane-{index}" for index in range(4)]
    many = replace(
        data,
        lanes=tuple(replace(lane, name=name) for name in names),
        courses=dict.fromkeys(names, drawn),
    )
    told = said(many, "new best")
    assert [line.partition(":")[0] for line in told] == [name for name in names for _ in range(2)]
    assert told[1::2] == [f"{name}: 1 more new best." for name in names]


def test_one_remedy_of_many_findings_is_asked_for_once(store: Store) -> None:
    week.put(store, [tpu("one", path__witnessed__host_transfers_per_step=1.0)])
    week.put(store, [tpu("two", path__witnessed__host_transfers_per_step=2.0, numerics__learning_rate=3)])
    data = week.report(store)
    (incident,) = (item for item in data.sections.offenses if item.code == "R303")
    assert len(incident.seen) == 2
    assert len([line for line in said(data, "next") if "R303" in line]) == 1


def test_a_change_that_was_accepted_at_several_shapes_is_told_once(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.07)])
    data = week.report(store)
    assert len(data.lanes[0].accepted) == 2
    told = said(data, "accepted")
    assert len([line for line in told if "bucket_bytes 40000000 → 80000000" in line]) == 1
    assert told[-1] == "And 1 more."


def test_undecided_comparisons_count_in_full_and_not_those_that_are_shown(store: Store) -> None:
    stated = {"measurement__step_durations_seconds": None, "measurement__stated": {"step_seconds": 2.0}}
    rates = [{"numerics__learning_rate": float(index), **stated} for index in range(16)]
    week.put(store, [week.launch(f"rate {index}", index / 9, **leaves) for index, leaves in enumerate(rates)])
    data = week.report(store)
    (lane,) = data.lanes
    total = lane.inconclusive.total
    assert total > len(lane.inconclusive) == 12
    waiting = {item.code: item.pairs for item in lane.waiting}
    assert waiting["R205"] == total
    assert any(f"missing in {total} of {total} undecided comparisons" in line for line in said(data, "next"))


def test_an_interval_of_whole_days_is_read_with_its_last_day(store: Store) -> None:
    week.put(store, week.local_gain())
    since, until = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 9, tzinfo=UTC)
    data = replace(week.report(store), week="2026-03-02/2026-03-09", since=since, until=until)
    assert days(data) == "2026-03-02 to 2026-03-08, UTC"
    assert days(replace(data, until=until.replace(hour=9))) == "2026-03-02 00:00 to 2026-03-09 09:00, UTC"


def test_undecided_comparisons_come_by_size(store: Store) -> None:
    stated = [
        {
            "numerics__learning_rate": float(index),
            "measurement__step_durations_seconds": None,
            "measurement__stated": {"step_seconds": 2.0 + index * index / 50},
        }
        for index in range(6)
    ]
    week.put(store, [week.launch(f"rate {index}", index / 9, **leaves) for index, leaves in enumerate(stated)])
    (lane,) = week.report(store).lanes
    sizes = [abs((item.ratio or 1.0) - 1.0) for item in lane.inconclusive if item.comparable == "yes"]
    assert len(sizes) > 3
    assert sizes == sorted(sizes, reverse=True)


def test_the_first_screen_is_printed_to_be_pasted_and_nothing_is_written(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week.put(store, [*week.local_gain(), week.known_failure(2, "oom")])
    words = [
        "--store",
        str(tmp_path / "store.sqlite"),
        "report",
        "weekly",
        "--week",
        week.WEEK,
        "--out",
        str(tmp_path / "o"),
    ]
    assert main([*words, "--first-screen", "text"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Frontier report 2026-W10 · Monday 2026-03-02 to Sunday 2026-03-08, UTC\n+11.1 % ")
    assert "1 failed of 7 runs" in text
    assert "parallelism.bucket_bytes 40000000 → 80000000 is faster" in text
    assert main([*words, "--first-screen", "markdown"]) == 0
    marked = capsys.readouterr().out
    assert "- **accepted**: nvidia-megatron: `parallelism.bucket_bytes` 40000000 → 80000000 is faster" in marked
    assert "](#" not in marked
    assert not (tmp_path / "o").exists()
    assert main([*words, "--first-screen", "text", "--json"]) == 2
    assert "leave one out" in capsys.readouterr().err


def test_a_person_may_edit_the_sentences_and_a_template_that_is_wrong_is_named(store: Store, tmp_path: Path) -> None:
    week.put(store, [week.launch("alone", 1)])
    data = week.report(store)
    rules = cases.rulebook().rules
    (tmp_path / "weekly").mkdir()
    own = tmp_path / "weekly" / "next.j2"
    own.write_text("{% for lane in data.lanes %}\n- See {{ at(lane, 'frontier') }}.\n{% endfor %}\n", encoding="utf-8")
    (sentence,) = dict(first_screen(data, rules, (tmp_path,)).sections[0].points)["next"]
    assert sentence == ("See ", Link("nvidia-megatron", "lane-nvidia-megatron-frontier"), ".")
    for text, fault in {
        "- fine\n{{ data.nothing }}": r"next\.j2, line 2",
        "- {{ data.lanes[0] | nothing }}": r"No filter named 'nothing'.*next\.j2, line 1",
        "*pairs*\n{{ columns('A | B') }}\n| one": "table 'pairs': a row of 1 cells under 2 columns",
    }.items():
        own.write_text(text, encoding="utf-8")
        environment.cache_clear()
        with pytest.raises(ResourceError, match=fault):
            first_screen(data, rules, (tmp_path,))


def test_effects_are_drawn_once_and_where_comparisons_are(store: Store) -> None:
    week.put(store, [*week.local_gain(), *week.at_target(2.31)])
    data = week.report(store)
    (lane,) = data.lanes
    bounded = [item for item in (*lane.accepted, *lane.inconclusive) if item.low is not None]
    for held, left, where in ((bounded, [], "accepted"), ([], bounded, "inconclusive")):
        moved = replace(lane, accepted=cut(held * 2, 9), inconclusive=cut(left * 2, 9))
        sections = page(replace(data, lanes=(moved,)), cases.rulebook().rules).sections
        (shown,) = (item for item in sections if item.id == f"lane-{lane.name}")
        plotted = [part.id for part in shown.sections for figure in part.figures if figure.id.endswith("-effects")]
        assert plotted == [f"lane-{lane.name}-{where}"]
        assert all(part.tables for part in shown.sections if part.figures)


def test_no_value_is_read_as_a_sign_of_a_template(store: Store, tmp_path: Path) -> None:
    week.put(store, [week.launch("alone", 1, run__label="| a #b *c*\n- [d](#e) `f` \\")])
    (tmp_path / "weekly").mkdir()
    own = tmp_path / "weekly" / "next.j2"
    own.write_text(
        "- one \\\ntwo\n\n*t*\n{{ columns('A | B') }}\n{% for item in data.lanes[0].frontier %}\n", encoding="utf-8"
    )
    with own.open("a", encoding="utf-8") as file:
        file.write("| {{ item.receipt.name }} | {{ item.receipt | receipt }}\n{% endfor %}\n\n{{ '' }}\n")
    summary = first_screen(week.report(store), cases.rulebook().rules, (tmp_path,)).sections[0]
    assert dict(summary.points)["next"] == (("one two",),)
    (table,) = summary.tables
    assert [as_text(cell) for cell in table.rows[0].cells] == ["| a #b *c* - [d](#e) `f` \\"] * 2
    assert table.after == ()


def test_no_label_can_take_the_place_of_a_part(store: Store) -> None:
    hostile = "\0deadbeef-0\0 {{ 7 * 7 }} [x](y)"
    week.put(store, [week.launch("alone", 1, run__label=hostile)])
    (sentence,) = said(week.report(store), "fastest")
    assert "{{ 7 * 7 }} [x](y), 14," in sentence
    assert "\0" not in sentence
