"""Pages of what needs somebody: what is open, incidents, what failed and which shapes fit, and stale claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts.api.questions.receipts import list_receipts
from receipts.base.errors import NotFound, UsageError
from receipts.base.units import counted
from receipts.plugins.serve.guard import status_of
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import ROWS, View, moment, run
from receipts.publish.offenses import lack_name
from receipts.publish.page import Code, Entry, Mark, Page, Section, table_of
from receipts.publish.tables import incidents_section
from receipts.questions.week.events import regressions
from receipts.receipt.document import UNFAILED
from receipts.store import Filters, condition
from receipts.store.query.reports import facets

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.serve.server import Server
    from receipts.questions.week.reader import Item
    from receipts.store import Entry as Stored
    from receipts.store import Store as Opened


def failures(call: Call) -> View:
    """What failed, with its cost; which shapes fit by sequence and micro batch; whether another would."""
    given = call.request.query_params
    held = call.server.counts()
    lanes = [name for name, _ in held["lane"]]
    lane = given.get("lane") or (lanes[0] if lanes else "")
    if lane and lane not in lanes:
        raise NotFound(f"no receipt has lane {lane!r}")
    every, envelope = call.server.cached(f"failures {lane}", lambda: _failures(call.server, lane))
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
    cost = f"{sum(costs):,.1f} chip-hours" if costs else "at an unknown cost"
    if len(costs) < len(rows) and costs:
        cost += f" in the {len(costs)} whose cost is known"
    which = "the newest " if len(every) > len(rows) else ""
    number = counted(len(rows), "failed launch", "failed launches")
    headline = f"{which}{number} of {lane}, {cost}" if rows else "no launch failed"
    return View(Page("Failures and envelope", (headline,), sections=tuple(sections)), "failures", values, status)


def _failures(server: Server, lane: str) -> tuple[list[Stored], Section]:
    """The newest failed launches of a lane, one more than are shown, and its envelope."""
    opened = server.store().opened
    every: list[Stored] = []
    for outcome, count in facets(opened.database).of({"lane": lane})["outcome"]:
        if count and outcome not in UNFAILED:
            asked = Filters((condition(f"lane={lane}"), condition(f"outcome={outcome}")), limit=min(count, ROWS + 1))
            every += opened.find(asked)
    every.sort(key=lambda item: item.started, reverse=True)
    return every[: ROWS + 1], _envelope(server, lane)


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


MAX_LACKS = 25  # open questions that are listed
MAX_OPEN = 300  # open receipts that the inbox reads


def inbox(call: Call) -> View:
    """Open questions by how many receipts an answer would settle, incidents, failed launches, claims that are stale."""
    questions = open_questions(call.server)
    points = [
        Entry(
            f"open-{at}",
            (Mark("open", item.words), f" · {counted(len(item.waiting), 'receipt')}{_only(item.alone)}"),
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
        Section("open", "Open questions", (_read(call),) if points else ("Nothing is open.",), entries=tuple(points)),
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


def _read(call: Call) -> str:
    total = dict(call.server.counts()["status"]).get("open", 0)
    which = f"the newest {MAX_OPEN} of {total:,} open receipts" if total > MAX_OPEN else counted(total, "open receipt")
    return f"Questions of {which}, the ones first that would settle most; a receipt may wait for several."


def _only(alone: int) -> str:
    return f", {alone} of them for nothing else" if alone else ""


def _linked(ids: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for receipt, name in ids[:6]:
        cells += [", " if cells else "", run(receipt, name[:40])]
    return (*cells, f" and {len(ids) - 6} more") if len(ids) > 6 else tuple(cells)


class _Question(NamedTuple):
    """What open receipts wait for: those that wait, those that wait for nothing else, and a command for the first."""

    words: str
    waiting: list[tuple[str, str]]
    alone: int
    command: str


def open_questions(server: Server) -> list[_Question]:
    """Each question of the newest open receipts; the ones whose answer settles most come first."""
    return server.cached("inbox", lambda: _open_questions(server.store().opened, server.rulebook))


def _open_questions(store: Opened, rulebook: Rulebook) -> list[_Question]:
    from receipts.questions.next_command import of_receipt
    from receipts.questions.week.reader import ReportReader

    now = datetime.now(UTC)
    groups: dict[str, list[Item]] = {}
    codes: dict[str, set[str]] = {}
    alone: Counter[str] = Counter()
    with store.one_state():
        rows = store.find(Filters((condition("status=open"),), limit=MAX_OPEN))
        for item in ReportReader(store, rulebook, now, (), now).items(rows):
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
            alone[lack],
            of_receipt(items[0].parsed, items[0].verdict),
        )
        for lack, items in ordered[:MAX_LACKS]
    ]
