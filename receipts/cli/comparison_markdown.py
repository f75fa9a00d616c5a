"""A comparison as Markdown, for chat and pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes import Member
from receipts.cli.comparison_text import (
    MARKED,
    effect_word,
    interval,
    mixed,
    nothing_changed,
    payback,
    ratio,
    reading,
    reason,
    told,
    unknown,
    value,
)
from receipts.cli.decisions import sentence
from receipts.cli.findings import grouped, on_sides, places, waiting_text
from receipts.judging.verdict import Comparison, Finding
from receipts.publish.report.text import cell

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet
    from receipts.store import Decision


def markdown(
    verdict: Comparison,
    rules: RuleSet,
    decisions: Sequence[Decision] = (),
    memory: Sequence[str] = (),
    envelope: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The comparison as a self-contained Markdown section; the last line is the verdict.

    ``memory`` are sentences on memory by chip, ``envelope`` says where the shape of each side lies.
    """
    a = f"{cell(verdict.label_a)} `{verdict.a[0][:12]}` ({_launches(verdict.a)})"
    b = f"{cell(verdict.label_b)} `{verdict.b[0][:12]}` ({_launches(verdict.b)})"
    owed = ["", cell(verdict.owed)] if verdict.owed else []
    lines = [f"**A** {a}  ", f"**B** {b}", *owed, "", *_changed(verdict), "", *_effects(verdict)]
    lines += _findings(verdict, rules)
    if payback(verdict):
        lines += ["", payback(verdict)]
    if memory:
        lines += ["", "Memory by chip:", "", *(f"- {cell(said)}" for said in memory)]
    if envelope:
        lines += ["", "Envelope of the lane:", "", *(f"- {side}: {cell(said)}" for side, said in envelope.items())]
    if decisions:
        lines += ["", *(f"- decided on `{item.receipt[:12]}`: {cell(sentence(item))}" for item in decisions)]
    lines += ["", f"**{verdict.last_line()}** (rules `{verdict.rules[:12]}`)"]
    return "\n".join(lines)


def _changed(verdict: Comparison) -> Iterator[str]:
    """What changed as a table, each row with whether it counts, and what is unknown as a list."""
    uncounted, waived = dict(verdict.uncounted), dict(verdict.waivers)
    rows = []
    for change in verdict.difference.changed:
        mark = f"waived: {waived[change.axis]}" if change.axis in waived else uncounted.get(change.axis, "counts")
        rows += [_row(item, mark) for item in change.members]
    rows += [_row(item, "derived") for item in verdict.difference.derived]
    rows += [_row(item, "block: never counted") for item in verdict.difference.blocks]
    if rows:
        yield from ("| changed | A | B | |", "| --- | --- | --- | --- |", *rows)
    else:
        yield f"Changed: no {nothing_changed(verdict)}."
    if gaps := unknown(verdict):
        yield from ("", *(f"- {cell(said)}" for said in gaps))


def _effects(verdict: Comparison) -> Iterator[str]:
    """Each metric with both numbers, their interval and the effect, and why there is none where there is none."""
    yield from ("| metric | A | B | change | 95 % interval | effect |", "| --- | ---: | ---: | ---: | --- | --- |")
    for result in verdict.results:
        parts = (reading(result, result.a), reading(result, result.b), ratio(result), interval(result))
        title = metrics.get(result.metric).title
        yield f"| {title} | {' | '.join(cell(part) for part in parts)} | {effect_word(result)} |"
    if mixed(verdict):
        yield from ("", cell(MARKED))
    if why := reason(verdict):
        yield from ("", cell(why))


def _findings(verdict: Comparison, rules: RuleSet) -> Iterator[str]:
    """What the rules found, one offence an item; what they could not judge is one item together."""
    groups = grouped(told(verdict, rules))
    if groups.judged or groups.waiting or groups.shown:
        yield ""
    yield from map(_finding, groups.judged)
    if groups.waiting:
        yield f"- unjudged, for facts that are not stated: {cell(waiting_text(groups, sides=True))}"
    yield from map(_finding, groups.shown)


def _finding(group: Sequence[Finding]) -> str:
    first = group[0]
    said = f"{'; '.join(places(group))}. Expected {first.expected}. {first.do[:1].upper()}{first.do[1:]}."
    return f"- **{first.code} {first.name.replace('_', ' ')}**{on_sides(group)}: {cell(said)}"


def _row(item: Member, mark: str) -> str:
    return f"| {cell(item.path)} | {cell(value(item.a))} | {cell(value(item.b))} | {cell(mark)} |"


def _launches(ids: tuple[str, ...]) -> str:
    return "1 launch" if len(ids) == 1 else f"{len(ids)} launches"
