"""The first screen of a report: what is fastest, what was decided and why, what failed, and what to do next.

Lanes stand in the order of their names, each for itself: nothing here is put above something of another lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.publish.page import Badge, Cell, State
from receipts.publish.report import comparisons
from receipts.publish.report.lane import place
from receipts.publish.report.sections import claims, failures
from receipts.publish.report.sections.retest import is_gain
from receipts.publish.report.words import TemplateWords
from receipts.publish.text import number, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import BestResult, JudgedPair, LaneWeek, WeekData

MOST: Final = 3  # sentences of a lane, or of what lanes share, under one topic
FEW_LANES: Final = 3  # more of them have a sentence each
STEPS: Final = 6
NAME: Final = 90
SKEWED: Final = 0.05  # of the median chip: from there on the user's own notes look into it
Points = tuple[tuple[str, tuple[Cell, ...]], ...]


def points(data: WeekData, words: TemplateWords) -> Points:
    """The sentences by topic; a topic without any is left out."""
    most = MOST if len(data.lanes) <= FEW_LANES else 1
    topics = (
        ("fastest", _fastest(data, words)),
        ("new best", _new_best(data, words, most)),
        ("accepted", _accepted(data, words, most)),
        ("refused", _refused(data, words)),
        ("undecided", _undecided(data, words)),
        ("did not survive", _lost(data, words)),
        ("path", _path(data, words)),
        ("memory", _memory(data, words)),
        ("failed", _failed(data, words)),
        ("claims", _claims(data, words)),
        ("decisions", _decisions(data, words)),
        ("next", islice(_next(data, words), STEPS)),
    )
    shown = ((topic, tuple(cells)) for topic, cells in topics)
    return tuple((topic, cells) for topic, cells in shown if cells)


def badges(data: WeekData, words: TemplateWords) -> tuple[Badge, ...]:
    """The numbers that stand largest."""
    counts = data.counts
    failed = data.sections.failures.launches
    numbers = [Badge(f"{counts.submitted:,}", words.text("runs", count=counts.submitted))]
    numbers += [Badge(f"{failed:,}", "failed", "no")] if failed else []
    numbers.append(Badge(f"{counts.valid:,}", "valid", "yes" if counts.valid else "open"))
    numbers += [Badge(f"{counts.open:,}", "open", "open")] if counts.open else []
    numbers += [Badge(f"{counts.invalid:,}", "invalid", "no")] if counts.invalid else []
    for lane in data.lanes[:FEW_LANES]:
        best = _best(lane.frontier) or _best(lane.stated)
        if best is not None:
            sentence = "fastest_peak" if best.is_peak else "fastest_proven" if lane.frontier else "fastest_reported"
            label = words.text(sentence, item=best, machine=_machine(best))
            state = "yes" if lane.frontier and not best.is_peak else "open"
            numbers.append(Badge(number(best.tokens_per_second_per_chip), label, state))  # type: ignore[arg-type]
    if data.compared:
        accepted, refused, undecided = totals(data)
        states: tuple[tuple[str, int, State], ...] = (
            ("accepted", accepted, "yes"),
            ("refused", refused, "no"),
            ("undecided", undecided, "open"),
        )
        # A color says that there is one.
        numbers += [Badge(f"{count:,}", name, state if count else None) for name, count, state in states]
    return tuple(numbers)


def totals(data: WeekData) -> tuple[int, int, int]:
    """Comparisons that were accepted, refused and left undecided."""
    return (
        sum(len(lane.accepted) + lane.accepted_more for lane in data.lanes),
        sum(len(lane.refused) + lane.refused_more for lane in data.lanes),
        sum(len(lane.inconclusive) + lane.inconclusive_more for lane in data.lanes),
    )


# What is fastest


def _best(results: Sequence[BestResult]) -> BestResult | None:
    """The repeated one with the highest rate a chip; a single launch where none is repeated."""
    rated = [item for item in results if item.tokens_per_second_per_chip is not None]
    return max(rated, key=lambda item: (not item.is_peak, item.tokens_per_second_per_chip or 0.0), default=None)


def _machine(item: BestResult) -> str:
    return f"{number(item.chips)} × {plain(item.accelerator or '~', NAME)}"


def _shape(item: BestResult, lane: LaneWeek) -> str:
    beside = (*lane.frontier, *lane.peaks, *lane.stated)
    names = " ".join(plain(name, NAME) for name in item.names(beside)) or "a model not stated"
    return ", ".join([names, f"{number(item.sequence_length)} tokens", _machine(item)])


def _at(lane: LaneWeek, part: str) -> dict[str, str]:
    return {"lane": lane.name, "place": place(lane.name, part)}


def _fastest(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    nothing = []
    for lane in data.lanes:
        proven, reported = _best(lane.frontier), _best(lane.stated)
        if proven is not None and not proven.is_peak:
            yield words("proven", item=proven, shape=_shape(proven, lane), **_at(lane, "frontier"))
        peak = _peak(lane, proven)
        if peak is not None:
            yield words("peak", item=peak, shape=_shape(peak, lane), **_at(lane, "frontier"))
        if reported is not None:
            codes = reported.open_questions
            yield words("reported", item=reported, shape=_shape(reported, lane), codes=codes, **_at(lane, "frontier"))
        if proven is None and reported is None:
            nothing.append((lane.name, place(lane.name, "frontier")))
    if nothing:
        yield words("nothing_fast", lanes=nothing)


def _peak(lane: LaneWeek, proven: BestResult | None) -> BestResult | None:
    """The fastest single launch, where it was faster than the best repeated result, or there is none."""
    peak = _best([item for item in (*lane.frontier, *lane.peaks) if item.is_peak])
    if peak is None or proven is None or proven.is_peak:
        return peak
    return peak if (peak.tokens_per_second_per_chip or 0.0) > (proven.tokens_per_second_per_chip or 0.0) else None


def _new_best(data: WeekData, words: TemplateWords, most: int) -> Iterator[Cell]:
    still = []
    for lane in data.lanes:
        moved = [item for item in lane.frontier if item.change is not None and item.change.state != "same"]
        for item in moved[:most]:
            yield words("new_best", item=item, shape=_shape(item, lane), **_at(lane, "frontier"))
        if len(moved) > most:
            yield words("more_best", count=len(moved) - most, **_at(lane, "frontier"))
        if lane.frontier and not moved:
            still.append((lane.name, place(lane.name, "frontier")))
    if still:
        yield words("unmoved", lanes=still)


# Comparisons


def _accepted(data: WeekData, words: TemplateWords, most: int) -> Iterator[Cell]:
    for lane in data.lanes:
        # A change at several shapes is named once, and what changes nothing last.
        once: dict[tuple[object, ...], JudgedPair] = {}
        for item in lane.accepted:
            once.setdefault((item.effect, *((one.path, one.a, one.b) for one in item.moved)), item)
        shown = sorted(once.values(), key=lambda item: item.effect == "equivalent")[:most]
        for item in shown:
            yield words("accepted", item=item, metric=_metric(item), **_at(lane, "accepted"))
        left = len(lane.accepted) - len(shown) + lane.accepted_more
        if left:
            yield words("more_accepted", count=left, **_at(lane, "accepted"))
    if data.compared and not totals(data)[0]:
        yield words("none_accepted", compared=data.compared)


def _metric(item: JudgedPair) -> str:
    return metrics.get(item.metric).title


def _refused(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    for lane in data.lanes:
        if lane.refused:
            total = len(lane.refused) + lane.refused_more
            yield words("refused", total=total, refusals=lane.refusals, **_at(lane, "refused"))


def _undecided(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    total = totals(data)[2]
    if total:
        waiting = comparisons.missing(data)
        yield words("undecided", total=total, waiting=waiting[: MOST + 1])
    largest = [(lane, item) for lane in data.lanes for item in _gains(lane)[:MOST]]
    if largest:
        shown = [
            (lane.name, place(lane.name, "inconclusive"), item, _metric(item)) for lane, item in largest[: 2 * MOST]
        ]
        yield words("largest", items=shown)


def _gains(lane: LaneWeek) -> list[JudgedPair]:
    """Undecided changes of one axis that would be gains if they held, the largest first."""
    return [
        item
        for item in lane.inconclusive
        if item.comparable == "yes" and item.moved and is_gain(item.metric, "indicated", item.ratio)
    ]


# What lanes share


def _lost(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    vanished = data.sections.survival.vanished
    for item in vanished[:MOST]:
        yield words("lost", item=item)
    if len(vanished) > MOST:
        yield words("more_lost", count=len(vanished) - MOST)


def _path(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    incidents = data.sections.incidents
    if incidents.found:
        yield words(
            "incidents", found=incidents.found[: 2 * MOST], more=len(incidents.found[2 * MOST :]) + incidents.more
        )


def _memory(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    tight = [item for item in data.headroom if item.left is not None and item.left < item.wanted]
    for item in tight[:1]:
        yield words("tight", item=item, others=len(tight) - 1)
    for item in [item for item in data.headroom if item.skew is not None and item.skew >= SKEWED][:1]:
        yield words("skewed", item=item)


def _failed(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    failed = data.sections.failures
    if not failed.launches:
        return
    causes = [(item.launches, failures.named(item)) for item in failed.causes[: 2 * MOST]]
    left = failed.launches - sum(many for many, _ in causes)
    yield words("failed", total=failed.launches, causes=causes, more=left)
    again = data.sections.repeats.found
    if again:
        times = sum(len(item.again) + item.again_more for item in again)
        seconds = sum(item.seconds or 0.0 for item in again)
        yield words("repeated", times=times, minutes=f"{seconds / 60:,.1f}" if seconds else "")


def _claims(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    known = data.sections.claims
    for item in known.stale[:MOST]:
        yield words("stale", item=item)
    stale = {item.id for item in known.stale}
    changed = [item for item in known.changed if item.id not in stale]
    if changed:
        shown = [(item.id, claims.was(item), claims.now(item)) for item in changed[:MOST]]
        yield words("claims", items=shown, more=len(changed) - len(shown) + known.changed_more)


def _decisions(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    decisions = data.sections.decisions
    for item in decisions.made[:MOST]:
        yield words("decided", item=item)
    left = len(decisions.made[MOST:]) + decisions.more
    if left:
        yield words("more_decided", count=left)


# What to do next, in the order in which it matters: what is wrong, what is unproven, what is untried


def _next(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    for item in [item for item in data.sections.incidents.found if item.level == "E"][:2]:
        yield words("mend", item=item)
    stale = data.sections.claims.stale
    names = list(dict.fromkeys(name for item in stale for name in item.documents))
    if names:
        yield words("mend_documents", names=names[:MOST], more=max(0, len(names) - MOST), claim=stale[0].id)
    for lane in data.lanes:
        # What is of an earlier week was named then.
        alone = [item.receipt for item in (*lane.frontier, *lane.peaks) if item.in_week and item.is_peak]
        if alone:
            left = max(0, len(alone) - MOST)
            yield words("repeat", refs=alone[:MOST], more=left, **_at(lane, "frontier"))
    yield from _settle(data, words)
    for gain in data.sections.survival.waiting[:2]:
        yield words("try_there", item=gain)
    if data.sections.repeats.found:
        yield words("preflight")


def _settle(data: WeekData, words: TemplateWords) -> Iterator[Cell]:
    """What would settle most undecided comparisons; then the largest of them, and what was refused."""
    for item in comparisons.missing(data)[:1]:
        lane = max(data.lanes, key=lambda lane: len(lane.inconclusive) + lane.inconclusive_more)
        yield words("settle", item=item, total=totals(data)[2], place=place(lane.name, "inconclusive"))
    for lane in [lane for lane in data.lanes if _gains(lane)][:1]:
        yield words("look", place=place(lane.name, "inconclusive"), item=_gains(lane)[0], metric="")
    several = [(lane, item) for lane in data.lanes for item in lane.refusals if item.axes]
    for lane, refusal in several[:1]:
        yield words("bridge", item=refusal, **_at(lane, "refused"))
