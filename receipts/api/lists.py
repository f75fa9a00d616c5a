"""The lists that a store answers with, as data and as pages: receipts, the frontier, claims, neighbors.

The frontier is the best configuration of every shape, and beside it the best that is merely stated; claims come with
their present verdicts. Receipts come by pages: a cursor names the last receipt of one, so that receipts that come in
meanwhile move none.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts import metrics
from receipts.api.receipt import Receipts
from receipts.base.errors import NoStore, UsageError, near
from receipts.base.untrusted_text import parse_json
from receipts.publish.page import RUN, Link, Page, Section, Table, table_of
from receipts.store import Condition, Entry, Filters, condition

if TYPE_CHECKING:
    from receipts.api.session import Session
    from receipts.judging.claim import Claim
    from receipts.judging.rulebook import Rulebook, RuleSet
    from receipts.judging.verdict import ClaimVerdict
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood
    from receipts.questions.week.data import BestResult
    from receipts.questions.week.frontier import LaneCourse
    from receipts.questions.week.reader import Item, ReportReader
    from receipts.store import Store
    from receipts.store.query.lists import Order


TITLES = {
    "proven": "Proven",
    "unsettled": "Not proven: 95 % interval wider than ±5 %",
    "peak": "Not proven: one launch, a peak",
    "reported": "Reported, not proven",
}
HEADLINE = {
    "proven": "proven",
    "unsettled": "not settled",
    "peak": "of one launch",
    "reported": "reported and not proven",
}
WEEKS = 26  # before the newest launch of a lane, which are looked at for a stated result
MAX_ROWS = 2000  # of these the newest
_SHOWN = (
    *("standing", "target", "accelerator", "chips", "sequence_length", "tokens_per_second_per_chip", "low", "high"),
    *("launches", "sessions", "mfu", "peak_bytes", "provenance"),
)


def frontier(store: Store, rulebook: Rulebook, lanes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows by lane, the proven results of a lane first, by what they are at least. Raises NotFound for an unknown lane.

    ``standing`` is *proven*, *unsettled*, *peak* or *reported*. A rate is the geometric mean of ``launches``, with its
    95 % interval ``low`` to ``high``; that of a peak is of one launch.
    """
    with store.one_state():
        _, results = _results(store, rulebook, lanes)
    return [_row(*row) for row in results]


def frontier_and_courses(store: Store, rulebook: Rulebook) -> tuple[list[dict[str, Any]], list[LaneCourse]]:
    """The same rows, and the course of each lane over the weeks: what a picture of them shows."""
    from receipts.questions.week.data import leaders_of
    from receipts.questions.week.frontier import lane_course

    courses = []
    with store.one_state():
        reader, results = _results(store, rulebook, ())
        for lane, held in groupby(results, key=lambda row: row[0].entry.lane):
            items, _, ranked = zip(*held, strict=True)
            end = max(item.entry.finished or item.entry.started for item in items) + timedelta(microseconds=1)
            targets = [target.name for target in reader.lane(lane).targets]
            courses.append(lane_course(reader, lane, leaders_of(ranked, targets), ranked, end))
    return [_row(*row) for row in results], [item for item in courses if item is not None]


def _results(
    store: Store, rulebook: Rulebook, lanes: Sequence[str]
) -> tuple[ReportReader, list[tuple[Item, int | None, BestResult]]]:
    """Results with their items and the numbers of their configurations, lane by lane, the best shown first."""
    from receipts.questions.week.collect import check_lanes
    from receipts.questions.week.frontier import MAX_STATED, frontiers, rate, result, shapes, stated
    from receipts.questions.week.reader import ReportReader
    from receipts.store.query.reports import facets

    lanes = list(dict.fromkeys(lanes))
    reader = ReportReader(store, rulebook, datetime.now(UTC), lanes)
    check_lanes(lanes, rulebook, reader)
    leaders = [best.now for held in frontiers(reader).by_lane.values() for best in held]
    results: list[tuple[Item, int | None, BestResult]] = [
        (leader.item, leader.number, result(leader.item, None, leader)) for leader in leaders
    ]
    # Candidates for a stated result: the fastest of each shape among the newest launches.
    rows: list[Entry] = []
    for lane in lanes or [name for name, _ in facets(store.database).of({})["lane"]]:
        conditions = (condition("outcome=ok"), condition(f"lane={lane}"))
        for newest in store.find(Filters(conditions, limit=1)):
            since = condition(f"started>={newest.started - timedelta(weeks=WEEKS):%Y-%m-%d}")
            rows += store.find(Filters((since, *conditions), limit=MAX_ROWS))
    fastest = (row for some in shapes(rows).values() for row in sorted(some, key=rate, reverse=True)[:MAX_STATED])
    results += [(item, None, result(item, None)) for item in stated(reader.items(fastest))]
    results.sort(key=lambda row: (row[0].entry.lane, row[2].rank))
    return reader, results


def _row(item: Item, number: int | None, shown: BestResult) -> dict[str, Any]:
    return {
        "lane": item.entry.lane,
        "proven": shown.standing == "proven",
        "receipt": item.entry.id,
        "configuration": number,
        "label": item.entry.name,
        "model": " ".join(shown.names(())) or None,
        "layout": shown.layout or None,
        **{name: getattr(shown, name) for name in _SHOWN},
        "best": shown.fastest_rate,
        "open_questions": list(shown.open_questions),
        "ran": item.entry.finished or item.entry.started,
    }


def frontier_page(rows: Sequence[dict[str, Any]], rules: RuleSet) -> Page:
    """A section for each lane: proven results, then what is not yet, then stated ones and what they wait for."""
    from receipts.publish.offenses import waits_for

    sections = []
    for lane, held in groupby(rows, key=lambda row: row["lane"]):
        items, parts = list(held), []
        for name, title in TITLES.items():
            if some := [row for row in items if row["standing"] == name]:
                parts.append(Section(f"{lane}-{name}", title, tables=(_table(title, some),)))
        codes = Counter(code for row in items if row["standing"] == "reported" for code in row["open_questions"])
        ordered = sorted(codes, key=lambda code: (-codes[code], code))
        waits = (f"What is reported waits for {waits_for(ordered, rules)}.",) if ordered else ()
        sections.append(Section(f"lane-{lane}", lane, waits, sections=tuple(parts)))
    counts = Counter(row["standing"] for row in rows)
    named = [f"{counts[name]} {words}" for name, words in HEADLINE.items() if counts[name] or name == "proven"]
    headline = (", ".join(named),)
    lead = () if rows else ("No successful launch states a rate and its shape; see: receipts list, receipts lanes",)
    return Page("Frontier", headline, lead=lead, sections=tuple(sections))


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    from receipts.publish.readings import number, unit

    rate, mfu, peak = (metrics.get(name) for name in ("tokens_per_second_per_chip", "mfu", "peak_bytes"))
    header = (
        f"receipt | model ^2 | chips ^3 | #sequence ^4 | rate [{unit(rate)}] | #95 % ^5 | #launches ^6 | "
        f"#best of them ^8 | #MFU ^5 | peak [{unit(peak)}] ^6 | #ran ^7 | label…"
    )
    lines = (
        (
            Link(item["receipt"][:12], f"{RUN}{item['receipt']}"),
            item["model"] or "~",
            f"{item['chips'] or '?'} × {item['accelerator'] or '?'}",
            f"{item['sequence_length']:,}" if item["sequence_length"] else "~",
            number(rate, item["tokens_per_second_per_chip"]) if item["tokens_per_second_per_chip"] else "~",
            f"{number(rate, item['low'])} to {number(rate, item['high'])}" if item["low"] else "~",
            f"{item['launches']:,}" if item["launches"] else "~",
            number(rate, item["best"]) if item["best"] else "~",
            number(mfu, item["mfu"]) if item["mfu"] else "~",
            number(peak, item["peak_bytes"]) if item["peak_bytes"] else "~",
            f"{item['ran']:%Y-%m-%d}",
            item["label"],
        )
        for item in rows
    )
    return table_of(title, header, lines)


JudgedClaim = tuple["Claim", "ClaimVerdict", "tuple[str | None, str] | None"]


def judged_claims(
    store: Store, rulebook: Rulebook, *, status: str | None = None, superseded: bool = False
) -> list[JudgedClaim]:
    """Claims, the verdict on each now, and what superseded it: the successor (None if it was withdrawn), the reason."""
    from receipts.questions.claims.judgment import stored, verdict_on

    ends = {item.id: item.superseded for item in store.published.claims(standing=False)}
    rows = []
    for claim in stored(store, standing=not superseded).claims:
        verdict, end = verdict_on(claim, rulebook, store), ends[claim.id]
        if status in (None, verdict.status):
            rows.append((claim, verdict, (end.successor, end.reason) if end else None))
    return rows


def add_claims(store: Store, rulebook: Rulebook, document: bytes) -> list[dict[str, Any]]:
    """Store the new claims of a ``claims.toml`` that names no files; the first verdict on each of them.

    Raises InputError, NotFound, ConflictError.
    """
    from receipts.judging.claim import ClaimFile, parse_claims
    from receipts.judging.verdict import verdict_to_json
    from receipts.questions.claims.judgment import verdict_on
    from receipts.questions.claims.stored import new_claims

    group = ClaimFile("the claims", None, parse_claims(document, "the claims"))
    wanted = set(store.published.add_claims(new_claims(group)))
    verdicts = [verdict_on(item, rulebook, store) for item in group.claims if item.id in wanted]
    store.published.record_claims(verdicts)
    return [verdict_to_json(item) for item in verdicts]


def neighbours_as_data(neighbourhood: Neighbourhood) -> dict[str, Any]:
    """What ``receipts neighbours --json`` prints."""
    run = neighbourhood.of.receipt.run
    return {
        "receipt": neighbourhood.of.id,
        "label": run.label,
        "lane": run.lane,
        "metric": neighbourhood.metric,
        "neighbours": [_neighbour(item) for item in neighbourhood.compared],
        "refused": [_neighbour(item) for item in neighbourhood.refused],
        "unstated": list(neighbourhood.unstated),
        "more": list(neighbourhood.more),
        "indexed": neighbourhood.indexed,
    }


def _neighbour(item: JudgedNeighbour) -> dict[str, Any]:
    verdict, headline = item.verdict, item.verdict.headline
    changed = [change for change in verdict.difference.changed if change.axis == item.axis]
    return {
        "axis": item.axis,
        "members": [{"path": one.path, "from": one.a, "to": one.b} for change in changed for one in change.members],
        "receipt": item.entry.id,
        "label": item.entry.label,
        "launches": list(verdict.b),
        **{name: getattr(verdict, name) for name in ("status", "comparable", "path", "effect")},
        "ratio": item.ratio,
        "low": headline.effect.low if headline else None,
        "high": headline.effect.high if headline else None,
        "reason": item.reason or None,
    }


MAX_CONDITIONS = 50
NO_RECEIPTS = "no receipts yet; add one with: receipts submit FILE"


class Cursor(NamedTuple):
    """The last receipt of a page: when it started, and its number in the store."""

    started: str
    seq: int

    @property
    def moment(self) -> datetime:
        """When the receipt's launch started."""
        return datetime.fromisoformat(self.started)

    def text(self) -> str:
        """As it goes into a URL."""
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """A cursor from a URL. Raises UsageError."""
    try:
        started, seq = parse_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if datetime.fromisoformat(started).tzinfo is None or type(seq) is not int:
            raise ValueError(text)
    except (ValueError, TypeError):
        raise UsageError(f"cursor={text[:40]}: this is no cursor; take the one of the page before") from None
    return Cursor(started, seq)


def listed(
    session: Session,
    conditions: Sequence[str],
    *,
    limit: int,
    order: Order,
    superseded: bool,
    deciding: bool,
    cursor: str | None,
) -> Receipts:
    """So many receipts, 0 for all, with the cursor of the next page and what there is to say. Raises UsageError."""
    conditions = [conditions] if isinstance(conditions, str) else conditions  # one text is no list of its letters
    if len(conditions) > MAX_CONDITIONS:
        raise UsageError(f"{len(conditions):,} conditions are too many; write at most {MAX_CONDITIONS}")
    if limit < 0:
        raise UsageError(f"--limit {limit}: write how many rows to print at most; 0 for all")
    wanted = tuple(condition(text) for text in conditions)
    try:
        store = session.store
    except NoStore:
        if session.chosen:
            raise  # a name that may be mistyped
        return Receipts(session, [], {} if deciding else None, (NO_RECEIPTS,), nothing=True)
    rows, following = _page(session, store, wanted, limit, order, cursor, superseded=superseded)
    commands = {item.id: _deciding(session, store, item.id) for item in rows if deciding and item.status == "open"}
    notes: tuple[str, ...] = (f"the first {limit}; --limit 0 prints all",) if following else ()
    if not rows:
        # The lanes that a condition may mean, where it names one that nobody declared.
        lanes = session.rulebook.lanes.names()
        names = [
            item.value for item in wanted if item.name == "lane" and item.operator == "=" and item.value not in lanes
        ]
        notes += tuple(f"there is no lane {name!r}{hint}" for name in names if (hint := near(str(name), lanes)))
    return Receipts(session, rows, commands if deciding else None, notes, following)


def _page(
    session: Session,
    store: Store,
    conditions: tuple[Condition, ...],
    limit: int,
    order: Order,
    cursor: str | None,
    *,
    superseded: bool,
) -> tuple[list[Entry], str | None]:
    """So many rows after a cursor, and the cursor of the next page; None where this is the last."""
    after = read_cursor(cursor) if cursor else None
    behind = (after.moment, after.seq) if after is not None else None
    filters = Filters(conditions, superseded, order, limit + 1 if limit else None, behind)
    plan = store.plan(filters)
    slow = plan.slow and bool(conditions)
    if slow:
        leaves = ", ".join(plan.documents)
        documents = f" and reads documents for {leaves}, which no index holds" if leaves else ""
        do = "context=, host=, code.commit= or started>= leave fewer to look at"
        session.note(f"scans {plan.most:,} receipts{documents}; {do}")
    rows = list(store.find(filters, session.advance if slow else None))
    if not limit or len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], Cursor(last.started.isoformat(), last.seq).text()


def _deciding(session: Session, store: Store, receipt: str) -> str:
    """The command that would decide an open receipt, as the present rules judge it."""
    from receipts.judging.judge import judge_receipt
    from receipts.questions.commands import of_receipt

    parsed = store.parsed(receipt)
    lane = session.rulebook.lanes.of(parsed.receipt.run.lane)
    return of_receipt(parsed, judge_receipt(parsed, lane, session.rulebook.rules, store.query.facts([parsed])))
