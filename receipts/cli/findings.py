"""Findings, for people."""

from __future__ import annotations

from collections.abc import Iterable

from receipts.cli import output
from receipts.verdict import Finding, Level


def print_findings(findings: Iterable[Finding], *, sides: bool = False, all_levels: bool = True) -> None:
    """Offences first, then open questions (those unjudged for one missing fact together), then what is shown."""
    found = [item for item in findings if all_levels or item.level is not Level.SHOWN]
    order = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}
    judged = sorted((item for item in found if not item.unjudged), key=lambda item: (order[item.level], item.code))
    for item in judged:
        side = f" on {item.subject.upper()}" if sides and item.subject in ("a", "b") else ""
        output.line(f"  {output.paint(item.level.value, item.level.value)} {item.code} {item.name}{side}")
        output.wrapped(f"{item.at}: {output.clean(item.found)}", 4, 6)
        output.wrapped(f"expected {item.expected}", 4, 6)
        output.wrapped(f"→ {item.do}", 4, 6)
    _print_unjudged([item for item in found if item.unjudged], sides)


def _print_unjudged(findings: list[Finding], sides: bool) -> None:
    """One line a missing fact, with the rules that wait for it: a bare receipt would otherwise fill screens."""
    waiting: dict[tuple[str, str], list[str]] = {}
    for item in findings:
        side = item.subject.upper() if sides and item.subject in ("a", "b") else ""
        waiting.setdefault((item.at, side), []).append(item.code)
    for (at, side), codes in waiting.items():
        where = f" on {side}" if side else ""
        output.line(f"  {output.paint('I', 'I')} unjudged{where}: {at} is not stated")
        output.wrapped(f"needed by {', '.join(sorted(set(codes)))}; receipts rules CODE says why", 4, 6)
