"""Findings, for people, by weight: offences, open questions, missing facts, what is merely shown; none twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from receipts.cli import output
from receipts.judging.verdict import Finding, Level, Question

_ORDER = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


@dataclass(frozen=True, slots=True)
class Grouped:
    """Findings put together: those with one remedy, wherever they stand, and those that wait for one missing fact.

    ``judged`` decide, ``shown`` decide nothing.
    """

    judged: tuple[tuple[Finding, ...], ...]
    waiting: Mapping[str, tuple[Finding, ...]]
    shown: tuple[tuple[Finding, ...], ...] = ()


def grouped(findings: Iterable[Finding]) -> Grouped:
    """Group findings by level, those on a question of the verdict before the others, each in the order of codes."""
    judged: dict[tuple[str, ...], list[Finding]] = {}
    waiting: dict[str, list[Finding]] = {}
    for item in findings:
        if item.unjudged:
            waiting.setdefault(item.at, []).append(item)
        else:
            judged.setdefault((item.code, item.level.value, item.expected, item.do), []).append(item)
    ordered = sorted(judged.values(), key=lambda group: (*_weight(group[0]), group[0].code))
    deciding = [tuple(group) for group in ordered if group[0].level is not Level.SHOWN]
    shown = [tuple(group) for group in ordered if group[0].level is Level.SHOWN]
    return Grouped(tuple(deciding), {at: tuple(found) for at, found in waiting.items()}, tuple(shown))


def _weight(item: Finding) -> tuple[int, bool]:
    return _ORDER[item.level], item.question is Question.NONE


def print_findings(findings: Iterable[Finding], *, sides: bool = False) -> None:
    """Print findings. With ``sides`` each says on which side it stands, once where it stands on both."""
    groups = grouped(findings)
    _print_groups(groups.judged, sides)
    if groups.waiting:
        output.line(f"  {output.paint('I', 'I')} unjudged, for facts that are not stated")
        output.wrapped(waiting_text(groups, sides=sides), 4, 4)
        output.wrapped("→ state them; receipts rules CODE says what each is needed for", 4, 6)
    _print_groups(groups.shown, sides)


def _print_groups(groups: Iterable[Sequence[Finding]], sides: bool) -> None:
    for found in groups:
        item = found[0]
        level = output.paint(item.level.value, item.level.value)
        output.line(f"  {level} {item.code} {item.name}{on_sides(found) if sides else ''}")
        for said in places(found):
            output.wrapped(output.clean(said), 4, 6)
        output.wrapped(f"expected {item.expected}", 4, 6)
        output.wrapped(f"→ {item.do}", 4, 6)


def places(findings: Sequence[Finding]) -> list[str]:
    """Where a group stands and what was found there, each once."""
    return list(dict.fromkeys(f"{item.at}: {item.found}" for item in findings))


def waiting_text(groups: Grouped, *, sides: bool) -> str:
    """One paragraph of missing facts: a bare receipt lacks dozens, and each would otherwise take two lines."""
    parts = []
    for at, found in groups.waiting.items():
        codes = ", ".join(dict.fromkeys(item.code for item in found))
        parts.append(f"{at} ({codes}{on_sides(found) if sides else ''})")
    return ", ".join(parts)


def on_sides(findings: Sequence[Finding]) -> str:
    """`` on A``, `` on B``, `` on A and B``, or nothing for a finding on the pair."""
    sides = sorted({item.subject.upper() for item in findings if item.subject in ("a", "b")})
    return f" on {' and '.join(sides)}" if sides else ""
