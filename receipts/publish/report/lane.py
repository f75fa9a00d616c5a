"""One lane of the weekly report in words: its results, what it sustained, and its comparisons."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from receipts.publish.page import Cell, Figure, Mark, Section, table_of
from receipts.publish.report import comparisons
from receipts.publish.report.page import (
    folded,
    joined,
    link,
    more,
    numbered,
    rule,
    without,
    without_empty,
    without_repeated,
)
from receipts.publish.report.pictures import over_sequence, over_weeks
from receipts.publish.report.sections import ceilings
from receipts.publish.report.sections.rules import known
from receipts.publish.text import change, gib, number, percent, plain, span

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.publish.report.data import BestResult, LaneWeek
    from receipts.publish.report.pictures.over_sequence import RepeatedResult
    from receipts.publish.report.sections.gathered import LanePictures
    from receipts.publish.words import Words
    from receipts.questions.answers import AnsweredQuestion

_NUMBERS = "result | rate [tokens/s/chip] | MFU [%] | peak per chip [GiB] | work [tokens a step a chip] | regime"
MOST_CODES = 12


def lane_section(
    lane: LaneWeek,
    reached: ceilings.Ceilings,
    drawn: LanePictures,
    rules: RuleSet,
    words: Words,
    *,
    weeks: bool = True,
) -> Section:
    """The frontier of a lane, what it sustained, and its comparisons; ``weeks`` where it is drawn here over weeks."""
    head = f"{lane.title} (version {lane.version})."
    kept, nothing = folded((
        _results(lane, reached, drawn, rules, words, weeks=weeks),
        *comparisons.sections(lane, drawn, rules, words, lambda part: place(lane.name, part)),
        ceilings.section(place(lane.name, "ceilings"), reached),
    ))  # fmt: skip
    return Section(
        place(lane.name), f"Lane {plain(lane.name)}", sentences=(head, *without(nothing)), sections=tuple(kept)
    )


def place(name: str, part: str = "") -> str:
    """Where a lane is on the page, or a part of it: a lane's name may be anything that somebody wrote."""
    slug = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    if slug != name:
        slug = f"{slug[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"lane-{slug}-{part}" if part else f"lane-{slug}"


def _results(
    lane: LaneWeek,
    reached: ceilings.Ceilings,
    drawn: LanePictures,
    rules: RuleSet,
    words: Words,
    *,
    weeks: bool,
) -> Section:
    """The proven results and the peaks, and the reported ones below: a row each, with the five answers as columns."""
    anchor = place(lane.name, "frontier")
    every = (*lane.frontier, *lane.peaks, *lane.stated)
    if not every:
        return Section(anchor, "Frontier", sentences=(words("frontier_empty"),))
    changed = any(item.change is not None for item in every)
    beside = {item.receipt: item for item in drawn.repeated}
    common = _common(lane.stated)
    ranked = [
        *((_proof(item), item) for item in _fastest_first((*lane.frontier, *lane.peaks))),
        *((Mark("open", "reported"), item) for item in _fastest_first(lane.stated)),
    ]
    questions = (answer.question for answer in every[0].answers)
    change_ = ("change [%, unadjusted]",) if changed else ()
    rows = (
        (
            mark,
            *_numbers(item),
            *map(answered, item.answers),
            *((_since(item),) if changed else ()),
            _receipt(item, beside.get(item.receipt.id), common),
        )
        for mark, item in ranked
    )
    after = (
        *more(lane.frontier_more, "proven shapes"),
        *more(lane.peaks_more, "peaks"),
        *more(lane.stated_more, "reported shapes"),
        *(f"MFU: {basis}." for basis in dict.fromkeys(item.mfu_basis for item in every) if basis),
    )
    header = " | ".join((_NUMBERS, *questions, *change_, "receipt"))
    every_row = table_of(f"Results of {plain(lane.name)}, the best of each shape", header, rows, after)
    table, repeated = without_repeated(without_empty(every_row))
    cited = joined((rule(item.code, item.name),) for item in known(rules, common).values())
    points = (("reported ones wait for", (cited,)),) if cited else ()
    return Section(
        anchor,
        "Frontier",
        tables=(table,),
        figures=_figures(lane, reached, drawn, weeks=weeks),
        points=(*points, *repeated),
    )


def _proof(item: BestResult) -> Mark:
    return Mark("open", "peak") if item.is_peak else Mark("yes", "proven")


def _fastest_first(results: tuple[BestResult, ...]) -> list[BestResult]:
    return sorted(results, key=lambda item: -(item.tokens_per_second_per_chip or 0.0))


def answered(item: AnsweredQuestion) -> Cell:
    """An answer as a mark with the fact behind it."""
    return (Mark(item.state, item.brief),)


def _common(reported: tuple[BestResult, ...]) -> tuple[str, ...]:
    """Rules that every reported result of a lane waits for: a notebook's rows lack the same facts one and all."""
    return tuple(
        code
        for code in (reported[0].open_questions if reported else ())
        if all(code in item.open_questions for item in reported)
    )


def _figures(lane: LaneWeek, reached: ceilings.Ceilings, drawn: LanePictures, *, weeks: bool) -> tuple[Figure, ...]:
    figures = (
        over_sequence.figure(place(lane.name, "sequence"), lane, drawn.repeated, reached),
        over_weeks.figure(place(lane.name, "weeks"), lane.name, drawn.courses, drawn.week) if weeks else None,
    )
    return tuple(item for item in figures if item is not None)


def _numbers(item: BestResult) -> tuple[Cell, ...]:
    ref = item.receipt
    return (
        numbered(number(item.tokens_per_second_per_chip), ref),
        numbered(percent(item.mfu), ref),
        numbered(gib(item.peak_bytes), ref),
        numbered(number(item.work.tokens_per_chip), ref),
        (", ".join(item.work.regimes),) if item.work.regimes else (),
    )


def _receipt(item: BestResult, beside: RepeatedResult | None, common: tuple[str, ...]) -> Cell:
    """The receipt, how often its configuration was launched, and what it waits for that others do not."""
    parts: list[Cell] = [link(item.receipt)]
    if not item.in_week:
        parts.append(("ran earlier",))
    if beside is not None:
        parts.append((_alike(beside),))
    if item.launches is None:
        parts.append((_source(item),))
    own = [code for code in item.open_questions if code not in common]
    if own and item.launches is None:
        parts.append(("waits for ", *joined((rule(code),) for code in own[:MOST_CODES])))
    return joined(parts, " · ")


def _alike(beside: RepeatedResult) -> str:
    """How many launches of its configuration are valid, and where their mean lies."""
    if beside.launches < 2:
        return "one launch, not repeated"
    if beside.low is None:
        return f"{beside.launches} launches"
    return f"{beside.launches} launches, mean {number(beside.low)} to {number(beside.high)} tokens/s/chip (95 %)"


def _source(item: BestResult) -> str:
    """How its rate came to be."""
    words = {"steps": "from its steps", "derived": "as stated", "stated": "as stated"}
    source = words.get(item.rate_source, item.rate_source)
    return source if item.provenance == "measured" else f"{item.provenance}, {source}"


def _since(item: BestResult) -> Cell:
    """The change of the best of its shape since the interval began, with its interval, or why there is none."""
    since = item.change
    if since is None or since.was is None:
        return ("new best",) if since is not None and since.state == "new" else ("~",)
    if since.state == "same":
        return ("none",)
    shown = (*numbered(change(since.ratio), since.was), f" ({span(since.low, since.high)})")
    if since.comparable is None:
        return (*shown, ", the same configuration")
    moved = f", {', '.join(map(plain, since.moved))}" if since.moved else ""
    return (*shown, moved if since.comparable == "yes" else f", no comparison{moved and f': {moved[2:]}'}")
