"""What the pictures of a report are drawn from: the course of each lane's frontier, and repeated launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import report_store as week
import rule_cases as cases
from receipts.cli import main
from receipts.metrics.registry import Taint
from receipts.publish.page import Figure, Link
from receipts.publish.report import frontier
from receipts.questions.week import frontier as week_frontier
from receipts.questions.week.collect import WeekData, collect
from receipts.questions.week.interval import Week, moment
from receipts.questions.week.reader import Item, ReportReader
from receipts.receipt import Document, Parsed
from receipts.store import Entry, Store, open_store
from receipts.workflows.submit import submit

pytestmark = pytest.mark.slow

END = datetime(2026, 3, 8, tzinfo=UTC)


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def launch(at: datetime, seconds: float, **changes: Any) -> Parsed:
    """One launch of the clean CPU receipt that ran at a moment with steps of this length."""
    values = {path.replace("__", "."): value for path, value in changes.items()}
    times = {"run.started": at.isoformat(), "run.finished": (at + timedelta(minutes=20)).isoformat()}
    name = f"{at:%m-%d}-{seconds}-{len(values)}"
    tree = cases.build(
        {"set": {**times, "run.launch": name, "run.label": name, **values}, "steps": {"seconds": seconds}}
    )
    return cases.parsed(tree, f"{name}.json")


def repeated(at: datetime, seconds: float, **changes: Any) -> list[Parsed]:
    """Three launches of one configuration, which its learning rate tells from those of other step times."""
    leaves = {"numerics__learning_rate": seconds, **changes}
    spread = enumerate((1.0, 1.001, 0.999))
    return [launch(at + timedelta(hours=hour), round(seconds * by, 6), **leaves) for hour, by in spread]


def fill_each(store: Store, *configurations: Sequence[Parsed]) -> WeekData:
    return fill(store, [item for held in configurations for item in held])


def fill(store: Store, receipts: Sequence[Parsed]) -> WeekData:
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, cases.rulebook()))
    refused = [str(item.error) for item in outcomes if not item.stored]
    assert not refused, refused
    return collect(store, cases.rulebook(), Week.parse(week.WEEK), moment(week.AS_OF))


def before(weeks: float, hour: float = 9) -> datetime:
    """So many weeks before the Wednesday of the report's week."""
    return datetime(2026, 3, 4, tzinfo=UTC) - timedelta(weeks=weeks) + timedelta(hours=hour)


def course(data: WeekData) -> week_frontier.LaneCourse:
    (found,) = data.courses.values()
    assert found is not None
    return found


def test_a_configuration_takes_the_frontier_only_where_it_beats_all_before(store: Store) -> None:
    data = fill_each(
        store,
        *(repeated(before(*when), seconds) for when, seconds in (((4,), 1.0), ((3,), 1.1), ((2,), 0.9), ((0,), 0.95))),
    )
    found = course(data)
    assert [item.week for item in found.taken] == ["2026-W06", "2026-W08"]
    assert [item.rate for item in found.taken] == sorted(item.rate for item in found.taken)
    assert len(found.marks) == 12


def test_the_last_that_took_it_is_the_frontier_of_the_table(store: Store) -> None:
    data = fill_each(store, repeated(before(2), 1.0), repeated(before(1), 0.8), repeated(before(0), 0.7))
    (lane,) = data.lanes
    assert course(data).taken[-1].receipt == lane.frontier[0].receipt
    assert course(data).taken[-1].rate == pytest.approx(lane.frontier[0].tokens_per_second_per_chip)


def test_one_launch_takes_nothing_however_fast_and_a_second_far_from_it_neither(store: Store) -> None:
    fast = {"numerics__learning_rate": 9.0}
    data = fill_each(store, repeated(before(2), 1.0), [launch(before(1), 0.5, **fast), launch(before(0), 0.8, **fast)])
    assert [item.week for item in course(data).taken] == ["2026-W08"]
    assert len(course(data).marks) == 5


def test_what_is_not_valid_takes_nothing(store: Store) -> None:
    left = repeated(before(1), 0.5, path__witnessed__attention="math")
    data = fill_each(store, repeated(before(2), 1.0), left, repeated(before(0), 0.9))
    assert [item.week for item in course(data).taken] == ["2026-W08", "2026-W10"]


class Stricter(ReportReader):
    """A reader of rules under which one configuration is valid no more."""

    def items(self, rows: Iterable[Entry]) -> list[Item]:
        return [
            replace(item, verdict=replace(item.verdict, status="invalid", tainted=(Taint.ALL,)))
            if "-0.5" in (item.entry.label or "") or "-0.4995" in (item.entry.label or "")
            else item
            for item in super().items(rows)
        ]


def test_what_is_valid_no_more_under_the_present_rules_takes_nothing(store: Store) -> None:
    data = fill_each(store, repeated(before(2), 1.0), repeated(before(1), 0.5), repeated(before(0), 0.9))
    assert [item.week for item in course(data).taken] == ["2026-W08", "2026-W09"]
    reader = Stricter(store, cases.rulebook(), END)
    (lane,) = data.lanes
    found = week_frontier.lane_course(reader, lane.name, lane.leaders, lane.ranked, END)
    assert found is not None
    assert [item.week for item in found.taken] == ["2026-W08", "2026-W10"]


def test_what_led_before_the_weeks_shown_still_has_to_be_beaten(store: Store) -> None:
    old = week_frontier.MAX_WEEKS + 4
    data = fill_each(store, repeated(before(old), 0.8), repeated(before(2), 0.9), repeated(before(0), 0.7))
    found = course(data)
    assert len(found.taken) == 2
    assert len(found.marks) == 6


def test_what_ran_after_the_report_is_not_looked_at(store: Store) -> None:
    data = fill_each(store, repeated(before(1), 1.0), repeated(before(0), 0.9), repeated(before(-1), 0.5))
    assert [item.week for item in course(data).taken] == ["2026-W09", "2026-W10"]


def test_shapes_are_never_folded(store: Store) -> None:
    long = {"batch__sequence_length": 512, "measurement__tokens_per_step": 8192}
    data = fill_each(store, repeated(before(1), 1.0), repeated(before(0), 0.9, **long))
    assert [item.week for item in course(data).taken] == ["2026-W10"]
    assert len(course(data).marks) == 3


def test_another_launch_of_what_leads_takes_nothing_and_moves_the_mean(store: Store) -> None:
    lead = repeated(before(2), 1.0)
    again = launch(before(0), 0.999, numerics__learning_rate=1.0)
    data = fill_each(store, lead, [again])
    assert [item.week for item in course(data).taken] == ["2026-W08"]
    (held,) = data.lanes[0].frontier
    assert (held.launches, held.sessions) == (4, 2)
    assert held.change is not None
    assert held.change.state == "same"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> WeekData:
    store = week.fill(tmp_path_factory.mktemp("pictures") / "store.sqlite", week.everything())
    return collect(store, cases.rulebook(), Week.parse(week.WEEK), moment(week.AS_OF))


def test_a_picture_leads_to_every_receipt_that_it_numbers(store: Store) -> None:
    data = fill_each(store, *(repeated(before(number), 1.0 - (9 - number) / 50) for number in range(9, -1, -1)))
    figure = frontier.over_lanes("frontier", [course(data)])
    assert figure is not None
    assert figure.table is not None
    links = [part.anchor for row in figure.table.rows for part in row.cells[-1] if isinstance(part, Link)]
    assert links == [item.receipt.anchor for item in course(data).taken]
    assert set(links) <= {item.receipt.anchor for item in data.receipts}
    assert len(links) == 10


def test_each_week_is_led_by_what_leads_when_it_is_over(store: Store) -> None:
    days = [before(2), before(1), before(1, 33), before(1, 57), before(0)]
    data = fill_each(store, *(repeated(at, 1.0 - index / 20) for index, at in enumerate(days)))
    taken = course(data).taken
    assert [item.week for item in taken] == ["2026-W08", "2026-W09", "2026-W10"]
    assert [item.rate for item in taken] == pytest.approx([4096, 4096 / 0.85, 4096 / 0.8], rel=0.001)


def test_what_one_row_tells_is_no_picture(store: Store) -> None:
    data = fill(store, [launch(before(0), 1.0)])
    (week_lane,) = data.lanes
    reached = data.sections.ceilings[week_lane.name]
    assert frontier.over_sequence("sequence", week_lane, reached) is None


def test_nothing_is_no_figure(data: WeekData) -> None:
    lane = replace(data.lanes[0], frontier=(), stated=())
    assert frontier.over_sequence("a", lane, data.sections.ceilings[lane.name]) is None
    assert frontier.over_lanes("a", ()) is None


def test_a_ceiling_is_marked_and_what_no_shape_stands_for_is_not(store: Store) -> None:
    data = fill(store, [launch(before(0, hour), 1.0 + hour / 1000) for hour in (1, 2)])
    (lane,) = data.lanes
    reached = data.sections.ceilings[lane.name]

    def marked(figure: Figure | None) -> int:
        svg = figure.draw("p") if figure is not None else None
        return (svg or "").count("stroke: var(--mark-1")

    longer = (replace(lane.frontier[0], sequence_length=length) for length in (512, 1024))
    more = replace(lane, stated=tuple(longer))
    with_ceiling = marked(frontier.over_sequence("p", more, reached))
    none = replace(reached, reached=reached.reached._replace(frontiers=()))
    assert with_ceiling > marked(frontier.over_sequence("p", more, none))


def page_of(tmp_path: Path, *words: str) -> str:
    """The page of a comparison in a store of accepted and refused ones."""
    place = tmp_path / "store.sqlite"
    week.fill(place, week.everything()).close()
    assert main(["--store", str(place), "report", "compare", *words, "--out", str(tmp_path / "out")]) == 0
    return (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_the_page_of_a_comparison_has_its_effects(tmp_path: Path) -> None:
    page = page_of(tmp_path, "label=small decoder", "label=small decoder, 4 threads")
    assert page.count("<svg") == 1
    assert "change of B against A, %" in page


def test_a_refused_comparison_draws_nothing_that_would_be_believed(tmp_path: Path) -> None:
    assert "<svg" not in page_of(tmp_path, "label=small decoder", "label=left its path")
