"""The report's own comparisons: configurations one counted axis apart, and, where there is none, the nearest.

Verdicts are adjusted by Holm over all comparisons of the report that were not refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes import difference
from receipts.compare import Request, compare
from receipts.report.data import Judged, Moved, Reason, Ref
from receipts.report.neighbours import Configuration, Neighbours, configurations
from receipts.report.shelf import Item, Shelf
from receipts.report.text import value
from receipts.rulebook import Rulebook
from receipts.verdict import Comparison, Finding, Level, MetricResult, Question, decide

if TYPE_CHECKING:
    from receipts.stats.effect import Effect
    from receipts.store import Entry

LINKS = 2  # comparisons a configuration of the week has at most
TRIED = 6  # neighbours that are compared to find them
FEW_REASONS = 4
PROVEN = ("faster", "slower", "equivalent")


@dataclass(frozen=True, eq=False)
class Pair:
    """One comparison with the launches of its sides."""

    a: Configuration
    b: Configuration
    verdict: Comparison


@dataclass(frozen=True)
class Pairs:
    """All comparisons of one report by lane, and the configurations that were read for them."""

    by_lane: dict[str, list[Judged]]
    configurations: dict[str, list[Configuration]]
    compared: int
    adjusted: int


def pairs(shelf: Shelf, week: Sequence[Entry], rulebook: Rulebook) -> Pairs:
    """Compare every configuration that ran in the week with its nearest earlier neighbours."""
    neighbours = Neighbours(shelf.rows)
    near = {row.id: neighbours.before(row) for row in week}
    rows = {row.id: row for row in week if near[row.id]}
    rows.update({other.id: other for found in near.values() for other in found})
    grouped = configurations(shelf.items(rows.values()))
    by_receipt = {item.entry.id: made for made in grouped for item in made.launches}
    in_week = {row.id for row in week}
    found: list[Pair] = []
    seen: set[tuple[str, str]] = set()
    for made in grouped:
        ids = [item.entry.id for item in made.launches if item.entry.id in in_week]
        others = {
            id(by_receipt[row.id]): by_receipt[row.id] for name in ids for row in near[name] if row.id in by_receipt
        }
        others.pop(id(made), None)
        if others:
            found.extend(_links(made, list(others.values()), shelf, rulebook, seen))
    judged, adjusted = _judged(found)
    by_lane: dict[str, list[Judged]] = defaultdict(list)
    by_configuration: dict[str, list[Configuration]] = defaultdict(list)
    for pair, item in zip(found, judged, strict=True):
        by_lane[pair.b.head.entry.lane].append(item)
    for made in grouped:
        by_configuration[made.head.entry.lane].append(made)
    return Pairs(dict(by_lane), dict(by_configuration), len(found), adjusted)


def _links(
    made: Configuration,
    others: Sequence[Configuration],
    shelf: Shelf,
    rulebook: Rulebook,
    seen: set[tuple[str, str]],
) -> list[Pair]:
    """Comparisons of one configuration: those one counted axis apart, else the nearest of all."""
    lane = tuple(made.head.lane.not_applicable)
    ranked = []
    for other in others:
        apart = difference(other.head.parsed, made.head.parsed, lane)
        if apart.changed or apart.unknown:  # else it repeats this configuration, less soundly
            unsound = other.head.verdict.status == "invalid"
            ranked.append((len(apart.axes), len(apart.unknown), unsound, other))
    ranked.sort(key=lambda entry: entry[:3])
    tried: list[Pair] = []
    linked: list[Pair] = []
    for *_, other in ranked[:TRIED]:
        a, b = (other, made) if other.order < made.order else (made, other)
        key = (a.head.entry.id, b.head.entry.id)
        if key in seen or len(linked) >= LINKS:
            continue
        pair = Pair(a, b, _compare(a, b, shelf, rulebook))
        tried.append(pair)
        if len(pair.verdict.counted) == 1:
            linked.append(pair)
            seen.add(key)
    if not linked and tried:
        linked = tried[:1]
        seen.add((tried[0].a.head.entry.id, tried[0].b.head.entry.id))
    return linked


def _compare(a: Configuration, b: Configuration, shelf: Shelf, rulebook: Rulebook) -> Comparison:
    rate = metrics.get(metrics.DEFAULT)
    both = a.head.launch.read(rate).value is not None and b.head.launch.read(rate).value is not None
    metric = rate.name if both else "step_seconds"
    both_sides = (*a.launches, *b.launches)
    witnesses = {other.id: other for item in both_sides for other in item.facts.witnesses}
    witnessed = {other.id: other for item in both_sides for other in item.facts.witnessed}
    facts = replace(
        shelf.facts(b.head.parsed), witnesses=tuple(witnesses.values()), witnessed=tuple(witnessed.values())
    )
    left, right = ([item.parsed for item in side.launches] for side in (a, b))
    return compare(left, right, rulebook, Request(metric=metric, facts=facts))


def _judged(found: Sequence[Pair]) -> tuple[list[Judged], int]:
    """Holm over the comparisons that were not refused; a verdict that does not survive is ambiguous."""
    from receipts.stats.holm import adjust

    kept = [index for index, pair in enumerate(found) if pair.verdict.status != "rejected"]
    headlines = [_headline(found[index].verdict) for index in kept]
    tested = [(index, item.effect) for index, item in zip(kept, headlines, strict=True) if item is not None]
    effects = dict(zip((index for index, _ in tested), adjust([effect for _, effect in tested]), strict=True))
    counted = sum(effect.p_beyond is not None for _, effect in tested)
    return [_summary(pair, effects.get(index)) for index, pair in enumerate(found)], counted


def _headline(verdict: Comparison) -> MetricResult | None:
    return next((item for item in verdict.results if item.metric == verdict.metric), None)


def _summary(pair: Pair, adjusted: Effect | None) -> Judged:
    verdict, headline = pair.verdict, _headline(pair.verdict)
    effect, why = verdict.effect, headline.effect.why if headline else ""
    if adjusted is not None:
        why = adjusted.why
        if effect in PROVEN and adjusted.kind not in PROVEN:
            effect = adjusted.kind
    status = decide(verdict.comparable, verdict.path, effect)
    waved = {axis for axis, _ in (*verdict.uncounted, *verdict.waivers)}
    return Judged(
        a=_refs(pair.a.launches),
        b=_refs(pair.b.launches),
        metric=verdict.metric,
        status=status,
        comparable=verdict.comparable,
        path=verdict.path,
        effect=effect,
        counted=verdict.counted,
        moved=tuple(
            Moved(change.axis, member.path, value(member.a), value(member.b))
            for change in verdict.difference.changed
            if change.axis not in waved
            for member in change.members
        ),
        unknown=tuple(dict.fromkeys(item.axis for item in verdict.difference.unknown)),
        ratio=headline.ratio if headline else None,
        low=headline.effect.low if headline else None,
        high=headline.effect.high if headline else None,
        stated=headline is not None and any(side.source != "steps" for side in (headline.a, headline.b)),
        why=why,
        reasons=tuple(_reasons(verdict, status)),
    )


def _refs(items: Iterable[Item]) -> tuple[Ref, ...]:
    return tuple(item.ref for item in items)


def _reasons(verdict: Comparison, status: str) -> list[Reason]:
    """What refuses a comparison, or what would settle an open one: each rule once, those on the pair first."""
    wanted = Level.ERROR if status == "rejected" else Level.OPEN
    asked = (Question.COMPARABLE, Question.PATH) if status == "rejected" else (Question.PATH, Question.EFFECT)
    quoted = {item.at for item in verdict.findings if item.code == "C105"}
    order = {"pair": 0, "a": 1, "b": 2}
    found = [
        item
        for item in verdict.findings
        if item.level is wanted
        and item.waived is None
        and (item.question in asked or (item.subject == "pair" and item.question is Question.COMPARABLE))
    ]
    found.sort(key=lambda item: (order.get(item.subject, 3) if not item.code.startswith("C") else 0, item.unjudged))
    made: dict[str, Reason] = {}
    for item in found:
        if wanted is Level.ERROR and item.subject != "pair" and not item.code.startswith("C") and item.at in quoted:
            continue
        key = f"{item.code} {item.found}" if item.code == "C105" else item.code
        made.setdefault(key, _reason(item))
    return list(made.values())[:FEW_REASONS]


def _reason(item: Finding) -> Reason:
    side = {"a": "A", "b": "B"}.get(item.subject, "")
    return Reason(item.code, item.name, side, item.found if not item.unjudged else f"{item.at} {item.found}", item.do)


def cut(found: Sequence[Judged], status: str, most: int) -> tuple[tuple[Judged, ...], int]:
    """Comparisons of one status, the comparable and those with the fewest moved axes first; and how many are left."""
    kept = [item for item in found if item.status == status]
    kept.sort(key=lambda item: (item.comparable != "yes", max(1, len(item.counted)), len(item.unknown)))
    return tuple(kept[:most]), max(0, len(kept) - most)
