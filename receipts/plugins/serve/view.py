"""What a page of the server is made of: the page model, controls above it, and where its links lead.

Then the pages that show what a question answers: histories, bridges, incidents and claims; and what people decided, by
week. A question belongs to a plugin: where that was left out, its page says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request

from receipts.api.question import every
from receipts.base.errors import NotFound
from receipts.plugins.serve.asked import asked_of
from receipts.plugins.serve.operation import Call
from receipts.publish.page import RUN, Code, Entry, Link, Page, Section, marked, table_of, text
from receipts.questions.week.interval import Week
from receipts.store import Condition, Filters
from receipts.store.query.reports import ReportQueries

if TYPE_CHECKING:
    from receipts.store import Entry as Stored

NAV = (
    ("/", "Frontier"),
    ("/runs", "Runs"),
    ("/compare", "Compare"),
    ("/reports", "Reports"),
    ("/failures", "Failures"),
    ("/histories", "Histories"),
    ("/claims", "Claims"),
    ("/decisions", "Decisions"),
    ("/inbox", "Inbox"),
)

ROWS = 50  # of a table
RATE = "tokens_per_second_per_chip"
CODED: Final = re.compile(r"[EIW] ([A-Z]\d{3}) (.+)", re.DOTALL)
WARNED: Final = re.compile(r"([A-Z]\d{3}) (\w+)( on .+)?")


@dataclass(frozen=True)
class View:
    """A page with its template (in ``reports/parts``), the values that the template takes beside it, and its status."""

    page: Page
    template: str = "site"
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def run(receipt: str, name: str = "") -> Link:
    """A link to a run."""
    return Link(name or receipt[:12], f"{RUN}{receipt}")


def in_words(page: Page) -> Page:
    """A page whose offenses are named in words, their codes after them."""

    def named(item: Entry) -> Entry:
        match = CODED.fullmatch(text(item.title))
        words = match[2].replace("_", " ") if match else ""
        return replace(item, title=(f"{words[:1].upper()}{words[1:]} ", Code(match[1]))) if match else item

    def warned(name: str) -> str:
        match = WARNED.fullmatch(name)
        return f"{match[2].replace('_', ' ').capitalize()}{match[3] or ''} ({match[1]})" if match else name

    def worded(item: Section) -> Section:
        points = tuple((warned(name), cells) for name, cells in item.points)
        return replace(item, entries=tuple(map(named, item.entries)), points=points)

    return replace(page, sections=tuple(map(worded, page.sections)))


def lead(anchor: str) -> str | None:
    """Where a link of the page model leads: a run, or a path of the server."""
    if anchor.startswith(RUN):
        return f"/runs/{anchor.removeprefix(RUN)}"
    return anchor if anchor.startswith("/") else None


def rendered(view: View, here: str, who: str, form: str, live: str = "") -> str:
    """The page of a view as HTML: at a path of the server, for who is signed in, its forms with their proof.

    ``live`` is the script of a page that follows the store.
    """
    from receipts.publish.markup import anchors, environment

    known = set(anchors(view.page.sections))

    def there(anchor: str) -> str | None:
        return f"#{anchor}" if anchor in known else lead(anchor)

    template = environment().get_template(f"parts/{view.template}.html.j2")
    return template.render(page=view.page, lead=there, here=here, nav=NAV, who=who, form=form, live=live, **view.values)


def url(path: str, query: Sequence[tuple[str, str]]) -> str:
    """A path with its query."""
    return f"{path}?{urlencode(query)}" if query else path


def may(call: Call, scope: str) -> bool:
    """Whether who asks may do what a scope names."""
    return call.token is None or call.token.may(scope)


def moment(item: Stored) -> str:
    """When a launch started, as a table has it."""
    return f"{item.started:%Y-%m-%d %H:%M}"


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
