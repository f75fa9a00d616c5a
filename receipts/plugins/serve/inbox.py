"""Pages of what needs somebody: what is open, incidents, what failed and which shapes fit, and stale claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts.api.lists import frontier_page
from receipts.api.questions.receipts import list_receipts
from receipts.base.errors import NotFound, UsageError
from receipts.base.units import counted
from receipts.plugins.serve.guard import status_of
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import ROWS, View, moment, run, url
from receipts.publish.offenses import lack_name, waits_for
from receipts.publish.page import Cell, Code, Entry, Link, Mark, Page, Section, marked, table_of
from receipts.publish.report.frontier import STANDINGS, lane_figure
from receipts.publish.tables import incidents_section
from receipts.publish.text import number
from receipts.questions.week.events import regressions
from receipts.receipt.document import UNFAILED
from receipts.store import Filters, condition
from receipts.store.query.reports import facets

if TYPE_CHECKING:
    from receipts.plugins.serve.server import Server
    from receipts.questions.week.frontier import LaneCourse
    from receipts.questions.week.reader import Item
    from receipts.store import Entry as Stored


def failures(call: Call) -> View:
    """What failed, with its cost; which shapes fit by sequence and micro batch; whether another would."""
    given = call.request.query_params
    held = call.server.counts()
    lanes = [name for name, _ in held["lane"]]
    lane = given.get("lane") or (lanes[0] if lanes else "")
    if lane and lane not in lanes:
        raise NotFound(f"no receipt has lane {lane!r}")

    def read() -> tuple[list[Stored], Section]:
        """The newest failed launches of the lane, one more than are shown, and its envelope."""
        opened = call.server.store().opened
        failed: list[Stored] = []
        for outcome, count in facets(opened.database).of({"lane": lane})["outcome"]:
            if count and outcome not in UNFAILED:
                asked = (condition(f"lane={lane}"), condition(f"outcome={outcome}"))
                failed += opened.find(Filters(asked, limit=min(count, ROWS + 1)))
        failed.sort(key=lambda item: item.started, reverse=True)
        return failed[: ROWS + 1], _envelope(call.server, lane)

    every, envelope = call.server.cached(f"failures {lane}", read)
    rows = every[:ROWS]
    sections = [envelope, failed(rows)] if lane else []
    values: dict[str, Any] = {"lane": lane, "lanes": lanes, "plan": given.get("plan", "")}
    status = 200
    if given.get("plan"):
        try:
            page = call.store.preflight(given["plan"]).page()
            values["fits"] = (page.headline, page.lead)
        except (NotFound, UsageError) as error:
            values["fits"], status = ((str(error),), ()), status_of(error)
    costs = [hours for item in rows if (hours := _chip_hours(item)) is not None]
    cost = f", {sum(costs):,.1f} chip-hours" if costs else ""
    if len(costs) < len(rows) and costs:
        cost += f" in the {len(costs)} whose cost is known"
    which = "The newest " if len(every) > len(rows) else ""
    number = counted(len(rows), "failed launch", "failed launches")
    headline = f"{which}{number} of {lane}{cost}" if rows else "No launch failed"
    return View(Page("Failures and envelope", (headline,), sections=tuple(sections)), "failures", values, status)


def _chip_hours(item: Stored) -> float | None:
    """What a launch cost; None where its end or its chips are unknown."""
    if item.finished is None or item.finished <= item.started or item.chips is None:
        return None
    return (item.finished - item.started).total_seconds() / 3600 * item.chips


def failed(rows: Sequence[Stored]) -> Section:
    """Failed launches, the newest first, with what each cost."""
    # Times count as numbers, so that no line breaks in them.
    header = "run | outcome | phase | class | chips | sequence × micro | #chip-hours | #started, UTC"
    lines = (
        (
            run(item.id, item.name[:60]),
            item.outcome,
            item.failure_phase or "~",
            item.failure_class or "~",
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            f"{item.sequence_length or '?'} × {item.micro_batch or '?'}",
            "~" if (hours := _chip_hours(item)) is None else f"{hours:,.2f}",
            moment(item),
        )
        for item in rows
    )
    return Section("failed", "What failed", tables=(table_of("Newest first", header, lines, empty="nothing failed"),))


def _envelope(server: Server, lane: str) -> Section:
    """Sequence by micro batch, for each model, depth and number of chips: how many launches fit, how many did not."""
    from receipts.axes.shape import described

    store = server.store().opened
    names: dict[int, str] = {}
    cells: dict[tuple[Any, ...], dict[int, list[int]]] = {}
    for item in store.query.reached(lane):
        if item.sequence_length is None or item.micro_batch is None:
            continue
        if item.key.geometry not in names and len(names) < server.settings.limits.shapes:
            known = described(store.parsed(item.last).stated)
            names[item.key.geometry] = known.name or known.family or "model not named"
        if (name := names.get(item.key.geometry)) is None:
            continue
        where = (name, item.chips or 0, item.accelerator or "?", item.depth or 0, item.sequence_length)
        counts = cells.setdefault(where, {}).setdefault(item.micro_batch, [0, 0])
        counts[item.outcome != "ok"] += item.launches
    micro = sorted({size for held in cells.values() for size in held})
    rows = (
        (
            name,
            f"{chips or '?'} × {accelerator}",
            f"{depth or '?'}",
            f"{length:,}",
            *(_fits(held.get(size)) for size in micro),
        )
        for (name, chips, accelerator, depth, length), held in sorted(cells.items())
    )
    header = " | ".join(("model", "chips", "#depth", "#sequence", *(f"micro batch {size}" for size in micro)))
    about = "Launches that ran and that ran out of memory, of all layouts, by sequence and micro batch."
    sentences = (about if cells else "No launch of this lane states its shape.",)
    return Section("envelope", "Envelope", sentences, tables=(table_of("", header, rows),) if cells else ())


def _fits(counts: list[int] | None) -> Mark | str:
    """A cell of the heat map: the style shades it by the state of its mark, which the words say as well."""
    if counts is None:
        return ""
    worked, failed = counts
    if worked and failed:
        return Mark("open", f"{worked:,} fit, {failed:,} did not")
    return Mark("yes", f"{worked:,} fit") if worked else Mark("no", f"{failed:,} did not fit")


MAX_CARDS = 6  # lanes that have a picture
MAX_NEW = 6  # runs, and half as many questions and failures, of the first page


def frontier(call: Call) -> View:
    """Where the store stands: the best of each lane with its launches, what ran and failed last, and what is open."""
    server = call.server
    rows, courses = server.leading()
    page = frontier_page(rows, server.rulebook.rules)
    courses = sorted((item for item in courses if item.marks), key=lambda item: (-len(item.marks), item.lane))
    proven, waiting = ([one.lane for one in courses if (one.leader.standing == "proven") is of] for of in (True, False))
    if proven:
        answer = f"Proven on {_named(proven)}" + (f"; not yet on {_named(waiting)}" if waiting else "")
    else:
        answer = f"Nothing is proven yet: {_named(waiting)} have results that are only reported"
    lanes = server.counts()["lane"]
    held = counted(sum(count for _, count in lanes), "receipt"), counted(len(lanes), "lane")
    about: Cell = (f"{held[0]} on {held[1]} · ", Link("weekly reports", "/reports"), " · ", Link("all runs", "/runs"))
    folded = tuple(
        replace(item, fold=counted(sum(row["lane"] == item.title for row in rows), "shape")) for item in page.sections
    )
    opened = call.store.opened
    since = datetime.now(UTC) - timedelta(days=7)
    failing = [condition(f"started>={since:%Y-%m-%d}"), *(condition(f"outcome!={name}") for name in UNFAILED)]
    values = {
        "cards": [_card(at, item, server) for at, item in enumerate(courses[:MAX_CARDS])],
        "newest": [
            (run(item.id, item.name), marked(item.status), item.lane, moment(item))
            for item in opened.find(Filters(limit=MAX_NEW))
        ],
        "questions": [(item.words, len(item.waiting)) for item in open_questions(server)[: MAX_NEW // 2]],
        "failed": [
            (run(item.id, item.name), item.outcome, moment(item))
            for item in opened.find(Filters(tuple(failing), limit=MAX_NEW // 2))
        ],
    }
    headline = (answer,) if courses else page.headline
    return View(replace(page, headline=headline, facts=(("", about),), sections=folded), "frontier", values)


def _named(lanes: Sequence[str]) -> str:
    """Lanes in a sentence: two by name, the others by their number."""
    if len(lanes) > 3:
        return f"{', '.join(lanes[:2])} and {len(lanes) - 2} more"
    return " and ".join(filter(None, (", ".join(lanes[:-1]), lanes[-1])))


def _card(at: int, item: LaneCourse, server: Server) -> dict[str, Any]:
    """A lane: its leading shape and rate, how well that is shown, who took it, and the picture at two widths."""
    best, sure = item.leader, item.leader.standing == "proven"
    shown = f"95 % {number(best.low)} to {number(best.high)}, " if best.low is not None else ""
    note = waits_for(best.open_questions, server.rulebook.rules)
    launches = counted(best.launches, "launch", "launches") if best.launches else ""
    return {
        "lane": Link(item.lane, url("/runs", [("lane", item.lane)])),
        "shape": item.shape,
        "rate": number(best.tokens_per_second_per_chip),
        "mark": Mark("yes" if sure else "open", "proven" if sure else STANDINGS[best.standing]),
        "note": f"waits for {note}" if note else f"{shown}{launches}",
        "by": run(best.receipt.id, best.receipt.name),
        "at": f"{item.taken[-1].ran:%d %B %Y}".lstrip("0") if item.taken else "",
        "figures": [lane_figure(item, f"lane-{at}-{size:.0f}", size) for size in (368.0, 760.0)],
    }


MAX_LACKS = 25  # open questions that are listed
MAX_OPEN = 300  # open receipts that the inbox reads


def inbox(call: Call) -> View:
    """Open questions by how many receipts an answer would settle, incidents, failed launches, claims that are stale."""
    questions = open_questions(call.server)
    total = dict(call.server.counts()["status"]).get("open", 0)
    which = f"the newest {MAX_OPEN} of {total:,} open receipts" if total > MAX_OPEN else counted(total, "open receipt")
    about = f"Questions of {which}, the ones first that would settle most; a receipt may wait for several."
    points = [
        Entry(
            f"open-{at}",
            (Mark("open", item.words), f" · {counted(len(item.waiting), 'receipt')}{item.only}"),
            (("runs", _linked(item.waiting)), ("settle the first", (Code(item.command, command=True),))),
        )
        for at, item in enumerate(questions)
    ]
    week = datetime.now(UTC) - timedelta(days=7)
    failing = [f"outcome!={name}" for name in UNFAILED]
    listed = list_receipts(call.store.session, [f"started>={week:%Y-%m-%d}", *failing], limit=ROWS)
    lately, more = listed.entries, listed.following
    stale = [item for item in call.store.claims().to_dict() if item["status"] in ("stale", "refuted")]
    claims = ((item["claim"], Mark("no", item["status"]), item["text"][:200]) for item in stale)
    table = table_of("Claims", "claim | status | says", claims, empty="no claim is stale or refuted")
    incidents = regressions(call.store.opened, datetime.now(UTC))
    sections = (
        Section("open", "Open questions", (about,) if points else ("Nothing is open.",), entries=tuple(points)),
        *incidents_section(incidents),
        replace(failed(lately), title="Failed in the last seven days"),
        Section("claims", "Stale and refuted claims", tables=(table,)),
    )
    open_, fell = counted(len(points), "open question"), counted(len(lately), "failed launch", "failed launches")
    fell = f"more than {fell}" if more else fell
    headline = (
        f"{open_}, {counted(len(incidents), 'open incident')}, {fell}, {counted(len(stale), 'claim')} stale or refuted"
    )
    return View(Page("Inbox", (headline,), sections=sections))


def _linked(ids: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for receipt, name in ids[:6]:
        cells += [", " if cells else "", run(receipt, name[:40])]
    return (*cells, f" and {len(ids) - 6} more") if len(ids) > 6 else tuple(cells)


class _Question(NamedTuple):
    """What open receipts wait for: those that wait, how many for nothing else, and a command for the first."""

    words: str
    waiting: list[tuple[str, str]]
    only: str
    command: str


def open_questions(server: Server) -> list[_Question]:
    """Each question of the newest open receipts; the ones whose answer settles most come first."""
    from receipts.questions.commands import of_receipt
    from receipts.questions.week.reader import ReportReader

    def read() -> list[_Question]:
        now, opened = datetime.now(UTC), server.store().opened
        groups: dict[str, list[Item]] = {}
        codes: dict[str, set[str]] = {}
        alone: Counter[str] = Counter()
        with opened.one_state():
            rows = opened.find(Filters((condition("status=open"),), limit=MAX_OPEN))
            for item in ReportReader(opened, server.rulebook, now, (), now).items(rows):
                waiting: dict[str, set[str]] = {}
                for one in item.verdict.findings:
                    if one.level == "I":
                        waiting.setdefault(lack_name(one), set()).add(one.code)
                for lack, rules in waiting.items():
                    groups.setdefault(lack, []).append(item)
                    codes.setdefault(lack, set()).update(rules)
                alone.update([*waiting] if len(waiting) == 1 else ())
        ordered = sorted(groups.items(), key=lambda part: (-alone[part[0]], -len(part[1]), part[0]))
        return [
            _Question(
                f"{lack} ({', '.join(sorted(codes[lack]))})",
                [(item.entry.id, item.entry.name) for item in items],
                f", {alone[lack]} of them for nothing else" if alone[lack] else "",
                of_receipt(items[0].parsed, items[0].verdict),
            )
            for lack, items in ordered[:MAX_LACKS]
        ]

    return server.cached("inbox", read)
