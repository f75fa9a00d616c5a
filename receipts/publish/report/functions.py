"""What the templates of a report may call on its values: filters, and functions that link to parts of the page.

Comparisons of a lane are put in words here: what undecided ones wait for, why others are rejected, and which changes
are the largest.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.base import units
from receipts.base.units import counted
from receipts.base.untrusted_text import plain
from receipts.judging.rule import Topic
from receipts.metrics.chip_pressure import ordinals
from receipts.publish.page import Cell, Code, Link, Mark, State, marked
from receipts.publish.report.page import MIN_ROWS, joined, known_rules, link, links, numbered, place, rule
from receipts.publish.text import NOTE, amount, change, gib, number, percent, span, words
from receipts.questions import ceiling
from receipts.questions.week import data, events, failures
from receipts.questions.week.failures import spent
from receipts.questions.week.survival import is_gain

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.questions.week.collect import WeekData
    from receipts.questions.week.data import AwaitedRule, BestResult, JudgedPair, LaneWeek, Moved, RefusedPairs
    from receipts.questions.week.failures import FailureCause, Failures


MAX_REASONS = 4
say = words("compare")


def settling(
    shown: Sequence[JudgedPair], rules: RuleSet
) -> tuple[list[Cell], list[Cell], list[tuple[JudgedPair, list[Cell]]]]:
    """What all of some undecided comparisons wait for, what several do, and each with what it waits for beside that.

    A notebook's rows lack the same facts one and all.
    """
    of_unknown = rules.about(Topic.UNKNOWN)
    settle = [_settles(item, of_unknown) for item in shown]
    counts = Counter(cell for own in settle for cell in own)
    common = [cell for cell, count in counts.items() if count == len(settle) > 1]
    often = [cell for cell, count in counts.items() if MIN_ROWS <= count < len(settle) and len(cell) > 1]
    # Of what several wait for, the rule alone.
    own = [[cell[:1] if cell in often else cell for cell in cells if cell not in common] for cells in settle]
    return common, often, list(zip(shown, own, strict=True))


def _settles(item: JudgedPair, of_unknown: Sequence[str]) -> list[Cell]:
    """What an undecided comparison waits for, each in a phrase; the rules on unknown axes share one."""
    parts: list[Cell] = []
    if item.unknown:
        shown = ", ".join(plain(name) for name in item.unknown[:4])
        left = len(item.unknown) - 4
        parts.append((*map(rule, of_unknown[:1]), f": state {shown}{f' and {left} more' if left > 0 else ''}"))
    reasons = (reason for reason in item.reasons[:MAX_REASONS] if reason.code not in of_unknown)
    parts += [(rule(reason.code), f": {reason.do}") for reason in reasons]
    if item.why and (not parts or item.path == "witnessed"):
        parts.append((item.why,))
    return list(dict.fromkeys(parts)) or [("~",)]


def why(item: JudgedPair, rules: RuleSet) -> Cell:
    """Why a comparison is rejected."""
    of_axes = rules.about(Topic.AXES)
    several = len(item.counted) > 1 and any(reason.code in of_axes for reason in item.reasons)
    axes = ", ".join(map(plain, item.counted))
    changed = say("several_axes", count=len(item.counted), moved=axes)
    parts: list[Cell] = [(*map(rule, of_axes[:1]), f" {changed}")] if several else []
    for reason in item.reasons[:MAX_REASONS]:
        if not several or reason.code not in of_axes:
            sides = f" on {reason.side}" if reason.side else ""
            before, _, after = say("offense", name="\0", sides=sides, found=reason.found).partition("\0")
            parts.append(tuple(part for part in (before, rule(reason.code, reason.name), after) if part))
    return joined(parts, "; ") or (item.why or "~",)


def news(data: WeekData) -> list[tuple[LaneWeek, JudgedPair]]:
    """Accepted changes with their lanes, each change once: the largest gain first, what changes nothing last."""
    every = [(lane, item) for lane in data.lanes for item in distinct(lane.accepted)]

    def order(item: JudgedPair) -> tuple[bool, bool, float]:
        lost = not is_gain(item.metric, item.effect, item.ratio)
        return item.effect == "equivalent", lost, -abs(math.log(item.ratio or 1.0))

    return sorted(every, key=lambda one: order(one[1]))


def subject(item: JudgedPair) -> str:
    """What changed, in few words: the leaf's last part and its values."""
    if not item.moved:
        return "a change that is not stated"
    one, *others = item.moved
    more = f" and {len(others)} more" if others else ""
    return plain(f"{one.path.rpartition('.')[2].replace('_', ' ')} {one.a} → {one.b}{more}", NAME)


def headlines(items: Sequence[tuple[LaneWeek, JudgedPair]]) -> list[str]:
    """Accepted changes as a lead says them, each subject once."""
    sentences: dict[str, str] = {}
    for lane, item in items:
        size = f"{abs((item.ratio or 1.0) - 1.0) * 100:.1f} % {item.word}"
        effect = "changes nothing that matters" if item.effect == "equivalent" else f"is {size}"
        sentences.setdefault(subject(item), f"{subject(item)} {effect} on {plain(lane.name)}")
    return list(sentences.values())


def rejections(data: WeekData) -> list[tuple[str, int, LaneWeek, RefusedPairs]]:
    """Why comparisons are rejected, in words: how many for each reason, the most frequent first, with an example."""
    by_words: dict[str, tuple[int, LaneWeek, RefusedPairs]] = {}
    for lane in data.lanes:
        for item in lane.refusals:
            words = "changed several settings at once" if item.axes else item.name.replace("_", " ") or item.found
            pairs, *example = by_words.get(words, (0, lane, item))
            by_words[words] = (pairs + item.pairs, *example)  # type: ignore[assignment]  # the example stays
    return sorted(((words, *held) for words, held in by_words.items()), key=lambda one: -one[1])


def lone(data: WeekData) -> list[tuple[LaneWeek, BestResult]]:
    """Results of the week that nobody repeated, or whose launches do not agree; those that can be repeated first."""
    every = [(lane, item) for lane in data.lanes for item in lane.alone]
    return sorted(every, key=lambda one: (not one[1].repeatable, one[1].standing != "peak"))


_OUTCOMES: Final = {"oom": "Out of memory", "nan": "NaN", "crash": "Crash", "hang": "Hang", "preempted": "Preempted"}


def cause(item: FailureCause) -> str:
    """How launches failed, with what they printed where that says more than the word."""
    name = _OUTCOMES.get(item.outcome, item.outcome)
    return f"{name} ({plain(item.texts[0], 60)})" if item.texts and item.outcome in ("crash", "hang") else name


def where(item: FailureCause) -> str:
    """The shape at which launches failed; empty where none is stated."""
    sizes = (
        f"{item.sequence_length:,} tokens" if item.sequence_length else "",
        f"micro batch {item.micro_batch:,}" if item.micro_batch else "",
    )
    machine = f"{item.chips:,} × {plain(item.accelerator or 'unknown chip')}" if item.chips else ""
    words = ", ".join(filter(None, (" × ".join(filter(None, sizes)), machine)))
    return f", {words}" if words else ""


def tally(failed: Failures) -> str:
    """How many launches failed in each way."""
    counts: Counter[str] = Counter()
    for item in failed.causes:
        counts[_OUTCOMES.get(item.outcome, item.outcome).lower().replace("nan", "NaN")] += item.launches
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


def busiest(data: WeekData) -> LaneWeek:
    """The lane with most undecided comparisons."""
    return max(data.lanes, key=lambda lane: lane.inconclusive.total)


def undecided_gains(lane: LaneWeek) -> list[JudgedPair]:
    """Undecided changes of one axis that would be gains if they held, the largest first."""
    return [
        item
        for item in lane.inconclusive
        if item.comparable == "yes" and item.moved and is_gain(item.metric, "indicated", item.ratio)
    ]


def largest(data: WeekData) -> list[tuple[LaneWeek, JudgedPair]]:
    """Three of them of each lane."""
    return [(lane, item) for lane in data.lanes for item in undecided_gains(lane)[:3]]


def missing(data: WeekData) -> list[AwaitedRule]:
    """What undecided comparisons of all lanes wait for, what most of them wait for first."""
    lacks: dict[str, AwaitedRule] = {}
    for lane in data.lanes:
        for item in lane.waiting:
            held = lacks.get(item.code)
            # The remedy of the lane where it would settle most.
            kept = item if held is None or item.pairs > held.pairs else held
            lacks[item.code] = replace(kept, pairs=item.pairs + (held.pairs if held is not None else 0))
    return sorted(lacks.values(), key=lambda item: (-item.pairs, effort(item.do)))


def effort(do: str) -> int:
    """How often something is to be done, where it says so."""
    count = re.search(r"\d+", do)
    return int(count[0]) if count else 0


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
    end = max(text.rfind(mark, 0, BRIEF) for mark in (" (", ": ", "; ", ", expected"))
    return text[:end] if end > BRIEF // 3 else plain(text, BRIEF)  # what is shorter names the leaf alone


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


_GRADES: Final[dict[str, State]] = {"validated": "yes", "repeated": "open", "peak": "shown"}


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "amount": amount,
    "cause": cause,
    "brief": brief,
    "busiest": busiest,
    "change": change,
    "code": lambda text: Code(plain(text)),
    "command": lambda text: Code(plain(text), command=True),
    "day": lambda at: f"{at:%Y-%m-%d}",
    "distinct": distinct,
    "finding": finding,
    "gap": ceiling.gap,
    "gib": gib,
    "headlines": headlines,
    "known": lambda codes, rules: known_rules(rules, codes).values(),
    "lanes": lambda lanes: joined((at(lane, "frontier"),) for lane in lanes),
    "largest": largest,
    "lone": lone,
    "leads": numbered,
    "links": links,
    "metric": lambda name: metrics.get(name).title,
    "minute": lambda at: f"{at:%Y-%m-%d %H:%M}",
    "minutes": minutes,
    "missing": missing,
    "moment": lambda at: f"{at:%Y-%m-%d %H:%M:%S}",
    "moved": moved,
    "named": failures.named,
    "named_link": link,
    "news": news,
    "note": lambda text, most=NOTE: plain(text, most),
    "now": events.status_now,
    "number": number,
    "ordinals": ordinals,
    "percent": percent,
    "receipt": lambda ref: Link(plain(ref.name).strip() or ref.short, ref.anchor),
    "rejections": rejections,
    "rule": rule,
    "self_check": data.overall,
    "settling": settling,
    "short": lambda text: plain(text, NAME),
    "source": lambda source: _SOURCES.get(source, source),
    "span": lambda item: span(item.low, item.high),
    "spent": spent,
    "status": marked,
    "subject": subject,
    "tenths": units.change,
    "tally": tally,
    "was": events.status_before,
    "where": where,
    "why": why,
}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "at": at,
    "counted": counted,
    "grade": lambda grade: Mark(_GRADES[grade], grade),
    "days": days,
    "link": Link,
    "machine": machine,
    "mark": Mark,
    "place": place,
    "rule": rule,
    "shape": shape,
}
