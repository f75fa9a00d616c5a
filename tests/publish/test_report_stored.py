"""What a report takes from the store as it is, and that it says what judging everything anew would say."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import report_store as week
import rule_cases as cases
from receipts.base.errors import UsageError
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import ReceiptVerdict
from receipts.metrics.chips import account
from receipts.questions.week.collect import WeekData, collect
from receipts.questions.week.interval import TimeRange, Week, asked, moment
from receipts.questions.week.links import Configurations
from receipts.questions.week.memory import left_of
from receipts.questions.week.reader import ReportReader, may_reuse, without_asking
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.workflows.submit import submit
from thorough import unless_thorough

pytestmark = pytest.mark.slow

BOOK = cases.rulebook()
EVER = datetime(2030, 1, 1, tzinfo=UTC)


def put(store: Store, receipts: Sequence[Parsed]) -> None:
    done = list(submit([Document(item.raw, item.source) for item in receipts], store, BOOK))
    assert all(item.stored for item in done), [str(item.error) for item in done]


def measured(name: str, steps: dict[str, Any] | None = None, **changes: Any) -> Parsed:
    """A launch that saw nothing of its path."""
    table: dict[str, Any] = {
        "set": {"run.launch": name, "run.label": name, **changes},
        **({"steps": steps} if steps else {}),
    }
    tree = cases.build(table, "megatron")
    for path in ("path.witnessed", "evidence", "numerics.recompute_applied"):
        cases.take(tree, path)
    return cases.parsed(tree)


def profiled(name: str, target: str, **changes: Any) -> Parsed:
    """A launch that saw the path of another one, or of none that is known."""
    own = {"run.launch": name, "run.label": name, "run.kind": "profile", "run.witness_for": target}
    tree = cases.build({"steps": {"count": 40, "seconds": 9.0}, "set": {**own, **changes}}, "megatron")
    for path in ("measurement.goodput", "measurement.step_flags"):
        cases.take(tree, path)
    return cases.parsed(tree)


def _again(name: str, why: str) -> dict[str, Any]:
    return {"run.supersedes": {"target": name, "reason": why}}


FIRST = measured("first")
POOL = (
    FIRST,
    measured("second", None, **{"batch.micro_batch": 2, "batch.accumulation": 4}),
    measured("first", None, **{"run.host": "another"}, **_again("first", "the clock was wrong")),
    measured("third"),
    profiled("profile", "first"),
    profiled("profile by id", FIRST.id),
    profiled("another profile", "first", **{"run.host": "another"}),
    profiled("stranger", "first", **{"batch.micro_batch": 2, "batch.accumulation": 4}),
    profiled("early", "second"),
    profiled("nobody's", "nobody"),
    *week.launches("a", 2),
    *week.one("d", {**week.day(6), **week.OOM, "run.label": "micro batch 64"}, {"count": 3}),
    *week.one("e", {**week.day(7), **week.OOM, "run.label": "micro batch 64 again"}, {"count": 4}),
)


def anew(reader: ReportReader, store: Store) -> Iterator[tuple[ReceiptVerdict, ReceiptVerdict]]:
    """The report's verdict and the one that judging now gives, for each receipt that stands."""
    for row in reader.rows:
        if row.stands:
            item = reader.item(row)
            own = store.query.facts([item.parsed])
            facts = replace(
                item.facts,
                failures=tuple(store.query.failed_before(item.parsed)),
                at_once=own.at_once,
                resumed=own.resumed,
            )
            fresh = judge_receipt(item.parsed, item.lane, BOOK.rules, facts, prove=False)
            asked = judge_receipt(item.parsed, item.lane, BOOK.rules, own, prove=False)
            assert (fresh.status, fresh.path, fresh.witnesses) == (asked.status, asked.path, asked.witnesses)
            yield item.verdict, without_asking(fresh, BOOK.rules)


@settings(max_examples=unless_thorough(15, 40))
@given(seed=st.integers(0, 10**6), data=st.data())
def test_a_reused_verdict_is_what_judging_anew_gives(
    seed: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever came in, in whatever order and batches, and whatever was retracted since."""
    order = data.draw(st.permutations(range(len(POOL))))
    kept = [POOL[at] for at in order[: data.draw(st.integers(1, len(POOL)))]]
    draw = random.Random(seed)
    with open_store(str(tmp_path_factory.mktemp("reuse") / "store.sqlite")) as store:
        at = 0
        while at < len(kept):
            size = draw.choice((1, 1, 2, 4))
            list(submit([Document(item.raw, item.source) for item in kept[at : at + size]], store, BOOK))
            at += size
        for row in list(store.find()):
            if draw.random() < 0.15:
                store.retract(row.id, "a whim")
        for told, fresh in anew(ReportReader(store, BOOK, EVER), store):
            assert told == fresh


def test_what_cannot_have_changed_is_not_judged_again(tmp_path: Path) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.everything())
    made = collect(store, BOOK, Week.parse(week.WEEK), moment(week.AS_OF))
    assert made.judged == 0
    assert made.counts.valid == 8


def test_a_witness_that_comes_later_has_its_launch_judged_again(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.sqlite")) as store:
        put(store, [FIRST])
        assert ReportReader(store, BOOK, EVER).item(store.entry(FIRST.id)).verdict.path == "unwitnessed"
        put(store, [profiled("profile", "first")])
        reader = ReportReader(store, BOOK, EVER)
        assert reader.item(store.entry(FIRST.id)).verdict.path == "witnessed"
        assert reader.judged == 1


def test_a_rule_set_that_is_not_the_one_in_force_has_everything_judged(tmp_path: Path) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.launches("a", 3))
    other = Rulebook()
    vars(other)["rules"] = RuleSet(other.rules.rules, "0" * 64)
    reader = ReportReader(store, other, EVER)
    assert {item.verdict.rules for item in reader.items(reader.rows)} == {"0" * 64}
    assert reader.judged == 3


def test_a_rule_of_ones_own_that_asks_the_store_has_everything_judged(tmp_path: Path) -> None:
    own = Rulebook()
    (known,) = (item for item in own.rules.rules if item.code == "R414")
    mine = replace(known, code="Z901", name="mine", asks_store=False)
    vars(own)["rules"] = RuleSet((*own.rules.rules, mine), own.rules.digest)
    assert may_reuse(BOOK)
    assert not may_reuse(own)
    store = week.fill(tmp_path / "store.sqlite", week.launches("a", 2))
    reader = ReportReader(store, own, EVER)
    reader.items(reader.rows)
    assert reader.judged == 2


def test_a_verdict_that_was_stored_by_another_judge_is_given_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.launches("a", 1))
    monkeypatch.setattr("receipts.questions.week.reader.VERSION", "2")
    made = ReportReader(store, BOOK, EVER)
    made.items(made.rows)
    assert made.judged == 1


def told(store: Store, rulebook: Rulebook = BOOK, name: str = week.WEEK) -> WeekData:
    return collect(store, rulebook, Week.parse(name), moment(week.AS_OF))


def test_both_engines_give_the_same_report(store_url: str, tmp_path: Path) -> None:
    receipts = [*week.everything(), *week.one("t", {**week.day(1), "run.label": "last week"}, {"seconds": 0.9}, 2)]
    other = week.fill(tmp_path / "other.sqlite", receipts)
    with open_store(store_url) as store:
        put(store, receipts)
        made = told(store)
        assert replace(made, store="") == replace(told(other), store="")
        assert made.lanes[0].frontier[0].change is not None


def test_only_what_is_shown_or_compared_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = [
        item
        for at in range(12)
        for item in week.one(
            f"h{at}",
            {**week.day(1), "run.label": f"h{at}", "run.context": f"h{at}"},
            {"seconds": 2.0},
        )
    ]
    store = week.fill(tmp_path / "store.sqlite", [*week.launches("a", 3), *earlier])
    read: list[str] = []
    document = Store.document

    def seen(self: Store, name: str) -> bytes:
        read.append(name)
        return document(self, name)

    monkeypatch.setattr(Store, "document", seen)
    made = told(store)
    described = {item.receipt.id for item in made.receipts}
    assert set(read) <= described
    assert len(set(read)) < len(earlier)


def test_a_faster_launch_whose_witness_came_later_leads_the_frontier(tmp_path: Path) -> None:
    slow = cases.parsed(cases.build({"set": {"run.launch": "slow", **_hour("2026-02-20")}}, "megatron"))
    fast = measured("fast", {"seconds": _typical() * 0.98}, **_hour("2026-02-21"))
    with open_store(str(tmp_path / "store.sqlite")) as store:
        put(store, [slow, fast])
        assert _leads(store) == slow.id
        put(store, [profiled("profile", "fast", **_hour("2026-02-22"))])
        assert _leads(store) == fast.id


def _typical() -> float:
    return float(cases.build({}, "megatron")["measurement"]["stated"]["step_seconds"])


def _leads(store: Store) -> str:
    (lane,) = told(store).lanes
    return lane.frontier[0].receipt.id


def _hour(day: str) -> dict[str, str]:
    return {"run.started": f"{day}T09:00:00+00:00", "run.finished": f"{day}T09:30:00+00:00"}


# Since the week began


def test_the_frontier_says_what_the_week_did_to_it(tmp_path: Path) -> None:
    before = week.one("a", week.day(1), None, 3)
    faster = week.one("b", {**week.day(2), **week.THREADS}, {"seconds": 0.6}, 3)
    (best,) = told(week.fill(tmp_path / "better.sqlite", [*before, *faster])).lanes[0].frontier
    change = best.change
    assert change is not None
    assert (change.state, change.comparable, change.moved) == ("better", "yes", ("flags.OMP_NUM_THREADS",))
    assert change.was is not None
    assert change.was.id in {item.id for item in before}
    assert change.ratio == pytest.approx(0.8 / 0.6, rel=1e-3)
    assert (change.low, change.high) == (None, None), "they share no session, and nobody knows how far days lie apart"
    (same,) = told(week.fill(tmp_path / "same.sqlite", before)).lanes[0].frontier
    assert same.change is not None
    assert (same.change.state, same.change.ratio, same.in_week) == ("same", None, False)
    (new,) = told(week.fill(tmp_path / "new.sqlite", faster)).lanes[0].frontier
    assert new.change is not None
    assert (new.change.state, new.change.was) == ("new", None)


def test_a_faster_launch_of_what_leads_moves_no_frontier(tmp_path: Path) -> None:
    before = week.one("a", week.day(1))
    again = week.one("b", week.day(4), {"seconds": 0.79})
    (best,) = told(week.fill(tmp_path / "store.sqlite", [*before, *again])).lanes[0].frontier
    assert best.change is not None
    assert (best.change.state, best.change.ratio, best.launches) == ("same", None, 2)
    assert best.tokens_per_second_per_chip == pytest.approx(4096 / (0.8 * 0.79) ** 0.5, rel=0.01)


# Neighbours


def test_launches_are_grouped_by_the_index_as_by_their_documents(tmp_path: Path) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.everything())
    groups = []
    for indexed in (True, False):
        reader = ReportReader(store, BOOK, EVER)
        every = Configurations(reader)
        if not indexed:
            every._held = dict.fromkeys(("cpu-torch",), False)
        made = every.group(reader.items(reader.rows))
        groups.append([[item.entry.id for item in one.launches] for one in made])
    assert groups[0] == groups[1]


def test_a_report_without_the_index_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.everything())
    with_index = told(store)
    monkeypatch.setattr("receipts.store.store.Queries.holds_lane", lambda *_: False)
    assert told(store).lanes == with_index.lanes


def test_a_configuration_is_compared_with_the_pin_of_its_lane(tmp_path: Path) -> None:
    baseline = week.one("a", {**week.day(1), "run.context": "baseline", "model.name": "x", "run.label": "x1"}, None, 2)
    far = week.one(
        "c", {**week.day(5), "model.depth": 10, "model.hidden": 320, "numerics.learning_rate": 5, "run.label": "y1"}
    )
    store = week.fill(tmp_path / "store.sqlite", [*baseline, *far])
    assert told(store).compared == 0
    store.pin("baseline", baseline[0].id)
    made = told(store)
    assert made.compared == 1
    assert baseline[0].id in {ref.id for pair in made.lanes[0].refused for ref in pair.a}


def test_configurations_beyond_the_cap_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.everything())
    whole = told(store).lanes[0]
    assert whole.uncompared == 0
    monkeypatch.setattr("receipts.questions.week.pairs.MAX_CONFIGURATIONS", 2)
    cut = told(store).lanes[0]
    assert (cut.configurations, cut.uncompared) == (whole.configurations, whole.configurations - 2)
    # What moved the frontier is looked at before all else.
    assert [item.effect for item in cut.accepted] == ["faster"]


def test_a_recorded_copy_of_a_launch_is_no_second_one(tmp_path: Path) -> None:
    (one,) = week.launches("a", 1)
    tree = json.loads(one.raw)
    tree["run"]["launch"] = "the same again"
    faster = week.one("b", {**week.day(2), **week.THREADS}, {"seconds": 0.6}, 3)
    (lane,) = told(week.fill(tmp_path / "copy.sqlite", [one, cases.parsed(tree), *faster])).lanes
    sides = {len(item.a) for item in (*lane.accepted, *lane.inconclusive)}
    assert sides == {1}


# Memory


@pytest.mark.parametrize("base", ["cpu", "megatron", "tpu"])
def test_what_the_tightest_chip_keeps_is_read_off_the_document_as_the_account_reads_it(base: str) -> None:
    tree = cases.build({}, base)
    draw = random.Random(base)
    rows = tree["memory"]["chips"]
    for _ in range(60):
        for row in rows:
            for name in ("peak_bytes", "bytes_limit"):
                row.pop(name, None)
                if draw.random() < 0.8:
                    row[name] = draw.randrange(0 if name == "bytes_limit" else 1, 2**34)
        tree["memory"]["chips"] = [*rows, *draw.sample(rows, draw.randrange(len(rows) + 1))]
        one = cases.parsed(tree)
        made, left = account(one), left_of(one.raw)
        if made.worst("peak") is None:
            assert left is None
        else:
            assert left is not None
            assert left.share == (made.tightest.left if made.tightest is not None else None)


# Intervals


def test_any_interval_may_be_asked_for(tmp_path: Path) -> None:
    store = week.fill(tmp_path / "store.sqlite", week.everything())
    span = asked(None, "2026-03-04", "2026-03-05", moment(week.AS_OF))
    assert (str(span), span.until - span.since) == ("2026-03-04/2026-03-06", timedelta(days=2))
    made = collect(store, BOOK, span, moment(week.AS_OF))
    assert (made.counts.submitted, made.week) == (1, str(span))
    whole = TimeRange(Week.parse(week.WEEK).since, Week.parse(week.WEEK).until)
    assert replace(collect(store, BOOK, whole, moment(week.AS_OF)), week=week.WEEK) == told(store)


def test_an_interval_ends_with_as_of_unless_it_is_told() -> None:
    at = moment("2026-03-08T20:00:00Z")
    span = asked(None, "2026-03-01T10:00Z", None, at)
    assert span.since <= at < span.until <= at + timedelta(microseconds=1)
    assert asked(None, None, None, at) == Week.parse("2026-W10")
    assert str(asked(None, "2026-03-01T10:00Z", "2026-03-01T10:30:30Z", at)) == (
        "2026-03-01T10:00Z/2026-03-01T10:30:30Z"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("2026-W10", "2026-03-01", None),
        (None, None, "2026-03-01"),
        (None, "2026-03-02", "2026-03-01"),
        (None, "soon", None),
    ],
)
def test_what_is_no_interval_is_refused(words: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(UsageError, match=r"--week|--since|--until"):
        asked(*words, moment(week.AS_OF))
