"""Findings, for people: offences first, then open questions, then what is merely shown; nothing said twice."""

from __future__ import annotations

from collections.abc import Iterable

from receipts.cli import output
from receipts.verdict import Finding, Level

_ORDER = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


def print_findings(findings: Iterable[Finding], *, sides: bool = False) -> None:
    """Print findings. With ``sides`` each says on which side it stands, once where it stands on both."""
    judged: dict[tuple[str, ...], list[Finding]] = {}
    waiting: dict[str, list[Finding]] = {}
    for item in findings:
        if item.unjudged:
            waiting.setdefault(item.at, []).append(item)
        else:
            judged.setdefault((item.code, item.level.value, item.at, item.found, item.expected), []).append(item)
    for group in sorted(judged.values(), key=lambda found: (_ORDER[found[0].level], found[0].code)):
        item = group[0]
        level = output.paint(item.level.value, item.level.value)
        output.line(f"  {level} {item.code} {item.name}{_on(group) if sides else ''}")
        output.wrapped(f"{item.at}: {output.clean(item.found)}", 4, 6)
        output.wrapped(f"expected {item.expected}", 4, 6)
        output.wrapped(f"→ {item.do}", 4, 6)
    if waiting:
        # One paragraph: a bare receipt lacks dozens of facts, and each would otherwise take two lines.
        parts = [f"{at} ({_codes(found)}{_on(found) if sides else ''})" for at, found in waiting.items()]
        output.line(f"  {output.paint('I', 'I')} unjudged, for facts that are not stated")
        output.wrapped(", ".join(parts), 4, 4)
        output.wrapped("→ state them; receipts rules CODE says what each is needed for", 4, 6)


def _codes(found: list[Finding]) -> str:
    return ", ".join(dict.fromkeys(item.code for item in found))


def _on(found: list[Finding]) -> str:
    sides = sorted({item.subject.upper() for item in found if item.subject in ("a", "b")})
    return f" on {' and '.join(sides)}" if sides else ""
