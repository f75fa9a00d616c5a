"""What a report says in a minute: a few sentences above its sections, each leading to where it is told in full.

Lanes stand in the order of their names, each for itself: nothing here is put above something of another lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.judging.topic import Topic
from receipts.publish.report import nextup
from receipts.publish.report.lane import place
from receipts.publish.report.page import Cell, Code, Link, Section, joined, link, numbered, rule
from receipts.publish.report.sections import claims
from receipts.publish.report.text import change, number, percent, plain, span

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.data import Judged, LaneWeek, Result, WeekData

MOST: Final = 3  # sentences of a lane, or of what lanes share, under one topic
FEW_LANES: Final = 3  # more of them have a sentence each
REASON: Final = 90


@dataclass(frozen=True, slots=True)
class Point:
    """One sentence. `says` is the whole of it; `parts` is the same with its links; `lane` None where it is of all."""

    topic: str
    lane: str | None
    says: str
    parts: Cell


def summary(data: WeekData, rules: RuleSet) -> tuple[Point, ...]:
    """The sentences, topic by topic."""
    topics: tuple[tuple[str, Iterable[tuple[str | None, Cell]]], ...] = (
        ("frontier", _frontier(data)),
        ("accepted", ((lane.name, cell) for lane in data.lanes for cell in _accepted(lane, _most(data)))),
        ("refused", ((lane.name, cell) for lane in data.lanes for cell in _refused(lane, rules.about(Topic.AXES)))),
        ("did not survive", _lost(data)),
        ("path", _path(data)),
        ("memory", _memory(data)),
        ("failures", _failures(data)),
        ("claims", _claims(data)),
        ("decisions", _decisions(data)),
        ("next", ((None, cell) for cell in nextup.steps(data))),
    )
    return tuple(Point(topic, lane, text(cell), cell) for topic, found in topics for lane, cell in found)


def text(cell: Cell) -> str:
    """A cell as it is read."""
    return "".join(part if isinstance(part, str) else part.text for part in cell)


def section(points: Sequence[Point], nothing: Sequence[str]) -> Section:
    """The sentences under their topics, and what there is nothing to tell of."""
    topics = dict.fromkeys(point.topic for point in points)
    told = [(topic, tuple(point.parts for point in points if point.topic == topic)) for topic in topics]
    if nothing:
        told.append(("nothing on", ((f"{', '.join(nothing)}.",),)))
    return Section("summary", "In short", points=tuple(told))


# What took the frontier


def _frontier(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    still: list[Cell] = []
    none: list[Cell] = []
    for lane in data.lanes:
        moved = [item for item in lane.frontier if item.change is not None and item.change.state != "same"]
        shown = moved[: _most(data)]
        for item in shown:
            yield lane.name, (_lane(lane, "frontier"), ": ", *_took(item, lane))
        if len(moved) > len(shown):
            yield lane.name, (_lane(lane, "frontier"), f": and {_many(len(moved) - len(shown), 'more shape', 's')}.")
        if not moved:
            (still if lane.frontier else none).append((_lane(lane, "frontier"),))
    if still:
        yield None, ("Did not move: ", *joined(still), ".")
    if none:
        yield None, ("No accepted result yet: ", *joined(none), ".")


def _took(item: Result, lane: LaneWeek) -> Cell:
    made = item.change
    rate = numbered(number(item.tokens_per_second_per_chip), item.receipt)
    if made is None or made.was is None:
        return (
            *link(item.receipt),
            f" is the first accepted result of {_shape(item, lane)}: ",
            *rate,
            " tokens/s/chip.",
        )
    apart = ""
    if made.comparable is not None and made.comparable != "yes":
        apart = f"; {len(made.moved)} axes moved between them, so none is its cause" if len(made.moved) > 1 else ""
        apart = apart or "; the two may not be compared"
    over = f" tokens/s/chip, {change(made.ratio)} % ({span(made.low, made.high)}) over "
    return (*link(item.receipt), f" took {_shape(item, lane)}: ", *rate, over, *link(made.was), f"{apart}.")


def _shape(item: Result, lane: LaneWeek) -> str:
    machine = f"{number(item.chips)} × {plain(item.accelerator or '~', REASON)}"
    names = " ".join(plain(name, REASON) for name in item.names(lane.frontier)) or "a model not stated"
    return ", ".join([names, f"{number(item.sequence_length)} tokens", machine])


# Comparisons


def _most(data: WeekData) -> int:
    """Sentences that a lane may have under one topic."""
    return MOST if len(data.lanes) <= FEW_LANES else 1


def _accepted(lane: LaneWeek, most: int) -> Iterator[Cell]:
    # A change at several shapes is told once, and what changes nothing last.
    told: dict[tuple[object, ...], Judged] = {}
    for item in lane.accepted:
        told.setdefault((item.effect, *((one.path, one.a, one.b) for one in item.moved)), item)
    shown = sorted(told.values(), key=lambda item: item.effect == "equivalent")[:most]
    for item in shown:
        changed = f"{change(item.ratio)} % ({span(item.low, item.high)})"
        metric = metrics.get(item.metric).title
        leads = Link(changed, item.b[0].anchor)
        yield (_lane(lane, "accepted"), ": ", *_moved(item), f" is {item.effect}, {metric} ", leads, ".")
    left = len(lane.accepted) - len(shown) + lane.accepted_more
    if left:
        yield _lane(lane, "accepted"), f": and {left:,} more."


def _moved(item: Judged) -> Cell:
    parts: list[Cell] = [(Code(one.path), f" {one.a} → {one.b}") for one in item.moved[:2]]
    left = len(item.moved) - 2
    return joined([*parts, *([(f"{left} more",)] if left > 0 else [])], " and ") or ("a change that nobody stated",)


def _refused(lane: LaneWeek, of_axes: Sequence[str]) -> Iterator[Cell]:
    if not lane.refused:
        return
    first: dict[tuple[str, str], Judged] = {}
    count: Counter[tuple[str, str]] = Counter()
    for item in lane.refused:
        key = _reason(item, of_axes)
        count[key] += 1
        first.setdefault(key, item)
    why = joined(
        (rule(*key), f" ({_example(key[0], first[key], many, of_axes)})") if key[0] else (f"others ({many})",)
        for key, many in count.most_common()
    )
    total = len(lane.refused) + lane.refused_more
    shown = f", of the first {len(lane.refused)}" if lane.refused_more else ""
    yield (_lane(lane, "refused"), f": {total:,} comparison{'s' if total != 1 else ''} refused{shown}: ", *why, ".")


def _reason(item: Judged, of_axes: Sequence[str]) -> tuple[str, str]:
    """The rule that refuses it before all others."""
    found = {reason.code: reason.name for reason in item.reasons}
    code = next(iter((*of_axes, *found) if len(item.counted) > 1 else found), "")
    return code, found.get(code, "many axes" if code in of_axes else "")


def _example(code: str, item: Judged, many: int, of_axes: Sequence[str]) -> str:
    """What a rule found, of the first of so many comparisons."""
    found = next((plain(reason.found, REASON) for reason in item.reasons if reason.code == code), "")
    found = " + ".join(map(plain, item.counted[:MOST])) if code in of_axes else found
    if not found:
        return f"{many:,}"
    return found if many == 1 else f"{many:,}, such as {found}"


# What lanes share


def _lost(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    made = data.sections.survival
    for item in made.vanished[:MOST]:
        moved = joined(((Code(one.path), f" {one.a} → {one.b}") for one in item.moved[:2]), " and ")
        there = item.there
        ends = "it was lost"
        if there is not None:
            ends = f"{change(there.ratio)} %, {there.effect}" if there.ratio is not None else there.effect
        gained = f" gained {change(item.local.ratio)} % at {plain(item.local.shape)}; at {plain(item.target)}: "
        yield item.lane, (Link(plain(item.lane), "survival-vanished"), ": ", *moved, gained, f"{ends}.")
    left = len(made.vanished) - MOST
    if left > 0:
        yield None, ("And ", Link(_many(left, "more gain", "s"), "survival-vanished"), ".")


def _path(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    count: Counter[tuple[str, str]] = Counter()
    for item in data.incidents:
        count[item.code, item.name] += len(item.receipts) + item.receipts_more
    if count:
        found = joined((rule(*key), f" ({_many(many, 'launch', 'es')})") for key, many in sorted(count.items()))
        more = f" And {data.incidents_more:,} more findings." if data.incidents_more else ""
        yield None, (Link("Incidents", "incidents"), ": ", *found, f".{more}")


def _memory(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    tight = [item for item in data.headroom if item.left is not None and item.left < item.wanted]
    for item in tight[:1]:
        others = len(tight) - 1
        also = f" {_many(others, 'more launch', 'es')} keep{'s' if others == 1 else ''} too little." if others else ""
        wants = f"its lane wants {percent(item.wanted, 0)} %."
        kept = f" keeps {percent(item.left)} % of the limit of chip {item.chip}; {wants}"
        yield item.lane, (Link("Tightest", "memory"), ": ", *link(item.receipt), f"{kept}{also}")
    apart = [item for item in data.headroom if item.skew is not None and item.skew >= SKEWED]
    for item in apart[:1]:
        lead = f" leads by {percent(item.skew)} % over the median chip."
        yield item.lane, (Link("Skewed", "memory"), ": ", *link(item.receipt), f", where chip {item.leaders[0]}{lead}")


SKEWED: Final = 0.05  # of the median chip: from there on the user's own notes look into it


def _failures(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    total = len(data.failures) + data.failures_more
    if not total:
        return
    kinds = Counter(item.outcome for item in data.failures)
    shown = ", ".join(f"{many} {kind}" for kind, many in sorted(kinds.items()))
    known = data.sections.repeats.found
    again: Cell = ()
    if known:
        times = sum(len(item.again) + item.again_more for item in known)
        minutes = sum(item.seconds or 0.0 for item in known) / 60
        again = (" ", Link(f"{times:,} repeated a known failure", "repeats"), f", for {minutes:,.1f} minutes.")
    yield None, (Link(_many(total, "launch", "es"), "failures"), f" did not end well: {shown}.", *again)


def _claims(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    made = data.sections.claims
    for item in made.stale[:MOST]:
        quoted = f", quoted in {', '.join(map(plain, item.documents[:2]))}" if item.documents else ""
        yield None, (Link("Stale", "claims-stale"), ": ", Code(item.id), f"{quoted}.")
    stale = {item.id for item in made.stale}
    changed = [item for item in made.changed if item.id not in stale]
    if changed:
        told = joined((Code(item.id), f" {claims.was(item)} → {claims.now(item)}") for item in changed[:MOST])
        left = len(changed) - MOST + made.changed_more
        yield None, (Link("Changed", "claims-changed"), ": ", *told, f"{f' and {left} more' if left > 0 else ''}.")


def _decisions(data: WeekData) -> Iterator[tuple[str | None, Cell]]:
    made = data.sections.decisions
    for item in made.made[:MOST]:
        named: Cell = link(item.receipt) if item.receipt is not None else (Code(item.id[:12]),)
        yield item.lane, (Link(item.decision, "decisions"), " ", *named, f": {plain(item.reason, REASON)}")
    left = len(made.made) - MOST + made.more
    if left > 0:
        yield None, (Link(f"{left:,} more", "decisions"), ".")


def _lane(lane: LaneWeek, part: str) -> Link:
    return Link(plain(lane.name), place(lane.name, part))


def _many(count: int, what: str, plural: str) -> str:
    return f"{count:,} {what}{plural if count != 1 else ''}"
