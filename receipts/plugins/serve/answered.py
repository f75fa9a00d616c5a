"""Pages that show what a question answers: histories, bridges, incidents and claims; and what people decided, by week.

A question belongs to a plugin: where that was left out, its page says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request

from receipts.api.question import every
from receipts.base.errors import NotFound
from receipts.plugins.serve.asked import asked_of
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import View, run, url
from receipts.publish.page import Link, Page, Section, marked, table_of
from receipts.questions.week.interval import Week
from receipts.store import Condition, Filters
from receipts.store.query.reports import ReportQueries

MAX_WEEKS: Final = 26
MAX_LISTED: Final = 200  # of decisions, the newest


@dataclass(frozen=True, slots=True)
class Shown:
    """The page of a question: a form with some of its parameters, and below it the answer, once all are given.

    ``needed`` are the names, as the query has them, without which the form alone is shown.
    """

    question: str
    title: str
    fields: tuple[str, ...] = ()
    needed: int = 0

    def __call__(self, call: Call) -> View:
        question = every().get(self.question)
        if question is None:
            raise NotFound(f"this server has no {self.title.lower()}: the plugin of {self.question!r} was left out")
        given = {name: value for name, value in call.request.query_params.items() if value}
        helps = {item.wire: item.how.help.rstrip(".") for item in question.parameters}
        fields = [(name, helps[name], given.get(name, "")) for name in self.fields]
        values = {"fields": fields, "path": call.request.url.path}
        if any(name not in given for name in self.fields[: self.needed]):
            lead = ("Name a run by its label, the start of its id, or @pin.",)
            return View(Page(self.title, lead=lead), "question", values)
        # The request without the fields that were left empty.
        scope = {**call.request.scope, "query_string": str(QueryParams(given)).encode()}
        answer = asked_of(question, replace(call, request=Request(scope)))
        page = answer.page()
        return View(
            page if page.headline or page.title != "Answer" else replace(page, title=self.title), "question", values
        )


def lines(call: Call) -> View:
    """The histories: the line of a run with its level shifts, or the lines of a lane; all incidents for none."""
    given = call.request.query_params
    if given.get("receipt") or given.get("lane"):
        return Shown("history", "History", ("receipt", "lane"))(call)
    shown = Shown("incident list", "Histories and incidents")(call)
    lanes = (
        (Link(lane, url("/histories", [("lane", lane)])), f"{count:,}") for lane, count in call.server.counts()["lane"]
    )
    sections = [replace(item, id="incidents", title="Incidents") for item in shown.page.sections]
    sections.append(Section("lanes", "Histories by lane", tables=(table_of("", "lane | #launches", lanes),)))
    values = {"path": "/histories", "fields": [("receipt", "The run whose line is shown", "")]}
    count = len(shown.page.sections[0].tables[0].rows) if shown.page.sections else 0
    headline = f"{count} open incident{'s' * (count != 1)}"
    return View(Page("Histories and incidents", (headline,), sections=tuple(sections)), "question", values)


def claims(call: Call) -> View:
    """Every claim with its verdict now."""
    rows = [
        (Link(item["claim"], f"/claims/{item['claim']}"), marked(item["status"]), item["text"][:200])
        for item in call.store.claims().to_dict()
    ]
    table = table_of("", "claim | status | says", rows, empty="No claim; add some: receipts claim add claims.toml")
    return View(Page("Claims", (f"{len(rows):,} claims",), sections=(Section("claims", "", tables=(table,)),)))


def decisions(call: Call) -> View:
    """What people named and decided: pins with what each pointed at before, and decisions with their reasons."""
    opened = call.store.opened
    set_now = opened.pins()
    history = sorted(opened.pin_history(), key=lambda item: item.at, reverse=True)[:MAX_LISTED]
    held = sorted(opened.published.decisions(), key=lambda item: item.at, reverse=True)[:MAX_LISTED]
    ids = {*(item.receipt for item in history if item.receipt), *(item.receipt for item in held)}
    names = {row.id: row.name[:60] for row in ReportQueries(opened.database).entries(sorted(ids))} if ids else {}

    def named(receipt: str | None) -> Link | str:
        return run(receipt, names.get(receipt, "")) if receipt else "taken away"

    pins = (
        (f"@{name}", named(item.receipt), item.note or "", f"{item.at:%Y-%m-%d %H:%M}")
        for name, item in set_now.items()
    )
    past = ((f"@{item.name}", named(item.receipt), item.note or "", f"{item.at:%Y-%m-%d %H:%M}") for item in history)
    decided = (
        (named(item.receipt), item.decision, item.reason, f"{item.at:%Y-%m-%d %H:%M}", item.actor or "not recorded")
        for item in held
    )
    header = "pin | run | note | #when, UTC"
    pinned = table_of("", header, pins, empty="No pin; set one on the page of a run.")
    settled = table_of("", "run | decision | reason | #when, UTC | who", decided, empty="No decision.")
    title, fold = "What pins pointed at", "every pin since it was first set"
    sections = (
        Section("pins", "Pins", tables=(pinned,)),
        Section("decisions", "Decisions", tables=(settled,)),
        Section("past", title, tables=(table_of("", header, past),), fold=fold),
    )
    headline = f"{len(set_now):,} pins, {len(held):,} decisions"
    return View(Page("Pins and decisions", (headline,), sections=sections))


def reports(call: Call) -> View:
    """The weeks in which launches ran, each with its report."""

    def weeks() -> list[tuple[Week, str]]:
        held: list[tuple[Week, str]] = []
        before: tuple[Condition, ...] = ()
        find = call.server.store().opened.find
        while len(held) < MAX_WEEKS and (newest := next(find(Filters(before, limit=1)), None)) is not None:
            week = Week.of(newest.started)
            held.append((week, newest.name[:60]))
            before = (Condition("started", "<", week.since.isoformat()),)
        return held

    rows = []
    for week, newest in call.server.cached("weeks", weeks):
        report = url("/v1/reports/weekly", [("week", str(week)), ("format", "html")])
        rows.append((Link(str(week), report), f"{week.since:%Y-%m-%d}", newest))
    table = table_of("", "report | from Monday | newest run", rows, empty="No run yet.")
    sections = (Section("weeks", "", tables=(table,)),)
    return View(Page("Weekly reports", ("The newest week with a run first",), sections=sections))
