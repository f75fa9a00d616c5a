"""The report's own comparisons: configurations one counted axis apart, and, where there is none, the nearest.

Verdicts are adjusted by Holm over all comparisons of the report that were not refused.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from receipts.axes.inputs import ends_of
from receipts.base.untrusted_text import plain
from receipts.judging.findings import refusals as rejecting
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Comparison, Level, Question, decide
from receipts.questions.commands import of_pair
from receipts.questions.week.data import AwaitedRule, Cut, JudgedPair, Moved, Reason, RefusedPairs, cut
from receipts.questions.week.links import ComparedPair, LaunchGroup, Links
from receipts.questions.week.reader import order

if TYPE_CHECKING:
    from receipts.stats.equivalence import Effect

MAX_CONFIGURATIONS = 40  # configurations of a lane whose neighbours are looked for; the others are counted
SOUND = 3  # launches from which on a configuration shows its own spread
PROVEN = ("faster", "slower", "equivalent")


@dataclass(frozen=True)
class Pairs:
    """All comparisons of one report by lane, and the configurations that were read for them.

    ``ran`` are how many configurations of a lane ran in the interval, ``left_out`` how many of them were not compared.
    """

    by_lane: dict[str, list[JudgedPair]]
    configurations: dict[str, list[LaunchGroup]]
    ran: dict[str, int]
    left_out: dict[str, int]
    compared: int
    adjusted: int


def pairs(links: Links, first: Collection[str] = ()) -> Pairs:
    """Compare the configurations that ran in the interval with their neighbours and pins, as many as a lane may have.

    Those come first that hold one of the receipts ``first``, then sound ones of several launches, then the newest.
    """
    by_lane: dict[str, list[LaunchGroup]] = defaultdict(list)
    for configuration in links.of_interval:
        by_lane[configuration.head.entry.lane].append(configuration)
    compared: list[ComparedPair] = []
    read: dict[str, list[LaunchGroup]] = {}
    left_out = {}
    for lane, every in sorted(by_lane.items()):
        ranked = sorted(every, key=lambda configuration: _first(configuration, first))
        chosen = sorted(ranked[:MAX_CONFIGURATIONS], key=lambda configuration: configuration.order)
        left_out[lane] = len(every) - len(chosen)
        for configuration in chosen:
            compared += links.of(configuration)
        read[lane] = links.read(lane)
    judged, adjusted = _judged(compared, links.rules)
    by_status: dict[str, list[JudgedPair]] = defaultdict(list)
    for pair, item in zip(compared, judged, strict=True):
        by_status[pair.b.head.entry.lane].append(item)
    ran = {lane: len(every) for lane, every in by_lane.items()}
    return Pairs(dict(by_status), read, ran, left_out, len(compared), adjusted)


def _first(configuration: LaunchGroup, first: Collection[str]) -> tuple[object, ...]:
    """Where a configuration is among those of its lane, of which only so many are looked at."""
    status_order = ("valid", "open", "invalid").index(configuration.head.rate_status)
    newest = configuration.last.entry
    return (
        not any(item.entry.id in first for item in configuration.launches),
        status_order,
        not configuration.head.kept_steps,
        -min(len(configuration.launches), SOUND),
        -order(newest)[0].timestamp(),
        -newest.seq,
    )


def _judged(compared: Sequence[ComparedPair], rules: RuleSet) -> tuple[list[JudgedPair], int]:
    """Holm over the comparisons that were not refused; a verdict that does not survive is ambiguous."""
    from receipts.stats.equivalence import adjust

    headlines = [pair.verdict.headline if pair.verdict.status != "rejected" else None for pair in compared]
    tested = [(index, item.effect) for index, item in enumerate(headlines) if item is not None]
    effects = dict(zip((index for index, _ in tested), adjust([effect for _, effect in tested]), strict=True))
    counted = sum(effect.p_beyond is not None for _, effect in tested)
    return [_summary(pair, effects.get(index), rules) for index, pair in enumerate(compared)], counted


def _summary(pair: ComparedPair, adjusted: Effect | None, rules: RuleSet) -> JudgedPair:
    verdict, headline = pair.verdict, pair.verdict.headline
    effect, why = verdict.effect, headline.effect.why if headline else ""
    if adjusted is not None:
        why = adjusted.why
        if effect in PROVEN and adjusted.kind not in PROVEN:
            effect = adjusted.kind
    status = decide(verdict.comparable, verdict.path, effect, verdict.standing)
    waved = {axis for axis, _ in (*verdict.uncounted, *verdict.waivers)}
    return JudgedPair(
        a=tuple(item.ref for item in pair.a.launches),
        b=tuple(item.ref for item in pair.b.launches),
        metric=verdict.metric,
        status=status,
        comparable=verdict.comparable,
        path=verdict.path,
        effect=effect,
        counted=verdict.counted,
        moved=tuple(
            Moved(change.axis, member.path, *map(plain, ends_of(member)))
            for change in verdict.difference.changed
            if change.axis not in waved
            for member in change.members
        ),
        unknown=tuple(dict.fromkeys(item.axis for item in verdict.difference.unknown)),
        ratio=headline.ratio if headline else None,
        low=headline.effect.low if headline else None,
        high=headline.effect.high if headline else None,
        delta=headline.effect.delta if headline else None,
        stated=headline is not None and any(side.source != "steps" for side in (headline.a, headline.b)),
        why="; ".join(text for text in (why, *verdict.launches_lost) if text),
        reasons=tuple(_reasons(verdict, status, rules)),
        next=of_pair(replace(verdict, status=status), pair.a.head.parsed, pair.b.head.parsed),
    )


def _reasons(verdict: Comparison, status: str, rules: RuleSet) -> list[Reason]:
    """What rejects a comparison, as `compare` names it; or what would settle an open one, each rule once."""
    if status == "rejected":
        return [Reason(item.code, item.name, item.sides[4:], item.found, item.do) for item in rejecting(verdict, rules)]
    questions = (Question.PATH, Question.EFFECT)
    quoting = rules.about(Topic.SIDES)
    order = {"pair": 0, "a": 1, "b": 2}
    findings = [
        item
        for item in verdict.findings
        if item.level is Level.OPEN
        and item.waived is None
        and (item.question in questions or (item.subject == "pair" and item.question is Question.COMPARABLE))
    ]
    findings.sort(key=lambda item: (0 if item.on_pair else order.get(item.subject, 3), item.unjudged))
    reasons: dict[str, Reason] = {}
    for item in findings:
        # Of a side's launches the first that a rule spoils represents all that it spoils.
        key = f"{item.code} {item.subject} {item.found.partition(':')[0]}" if item.code in quoting else item.code
        placed = item.code in quoting and item.found[-1:].isdigit()
        side = {"a": "A", "b": "B"}.get(item.subject, "")
        text = f"{item.at} {item.found}" if item.unjudged else item.found
        # A bare number says nothing without the leaf that it is at.
        where = f" ({item.at})" if placed else ""
        reasons.setdefault(key, Reason(item.code, item.name, side, f"{text}{where}", item.do))
    return list(reasons.values())


def waiting(judged: Iterable[JudgedPair]) -> tuple[AwaitedRule, ...]:
    """What undecided comparisons wait for, what most of them wait for first; each comparison counts once for a rule."""
    codes_wanted: Counter[str] = Counter()
    places: Counter[str] = Counter()
    remedies: dict[str, Counter[str]] = defaultdict(Counter)
    for item in judged:
        if item.status == "inconclusive":
            # What a rule found comes before what a rule could not judge, which may follow from it.
            codes = list(dict.fromkeys(reason.code for reason in item.reasons))
            codes_wanted.update(codes)
            places.update({code: place for place, code in enumerate(codes)})
            for reason in item.reasons:
                remedies[reason.code][reason.do] += 1
    ordered = sorted(codes_wanted.items(), key=lambda one: (-one[1], places[one[0]], one[0]))
    # Of its remedies the one that is asked for most often.
    usual = {code: min(asked.items(), key=lambda one: (-one[1], one[0]))[0] for code, asked in remedies.items()}
    return tuple(AwaitedRule(code, usual[code], many) for code, many in ordered)


def refusals(judged: Iterable[JudgedPair], rules: RuleSet) -> tuple[RefusedPairs, ...]:
    """The rules that refuse comparisons, what refuses most of them first."""
    groups: dict[str, list[JudgedPair]] = defaultdict(list)
    of_axes = rules.about(Topic.AXES)
    for item in judged:
        if item.status == "rejected":
            codes = [reason.code for reason in item.reasons]
            several = [code for code in codes if code in of_axes] if len(item.counted) > 1 else []
            groups[next(iter((*several, *codes)), "")].append(item)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    refused = []
    for code, (first, *others) in ordered:
        reason = next((reason for reason in first.reasons if reason.code == code), None)
        axes = first.counted if code in of_axes else ()
        name = reason.name if reason is not None else "many_axes" if axes else ""
        why = reason.found if reason is not None else first.why
        refused.append(RefusedPairs(code, name, why, axes, 1 + len(others), first.a[0], first.b[0]))
    return tuple(refused)


def ended(judged: Sequence[JudgedPair], status: str, most: int) -> Cut[JudgedPair]:
    """Comparisons of one status, the comparable first, then by how far the two are apart.

    Refused ones have no number to believe: those with the fewest axes come first.
    """
    kept = [item for item in judged if item.status == status]

    def weight(item: JudgedPair) -> tuple[bool, float, int, int]:
        size = abs(math.log(item.ratio)) if item.ratio and status != "rejected" else 0.0
        return item.comparable != "yes", -size, max(1, len(item.counted)), len(item.unknown)

    return cut(sorted(kept, key=weight), most)
