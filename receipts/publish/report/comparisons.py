"""Comparisons of a lane in words: those that were accepted, those that were refused, and those left undecided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.judging.topic import Topic
from receipts.publish.page import Cell, Code, Figure, Section, marked, table_of
from receipts.publish.report.page import FEWEST_ROWS, joined, links, more, rule, without_empty, without_repeated
from receipts.publish.report.pictures import effects, step_times
from receipts.publish.text import change, plain, span

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.data import AwaitedRule, JudgedPair, LaneWeek, Moved, WeekData
    from receipts.publish.report.sections.gathered import LanePictures
    from receipts.publish.words import Words

UNMOVED: Cell = ("nothing that is stated",)
FEW_REASONS = 4
_SIDES = "A | B | changed | metric | change [%] | 95 % interval, unadjusted [%]"


def sections(
    lane: LaneWeek, drawn: LanePictures, rules: RuleSet, words: Words, place: Callable[[str], str]
) -> tuple[Section | str, ...]:
    """The three sections of a lane; ``place`` gives the anchor of a part of it."""
    return (
        _accepted(lane, drawn, place),
        _refused(lane, rules.about(Topic.AXES), words, place),
        _undecided(lane, drawn, rules.about(Topic.UNKNOWN), words, place),
    )


def _accepted(lane: LaneWeek, drawn: LanePictures, place: Callable[[str], str]) -> Section | str:
    anchor = place("accepted")
    if not lane.accepted:
        return "accepted comparisons"
    rows = ((*_sides(item), *_numbers(item), item.word, f"{len(item.a)} + {len(item.b)}") for item in lane.accepted)
    left = more(lane.accepted_more, "accepted comparisons, in comparisons.parquet")
    caption = f"{plain(lane.name)}: accepted comparisons, B against A"
    table = table_of(caption, f"{_SIDES} | effect | #launches", rows, left)
    plot = effects.figure(place("effects"), lane.name, (*lane.accepted, *lane.inconclusive))
    figures = (*((plot,) if plot is not None else ()), *_step_times(lane.accepted, drawn, place))
    return Section(anchor, "Accepted comparisons", tables=(table,), figures=figures)


def _sides(item: JudgedPair) -> tuple[Cell, Cell, Cell]:
    return links(item.a), links(item.b), moved(item.moved) or UNMOVED


def moved(items: Sequence[Moved]) -> Cell:
    """The leaves that moved, four of them at most."""
    cells: list[Cell] = [(Code(item.path), f" {item.a} → {item.b}") for item in items[:4]]
    left = len(items) - 4
    return joined([*cells, *([(f"{left} more",)] if left > 0 else [])])


def _numbers(item: JudgedPair) -> tuple[str, str, str]:
    star = "*" if item.stated and item.ratio is not None else ""
    return metrics.get(item.metric).title, f"{change(item.ratio)}{star}", span(item.low, item.high)


def _step_times(shown: Sequence[JudgedPair], drawn: LanePictures, place: Callable[[str], str]) -> tuple[Figure, ...]:
    """Pictures of those comparisons that are shown here."""
    ends = {(item.a[0].id, item.b[0].id) for item in shown}
    every = zip(step_times.figures(place("steps"), drawn.compared), drawn.compared, strict=True)
    return tuple(figure for figure, item in every if (item.a.id, item.b.id) in ends)


def _undecided(
    lane: LaneWeek, drawn: LanePictures, of_unknown: Sequence[str], words: Words, place: Callable[[str], str]
) -> Section | str:
    anchor, title = place("inconclusive"), "Undecided comparisons"
    if not lane.inconclusive:
        return "undecided comparisons"
    settle = [_settles(item, of_unknown) for item in lane.inconclusive]
    # What several of them wait for is above them: a notebook's rows lack the same facts.
    counts = Counter(cell for own in settle for cell in own)
    common = [cell for cell, count in counts.items() if count == len(settle) > 1]
    often = [cell for cell, count in counts.items() if FEWEST_ROWS <= count < len(settle) and len(cell) > 1]
    rows = (
        (
            *(*_sides(item), *_numbers(item), *_answers(item)),
            (*_more(own, common, often), *((Code(plain(item.next), command=True),) if item.next else ())),
        )
        for item, own in zip(lane.inconclusive, settle, strict=True)
    )
    after = more(lane.inconclusive_more, "undecided comparisons, in comparisons.parquet")
    header = f"{_SIDES} | comparable? | on its path? | effect | what would settle it"
    table = table_of(f"{plain(lane.name)}: undecided comparisons, B against A", header, rows, after)
    waits = (("all wait for", tuple(common)), ("several wait for", tuple(often)))
    points = tuple((name, cells) for name, cells in waits if cells)
    shown, repeated = without_repeated(without_empty(table))
    figures = _step_times(lane.inconclusive, drawn, place)
    return Section(
        anchor,
        title,
        sentences=(words("largest_first"),),
        tables=(shown,),
        figures=figures,
        points=(*points, *repeated),
    )


def _answers(item: JudgedPair) -> tuple[Cell, Cell, Cell]:
    return (marked(item.comparable),), (marked(item.path),), (marked(item.effect),)


def _more(own: Sequence[Cell], common: Sequence[Cell], often: Sequence[Cell]) -> Cell:
    """What a comparison waits for beside what all of them do; of what several do, the rule alone."""
    shown = (cell[:1] if cell in often else cell for cell in own if cell not in common)
    return joined(shown, "; ") or ("nothing more",)


def _settles(item: JudgedPair, of_unknown: Sequence[str]) -> list[Cell]:
    """What an undecided comparison waits for, each in a phrase; the rules on unknown axes share one."""
    parts: list[Cell] = []
    if item.unknown:
        shown = ", ".join(plain(name) for name in item.unknown[:4])
        left = len(item.unknown) - 4
        parts.append((*map(rule, of_unknown[:1]), f": state {shown}{f' and {left} more' if left > 0 else ''}"))
    reasons = (reason for reason in item.reasons[:FEW_REASONS] if reason.code not in of_unknown)
    parts += [(rule(reason.code), f": {reason.do}") for reason in reasons]
    if item.why and (not parts or item.path == "witnessed"):
        parts.append((item.why,))
    return list(dict.fromkeys(parts)) or [("~",)]


def _refused(lane: LaneWeek, of_axes: Sequence[str], words: Words, place: Callable[[str], str]) -> Section | str:
    anchor = place("refused")
    if not lane.refused:
        return "refused comparisons"
    rows = ((*_sides(item)[:2], _why(item, of_axes), _sides(item)[2]) for item in lane.refused)
    left = more(lane.refused_more, "refused comparisons, in comparisons.parquet")
    table = table_of(f"{plain(lane.name)}: refused comparisons", "A | B | why | what moved", rows, left)
    return Section(anchor, "Refused comparisons", sentences=(words("refused_note"),), tables=(table,))


def _why(item: JudgedPair, of_axes: Sequence[str]) -> Cell:
    parts: list[Cell] = []
    if len(item.counted) > 1:
        axes = ", ".join(map(plain, item.counted))
        parts.append((*map(rule, of_axes[:1]), f" {len(item.counted)} axes moved: {axes}"))
    for reason in item.reasons[:FEW_REASONS]:
        if reason.code in of_axes and parts:
            continue
        side = f" on {reason.side}" if reason.side else ""
        parts.append((rule(reason.code, reason.name), f"{side}: {reason.found}"))
    return joined(parts, "; ") or (item.why or "~",)


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
