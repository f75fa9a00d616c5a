"""The first screen of a report: what is fastest, what was decided and why, what failed, and what to do next.

Lanes stand in the order of their names, each for itself: nothing here is put above something of another lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.publish.page import Badge, Cell, Code, Link, Mark, Points, State
from receipts.publish.report import decided
from receipts.publish.report.next_steps import next_steps
from receipts.publish.report.page import joined, rule
from receipts.publish.report.phrases import at, changed, interval
from receipts.publish.report.sections import claims, failures
from receipts.publish.text import change, number, plain
from receipts.publish.words import FORMS, Words

if TYPE_CHECKING:
    from receipts.publish.report.data import BestResult, FrontierMove, LaneWeek, WeekData

MOST: Final = 3  # sentences of a lane, or of what lanes share, under one topic
FEW_LANES: Final = 3  # more of them have a sentence each
NAME: Final = 90
SKEWED: Final = 0.05  # of the median chip: from there on the user's own notes look into it


def points(data: WeekData, words: Words) -> Points:
    """The sentences by topic; a topic without any is left out."""
    most = MOST if len(data.lanes) <= FEW_LANES else 1
    topics = (
        ("fastest", _fastest(data, words)),
        ("new best", _new_best(data, words, most)),
        ("accepted", decided.accepted(data, words, most)),
        ("refused", decided.refused(data, words)),
        ("undecided", decided.undecided(data, words)),
        ("did not survive", _lost(data, words)),
        ("incidents", _regressions(data, words)),
        ("path", _path(data, words)),
        ("memory", _memory(data, words)),
        ("failed", _failed(data, words)),
        ("claims", _claims(data, words)),
        ("decisions", _decisions(data, words)),
        ("next", next_steps(data, words)),
    )
    shown = ((topic, tuple(cells)) for topic, cells in topics)
    return tuple((topic, cells) for topic, cells in shown if cells)


def badges(data: WeekData, words: Words) -> tuple[Badge, ...]:
    """The numbers that stand largest."""
    counts = data.counts
    failed = data.sections.failures.launches
    numbers = [Badge(f"{counts.submitted:,}", words("runs", n=counts.submitted))]
    numbers += [Badge(f"{failed:,}", "failed", "no")] if failed else []
    numbers.append(Badge(f"{counts.valid:,}", "valid", "yes" if counts.valid else "open"))
    numbers += [Badge(f"{counts.open:,}", "open", "open")] if counts.open else []
    numbers += [Badge(f"{counts.invalid:,}", "invalid", "no")] if counts.invalid else []
    for lane in data.lanes[:FEW_LANES]:
        best = _best(lane.frontier) or _best(lane.stated)
        if best is not None:
            sentence = "badge_peak" if best.is_peak else "badge_proven" if lane.frontier else "badge_reported"
            label = words(sentence, of=_machine(best) if len(data.lanes) == 1 else lane.name)
            state = "yes" if lane.frontier and not best.is_peak else "open"
            numbers.append(Badge(number(best.tokens_per_second_per_chip), label, state))  # type: ignore[arg-type]
    if data.compared:
        accepted, refused, undecided = decided.totals(data)
        states: tuple[tuple[str, int, State], ...] = (
            ("accepted", accepted, "yes"),
            ("refused", refused, "no"),
            ("undecided", undecided, "open"),
        )
        # That none was accepted is news, and a color says that there is one.
        numbers += [
            Badge(f"{count:,}", name, state if count else None)
            for name, count, state in states
            if count or name == "accepted"
        ]
    return tuple(numbers)


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
    length = f"{item.sequence_length:,} tokens" if item.sequence_length else "a sequence not stated"
    return ", ".join([names, length, _machine(item)])


def _fastest(data: WeekData, words: Words) -> Iterator[Cell]:
    nothing = []
    for lane in data.lanes:
        proven, reported = _best(lane.frontier), _best(lane.stated)
        peak = _peak(lane, proven)
        if proven is not None and not proven.is_peak:
            yield _fast(lane, proven, Mark("yes", words("proven")), words)
        if peak is not None:
            yield _fast(lane, peak, Mark("open", words("peak")), words)
        if reported is not None:
            yield _fast(lane, reported, Mark("open", words("reported")), words)
        if proven is None and reported is None:
            nothing.append(lane)
    if nothing:
        yield words.cell("nothing_fast", lanes=_lanes(nothing))


def _fast(lane: LaneWeek, item: BestResult, mark: Mark, words: Words) -> Cell:
    launches = 1 if item.is_peak else item.launches
    values = {"lane": at(lane, "frontier"), "mark": mark, "item": item, "shape": _shape(item, lane)}
    if launches is None:
        return words.cell("fastest", **values)
    return words.cell("fastest_repeated", launches=words("launches", n=launches), **values)


def _lanes(lanes: Sequence[LaneWeek]) -> Cell:
    return joined((at(lane, "frontier"),) for lane in lanes)


def _peak(lane: LaneWeek, proven: BestResult | None) -> BestResult | None:
    """The fastest single launch, where it was faster than the best repeated result, or there is none."""
    peak = _best([item for item in (*lane.frontier, *lane.peaks) if item.is_peak])
    if peak is None or proven is None or proven.is_peak:
        return peak
    return peak if (peak.tokens_per_second_per_chip or 0.0) > (proven.tokens_per_second_per_chip or 0.0) else None


def _new_best(data: WeekData, words: Words, most: int) -> Iterator[Cell]:
    still = []
    for lane in data.lanes:
        moved = [item for item in lane.frontier if item.change is not None and item.change.state != "same"]
        for item in moved[:most]:
            since = _since(item.change, words) if item.change is not None else ""
            launches = words("one_launch") if item.is_peak else words("launches", n=item.launches or 0)
            values = {"lane": at(lane, "frontier"), "item": item, "shape": _shape(item, lane)}
            yield words.cell("new_best", since=since, launches=launches, **values)
        if len(moved) > most:
            yield words.cell("more_best", lane=at(lane, "frontier"), n=len(moved) - most)
        if lane.frontier and not moved:
            still.append(lane)
    if still:
        yield words.cell("unmoved", lanes=_lanes(still))


def _since(since: FrontierMove, words: Words) -> Cell:
    """What a new best is over the one before it."""
    if since.was is None:
        return words.cell("since_first")
    sentence = "since"
    if since.comparable not in (None, "yes"):
        sentence = "since_several" if len(since.moved) > 1 else "since_incomparable"
    return words.cell(sentence, since=since, interval=interval(since, words), n=len(since.moved))


# What lanes share


def _lost(data: WeekData, words: Words) -> Iterator[Cell]:
    vanished = data.sections.survival.vanished
    for item in vanished[:MOST]:
        there = item.there
        ratio = f"{change(there.ratio)} %, " if there is not None and there.ratio is not None else ""
        outcome = f"{ratio}{there.effect}" if there is not None else words("lost_wholly")
        lane = Link(plain(item.lane), "survival-vanished")
        yield words.cell("lost", item=item, lane=lane, changed=changed(item.moved, words), outcome=outcome)
    if len(vanished) > MOST:
        left = len(vanished) - MOST
        yield words.cell("more_lost", more=words.link("gains", "survival-vanished", n=left))


def _regressions(data: WeekData, words: Words) -> Iterator[Cell]:
    known = data.sections.regressions
    for item in known[-MOST:]:
        body, lane = item.body, Link(plain(item.body["lane"]), "regressions")
        moved = ", ".join(body["moved"]) or words("regression_unmoved")
        yield words.cell(
            "regression",
            lane=lane,
            metric=metrics.get(item.metric).title,
            by=change(body["ratio"]),
            name=plain(body["name"], NAME),
            moved=moved,
        )
    if len(known) > MOST:
        yield (words.link("more_regressions", "regressions", n=len(known) - MOST), ".")


def _path(data: WeekData, words: Words) -> Iterator[Cell]:
    incidents = data.sections.incidents
    if not incidents.found:
        return
    shown = [
        words.cell("incident", launches=words("launches", n=item.launches), rule=rule(item.code, item.name))
        for item in incidents.found[: 2 * MOST]
    ]
    left = len(incidents.found[2 * MOST :]) + incidents.more
    yield words.cell("incidents", rules=joined([*shown, *([words.cell("more_rules", n=left)] if left else [])]))


def _memory(data: WeekData, words: Words) -> Iterator[Cell]:
    tight = [item for item in data.headroom if item.left is not None and item.left < item.wanted]
    for item in tight[:1]:
        cell = words.cell("tight", item=item, memory=words.link("tight_name", "memory"))
        yield (*cell, " ", words("tight_more", n=len(tight) - 1)) if len(tight) > 1 else cell
    for item in [item for item in data.headroom if item.skew is not None and item.skew >= SKEWED][:1]:
        yield words.cell("skewed", item=item, memory=words.link("skewed_name", "memory"))


def _failed(data: WeekData, words: Words) -> Iterator[Cell]:
    failed = data.sections.failures
    if not failed.launches:
        return
    shown = failed.causes[: 2 * MOST]
    causes = [f"{item.launches:,} × {failures.named(item)}" for item in shown]
    left = failed.launches - sum(item.launches for item in shown)
    causes += [words("failed_others", n=left)] if left else []
    launches = words.link("launches", "failures", n=failed.launches)
    yield words.cell("failed", launches=launches, causes=", ".join(causes))
    again = data.sections.repeats.found
    if again:
        times = sum(len(item.again) + item.again_more for item in again)
        seconds = sum(item.seconds or 0.0 for item in again)
        launches = words.link("launches", "repeats", n=times)
        yield words.cell("repeated_for" if seconds else "repeated", launches=launches, minutes=f"{seconds / 60:,.1f}")


def _claims(data: WeekData, words: Words) -> Iterator[Cell]:
    known = data.sections.claims
    for item in known.stale[:MOST]:
        sentence, name = "stale_quoted" if item.documents else "stale", words.link("stale_name", "claims-stale")
        yield words.cell(sentence, item=item, stale=name, documents=", ".join(item.documents[:2]))
    stale = {item.id for item in known.stale}
    others = [item for item in known.changed if item.id not in stale]
    if others:
        shown = [
            words.cell("claim_change", claim=item.id, was=claims.was(item), now=claims.now(item))
            for item in others[:MOST]
        ]
        left = len(others) - len(shown) + known.changed_more
        names = joined(shown) + (words.cell("and_more", n=left) if left else ())
        yield words.cell("claims", changed=words.link("claims_name", "claims-changed"), claims=names)


def _decisions(data: WeekData, words: Words) -> Iterator[Cell]:
    decisions = data.sections.decisions
    for item in decisions.made[:MOST]:
        receipt = FORMS["receipt"](item.receipt) if item.receipt else Code(item.id[:12])
        decision = Link(item.decision, "decisions")
        yield words.cell("decided", decision=decision, receipt=receipt, reason=plain(item.reason, NAME))
    left = len(decisions.made[MOST:]) + decisions.more
    if left:
        yield (words.link("more_decided", "decisions", n=left), ".")
