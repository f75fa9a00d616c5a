"""What is open, which histories have incidents, what failed lately, and which claims are stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts.base.units import counted
from receipts.publish.page import Code, Entry, Mark, Page, Section, table_of
from receipts.publish.report.sections.regressions import regressions, section
from receipts.serve.cursor import page as page_of
from receipts.serve.operation import Call
from receipts.serve.pages.failures import failed
from receipts.serve.pages.view import ROWS, View, run
from receipts.store import Filters, condition

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.publish.report.reader import Item
    from receipts.serve.server import Server
    from receipts.store import Store as Opened

MOST_OPEN = 300  # open receipts that the inbox reads


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
    lately, more = page_of(call.store.opened, [f"started>={week:%Y-%m-%d}", "outcome!=ok"], limit=ROWS)
    stale = [item for item in call.store.claims().to_dict() if item["status"] in ("stale", "refuted")]
    claims = ((item["claim"], Mark("no", item["status"]), item["text"][:200]) for item in stale)
    table = table_of("Claims", "claim | status | says", claims, empty="no claim is stale or refuted")
    incidents = regressions(call.store.opened, datetime.now(UTC))
    sections = (
        Section("open", "Open questions", (_read(call),) if points else ("Nothing is open.",), entries=tuple(points)),
        *section(incidents),
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
    which = (
        f"the newest {MOST_OPEN} of {total:,} open receipts" if total > MOST_OPEN else counted(total, "open receipt")
    )
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
    from receipts.publish.report.reader import ReportReader
    from receipts.questions.next_command import of_receipt

    now = datetime.now(UTC)
    groups: dict[str, list[Item]] = {}
    alone: Counter[str] = Counter()
    with store.one_state():
        rows = store.find(Filters((condition("status=open"),), limit=MOST_OPEN))
        for item in ReportReader(store, rulebook, now, (), now).items(rows):
            waiting = {f"{one.code} {one.name.replace('_', ' ')}" for one in item.verdict.findings if one.level == "I"}
            for words in waiting:
                groups.setdefault(words, []).append(item)
            alone.update(waiting if len(waiting) == 1 else ())
    ordered = sorted(groups.items(), key=lambda part: (-alone[part[0]], -len(part[1]), part[0]))
    return [
        _Question(
            words,
            [(item.entry.id, item.entry.name) for item in items],
            alone[words],
            of_receipt(items[0].parsed, items[0].verdict),
        )
        for words, items in ordered
    ]
