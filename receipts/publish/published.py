"""Published results as a page: the spread of each submission, pairs one axis apart, two submissions axis by axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from receipts.publish.page import Page, Section, Table, table_of
from receipts.publish.text import plain
from receipts.questions.published import SubmissionPair, SubmissionSpread

SHOWN_AXES = 6
SHOWN_PAIRS = 40
LONGEST = 80


def page(listed: Sequence[SubmissionSpread], compared: Sequence[SubmissionPair]) -> Page:
    """All submissions, and the pairs that are nearest to each other."""
    intro = "Published, not yours. Step time is the median launch; the spread is that of launches."
    groups = groupby(listed, key=lambda item: (item.benchmark, item.accelerator))
    spreads = [Section("", " on ".join(of), tables=(_spreads(list(group)),)) for of, group in groups]
    pairs = Section("", "What differs between two submissions", tuple(_about(compared)), tables=(_pairs(compared),))
    return Page("Published results", lead=(intro,), sections=(*spreads, pairs))


def pair_page(pair: SubmissionPair) -> Page:
    """Two submissions, axis by axis."""
    members = (member for change in pair.apart.changed for member in change.members)
    table = table_of("", "axis | A | B", ((item.path, _cell(item.a), _cell(item.b)) for item in members))
    lead = f"against {pair.a.context}: {_effect(pair)}"
    sections = (Section("", "", tables=(table,)), Section("", "", tuple(_verdict(pair))))
    return Page(pair.b.context, lead=(lead,), sections=sections)


def _verdict(pair: SubmissionPair) -> Iterator[str]:
    if pair.lopsided:
        yield f"One side alone states: {', '.join(pair.lopsided)}."
    neither = sorted({item.axis for item in pair.apart.unknown} - set(pair.lopsided))
    if neither:
        yield f"Neither states: {', '.join(neither)}."
    count = len(pair.apart.changed)
    if pair.one_axis:
        axis = pair.apart.axes[0]
        yield f"One stated axis differs, {axis}: the effect is its, or that of an axis which neither states."
    elif not count and not pair.lopsided:
        yield "No stated axis differs: the effect is that of the machines, or of an axis which neither states."
    else:
        yield f"{count} axes differ and {len(pair.lopsided)} may: no axis alone explains the effect."


def _spreads(group: Sequence[SubmissionSpread]) -> Table:
    rows = (
        (
            item.context,
            str(item.like.stated.get("hardware.chips", "~")),
            f"{len(item.seconds)} of {len(item.launches)}",
            str(item.like.stated.get("batch.global_batch", "~")),
            f"{item.location:.4g}" if item.location is not None else "~",
            f"{item.spread:.2%}" if item.spread is not None else "~",
        )
        for item in group
    )
    return table_of("", "submission | #chips | #launches | #global batch | step [s] | #spread", rows)


def _about(compared: Sequence[SubmissionPair]) -> Iterator[str]:
    single = sum(pair.one_axis for pair in compared)
    yield f"{single} of {len(compared)} pairs on one accelerator are one axis apart, by what both state."
    yield "An axis that one side alone states may differ; what neither states is not counted."


def _pairs(compared: Sequence[SubmissionPair]) -> Table:
    rows = (
        (pair.a.context, pair.b.context, _effect(pair), _differs(pair), str(len(pair.lopsided)))
        for pair in compared[:SHOWN_PAIRS]
    )
    return table_of("", "A | B | B over A | differs | #may differ", rows)


def _differs(pair: SubmissionPair) -> str:
    axes = pair.apart.axes
    more = f" and {len(axes) - SHOWN_AXES} more" if len(axes) > SHOWN_AXES else ""
    return ", ".join(axes[:SHOWN_AXES]) + more or "nothing that is stated"


def _effect(pair: SubmissionPair) -> str:
    effect = pair.effect
    if effect is None or effect.ratio is None or effect.low is None or effect.high is None:
        return "~ (fewer than three launches on a side)"
    return f"{effect.ratio:.3f} ({effect.low:.3f} to {effect.high:.3f})"


def _cell(value: object) -> str:
    return "not stated" if value is None else plain(value, LONGEST)
