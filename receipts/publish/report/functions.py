"""What the templates of a report may call on its values: filters, and functions that link to parts of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.base.units import counted
from receipts.metrics.chips.words import ordinals
from receipts.publish.page import Cell, Code, Link, Mark, marked
from receipts.publish.report import comparisons
from receipts.publish.report.page import joined, link, links, numbered, place, rule
from receipts.publish.report.sections import ceilings, checks, claims, failures
from receipts.publish.report.sections import rules as cited
from receipts.publish.report.sections.cost import spent
from receipts.publish.text import NOTE, amount, change, gib, number, percent, plain, span

if TYPE_CHECKING:
    from receipts.publish.report.data import BestResult, JudgedPair, LaneWeek, Moved, WeekData

NAME: Final = 90
BRIEF: Final = 60  # signs of what a rule found
_CODE_NAME: Final = re.compile(r"\b[A-Z]\d{3} \w+")
_SOURCES: Final = {"steps": "from its steps", "derived": "as stated", "stated": "as stated"}


def days(data: WeekData) -> str:
    """The days of the report, in UTC."""
    if "/" not in data.week:
        return f"Monday {data.since:%Y-%m-%d} to Sunday {data.until - timedelta(days=1):%Y-%m-%d}, UTC"
    if data.since.time() == data.until.time() == time():  # whole days, the last of them included
        return f"{data.since:%Y-%m-%d} to {data.until - timedelta(days=1):%Y-%m-%d}, UTC"
    return f"{data.since:%Y-%m-%d %H:%M} to {data.until:%Y-%m-%d %H:%M}, UTC"


def at(lane: LaneWeek, part: str) -> Link:
    """A lane's name, which leads to a part of it."""
    return Link(plain(lane.name), place(lane.name, part))


def machine(item: BestResult) -> str:
    """The chips of a result."""
    return f"{number(item.chips)} × {plain(item.accelerator or 'unknown chip', NAME)}"


def shape(item: BestResult, lane: LaneWeek) -> str:
    """What a result ran, as far as it takes to tell it from the others of its lane."""
    names = " ".join(plain(name, NAME) for name in item.names(lane.ranked)) or "a model not stated"
    length = f"{item.sequence_length:,} tokens" if item.sequence_length else "a sequence not stated"
    return ", ".join([names, length, machine(item)])


def brief(text: str) -> str:
    """What a rule found, without what it adds in brackets or after a colon where that is long."""
    text = _CODE_NAME.sub(lambda match: match[0].replace("_", " "), plain(text, NOTE))
    if len(text) <= BRIEF:
        return text
    ends = [text.rfind(mark, 0, BRIEF) for mark in (" (", ": ", "; ")]
    return text[: max(ends)] if max(ends) > 0 else plain(text, BRIEF)


def distinct(items: Iterable[JudgedPair]) -> list[JudgedPair]:
    """A change at several shapes once, and what changes nothing last."""
    once: dict[tuple[object, ...], JudgedPair] = {}
    for item in items:
        once.setdefault((item.effect, *((one.path, one.a, one.b) for one in item.moved)), item)
    return sorted(once.values(), key=lambda item: item.effect == "equivalent")


def moved(items: Sequence[Moved]) -> Cell:
    """The leaves that moved, four of them at most."""
    cells: list[Cell] = [(Code(item.path), f" {item.a} → {item.b}") for item in items[:4]]
    left = len(items) - 4
    return joined([*cells, *([(f"{left} more",)] if left > 0 else [])]) or ("nothing that is stated",)


def finding(item: Any) -> Cell:
    """What a rule found, after its name."""
    text = plain(item.found, NOTE)
    return (rule(item.code, item.name), f": {text}") if item.code else (text,)


def minutes(seconds: float | None) -> str:
    """Seconds as minutes, to a tenth."""
    return "~" if seconds is None else f"{seconds / 60:,.1f}"


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "amount": amount,
    "bridgeable": comparisons.bridgeable,
    "brief": brief,
    "busiest": comparisons.busiest,
    "change": change,
    "code": lambda text: Code(plain(text)),
    "command": lambda text: Code(plain(text), command=True),
    "day": lambda at: f"{at:%Y-%m-%d}",
    "distinct": distinct,
    "finding": finding,
    "gap": ceilings.gap,
    "gib": gib,
    "known": lambda codes, rules: cited.known(rules, codes).values(),
    "lanes": lambda lanes: joined((at(lane, "frontier"),) for lane in lanes),
    "largest": comparisons.largest,
    "leads": numbered,
    "links": links,
    "metric": lambda name: metrics.get(name).title,
    "minute": lambda at: f"{at:%Y-%m-%d %H:%M}",
    "minutes": minutes,
    "missing": comparisons.missing,
    "moment": lambda at: f"{at:%Y-%m-%d %H:%M:%S}",
    "moved": moved,
    "named": failures.named,
    "named_link": link,
    "note": lambda text, most=NOTE: plain(text, most),
    "now": claims.now,
    "number": number,
    "ordinals": ordinals,
    "percent": percent,
    "receipt": lambda ref: Link(plain(ref.name).strip() or ref.short, ref.anchor),
    "rule": rule,
    "self_check": checks.overall,
    "settling": comparisons.settling,
    "short": lambda text: plain(text, NAME),
    "source": lambda source: _SOURCES.get(source, source),
    "span": lambda item: span(item.low, item.high),
    "spent": spent,
    "status": marked,
    "was": claims.was,
    "why": comparisons.why,
}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "at": at,
    "counted": counted,
    "grade": lambda grade: Mark(ceilings.STATES[grade], grade),
    "days": days,
    "link": Link,
    "machine": machine,
    "mark": Mark,
    "place": place,
    "rule": rule,
    "shape": shape,
}
