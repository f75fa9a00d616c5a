"""A comparison as text: what changed, what was held, what is unknown, findings, effects, and the verdict last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.axes import Member, in_words
from receipts.cli import output
from receipts.cli.decisions import print_decisions
from receipts.cli.findings import print_findings
from receipts.judging.topic import Topic
from receipts.judging.verdict import Comparison, Finding, Level, MetricResult, Question
from receipts.metrics.reading import MetricReading

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.store import Decision

SHOWN_HELD = 12
STATED = ("stated", "derived")
MARK = "*"
MARKED = f"{MARK} as the receipt states it; the others are computed from its steps and its memory rows"


def print_text(
    verdict: Comparison,
    rules: RuleSet,
    decisions: Sequence[Decision] = (),
    memory: Sequence[str] = (),
    envelope: Mapping[str, str] = MappingProxyType({}),
    deciding: str = "",
) -> None:
    """Print the whole comparison; ``memory`` is told chip by chip, ``envelope`` says where each side lies.

    ``deciding`` is the command that would decide an inconclusive one; it stays on one line, to be copied.
    """
    sides = (("A", verdict.label_a, verdict.a), ("B", verdict.label_b, verdict.b))
    for letter, label, ids in sides:
        more = f" and {len(ids) - 1} more launches" if len(ids) > 1 else ""
        output.line(f"{letter}  {output.clean(label)}  {ids[0][:12]}{more}")
    output.line(f"   lane {', '.join(verdict.lanes)} · metric {verdict.metric}")
    if verdict.owed:
        output.wrapped(output.clean(verdict.owed), 3)
    if verdict.witnesses:
        output.wrapped(f"path witnessed by {', '.join(item[:12] for item in verdict.witnesses)}", 3)
    _changed(verdict)
    _held(verdict)
    _unknown(verdict)
    findings = told(verdict, rules)
    if findings:
        output.heading("Findings")
        print_findings(findings, sides=True)
    _effects(verdict)
    if memory:
        output.heading("Memory by chip")
        for said in memory:
            output.wrapped(said, 2, 4)
    if envelope:
        output.heading("Envelope of the lane")
        for side, said in envelope.items():
            output.wrapped(f"{side}  {said}", 2, 5)
    print_decisions(decisions)
    if deciding:
        output.heading("What would decide it")
        output.line(f"  {output.clean(deciding)}")
    output.line()
    output.line(coloured_last_line(verdict))


def coloured_last_line(verdict: Comparison) -> str:
    """The last line with each answer in its colour."""
    paint = output.paint
    answers = (
        f"comparable {paint(verdict.comparable, verdict.comparable)}",
        f"path {paint(verdict.path, verdict.path)}",
        f"effect {verdict.effect} on {verdict.metric}",
    )
    return f"{paint(verdict.status, verdict.status)}: {' · '.join((*answers, *verdict.launches_lost))}"


def told(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """Findings worth a reader's time: the pair's, and of the sides what the pair's do not already quote."""
    pair = [item for item in verdict.findings if item.on_pair]
    quoted = {(item.subject, item.at) for item in pair if item.code in rules.about(Topic.SIDES)}
    unknown = rules.about(Topic.UNKNOWN)
    listed = len({item.at for item in pair if item.code in unknown}) <= SHOWN_HELD
    sides = [
        item
        for item in verdict.findings
        if item not in pair
        and (item.subject, item.at) not in quoted
        and not (item.unjudged and item.question is Question.COMPARABLE)
        and (item.level is not Level.SHOWN or item.code in rules.about(Topic.WITNESS))
    ]
    return [item for item in pair if listed or item.code not in unknown] + sides


def value(item: Any) -> str:
    """An axis value for people."""
    return "not stated" if item is None else in_words(item)


def _rows(members: Sequence[Member], mark: str) -> list[tuple[str, str, str, str]]:
    return [(item.path, value(item.a), value(item.b), mark) for item in members]


def _changed(verdict: Comparison) -> None:
    output.heading("Changed")
    uncounted, waived = dict(verdict.uncounted), dict(verdict.waivers)
    rows: list[tuple[str, str, str, str]] = []
    because: dict[str, str] = {}
    for change in verdict.difference.changed:
        mark = "counts"
        if change.axis in uncounted:
            # Why stands below the table: it would be the widest column, row for row.
            mark, _, why = uncounted[change.axis].partition(": ")
            because |= {mark: why} if why else {}
        if change.axis in waived:
            mark = f"waived: {waived[change.axis]}"
        rows.extend(_rows(change.members, mark if len(change.members) == 1 else f"{mark} (axis {change.axis})"))
    rows.extend(_rows(verdict.difference.derived, "derived"))
    rows.extend(_rows(verdict.difference.blocks, "block: never counted"))
    output.table(("axis", "A", "B", ""), rows, empty=f"no {nothing_changed(verdict)}")
    for mark, why in because.items():
        output.wrapped(f"{mark}: {why}", 2, 4)


def nothing_changed(verdict: Comparison) -> str:
    """What there is to say where no axis changed, behind the word "no"."""
    if verdict.difference.unknown:
        return "axis that both sides state; what one of them does not state may have changed"
    return "axis: the two are repeats of one configuration"


def _held(verdict: Comparison) -> None:
    output.heading("Held")
    difference = verdict.difference
    output.wrapped(f"equal on both sides: {_names(difference.equal)}")
    if difference.held:
        output.wrapped(f"held by the common context, unstated on both: {_names(difference.held)}")
    if difference.not_applicable:
        output.wrapped(f"not applicable in this lane: {_names(difference.not_applicable)}")


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:SHOWN_HELD])
    more = len(paths) - SHOWN_HELD
    return (shown + (f" and {more} more" if more > 0 else "")) or "nothing"


def _unknown(verdict: Comparison) -> None:
    if verdict.difference.unknown:
        output.heading("Unknown")
        for said in unknown(verdict):
            output.wrapped(said, 2, 4)


def unknown(verdict: Comparison) -> list[str]:
    """What is not stated as it must be, by the side that states it."""
    groups: dict[str, list[str]] = {}
    words = {"a": "stated on B only", "b": "stated on A only", "both": "stated on neither"}
    for gap in verdict.difference.unknown:
        groups.setdefault(words[gap.missing], []).extend(item.path for item in gap.members)
    return [f"{says}: {', '.join(paths)}" for says, paths in groups.items()]


def _effects(verdict: Comparison) -> None:
    output.heading("Effect of B against A")
    rows = []
    for item in verdict.results:
        rows.append((
            metrics.get(item.metric).title,
            reading(item, item.a),
            reading(item, item.b),
            ratio(item),
            interval(item),
            effect_word(item),
        ))  # fmt: skip
    output.table(("metric", "A", "B", "change", "95 % interval", "effect"), rows, right=(1, 2, 3))
    numbers = what_numbers_are(verdict)
    if numbers:
        output.wrapped(numbers)
    if mixed(verdict):
        output.wrapped(MARKED)
    why = reason(verdict)
    if why:
        output.wrapped(why)
    pays = payback(verdict)
    if pays:
        output.wrapped(pays)


def reason(verdict: Comparison) -> str:
    """How the effect was judged: launches, design, where the spread comes from, and the order that they ran in."""
    headline = next((item for item in verdict.results if item.metric == verdict.metric), None)
    return headline.effect.why if headline is not None else ""


def what_numbers_are(verdict: Comparison) -> str:
    """What the number of each side is, where it comes from steps."""
    headline = next((item for item in verdict.results if item.metric == verdict.metric), None)
    sides = (("A", headline.a), ("B", headline.b)) if headline is not None else ()
    words = [
        f"{letter}: {side.text}{', not steady' if side.source == 'unsteady' else ''}"
        for letter, side in sides
        if side.value is not None and side.source in ("steps", "unsteady") and side.text
    ]
    return "; ".join(words)


def reading(item: MetricResult, side: MetricReading) -> str:
    """One side's value with its unit; `MARK` behind a number that was stated and not measured."""
    if side.value is None:
        return side.text or "~"
    mark = MARK if side.source in STATED else ""
    return metrics.shown(metrics.get(item.metric), side.value) + mark


def mixed(verdict: Comparison) -> bool:
    """Whether stated numbers stand beside computed ones; where all are stated, the reason says so."""
    readings = [side for item in verdict.results for side in (item.a, item.b) if side.value is not None]
    return len({side.source in STATED for side in readings}) > 1


def ratio(item: MetricResult) -> str:
    """The change in percent, `~` where there is no number: what the interval is around, else as stated."""
    return "~" if item.ratio is None else f"{(item.ratio - 1) * 100:+.2f} %"


def interval(item: MetricResult) -> str:
    """The interval of the change in percent; `~` where the data carry none."""
    low, high = item.effect.low, item.effect.high
    if low is None or high is None:
        return "~"
    return f"{(low - 1) * 100:+.2f} … {(high - 1) * 100:+.2f} %"


def effect_word(item: MetricResult) -> str:
    """The effect in words that fit the metric: memory grows, it is not slow."""
    kind = item.effect.kind
    if metrics.get(item.metric).summary in ("step", "rate"):
        return kind
    lower_is_better = metrics.get(item.metric).better == "lower"
    words = {"faster": "less" if lower_is_better else "more", "slower": "more" if lower_is_better else "less"}
    return words.get(kind, kind)


def payback(verdict: Comparison) -> str:
    """The steps after which a longer compile has paid for itself; empty where the question does not arise."""
    by_name = {item.metric: item for item in verdict.results}
    step, built = by_name.get("step_seconds"), by_name.get("compile_seconds")
    if step is None or built is None:
        return ""
    if None in (step.a.value, step.b.value, built.a.value, built.b.value):
        return ""
    saved = (step.a.value or 0) - (step.b.value or 0)
    cost = (built.b.value or 0) - (built.a.value or 0)
    if cost <= 0 or verdict.comparable == "no":
        return ""
    if step.effect.kind in ("unproven", "ambiguous"):
        return f"B compiles {cost:.1f} s longer; whether a step is faster is {step.effect.kind}: nothing pays back yet."
    if saved <= 0:
        return f"B compiles {cost:.1f} s longer and saves nothing a step: it never pays back."
    steps = f"{cost / saved:,.0f} steps"
    return f"B compiles {cost:.1f} s longer and saves {saved * 1e3:.3g} ms a step: paid back after {steps}."
