"""A comparison as Markdown, for chat and pull requests."""

from __future__ import annotations

from receipts import metrics
from receipts.cli.comparison_text import effect_word, interval, payback, ratio, reading, told, value
from receipts.verdict import Comparison


def cell(text: str) -> str:
    """Text that cannot break a table, or smuggle markup into a page that renders it."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    for char in "\\`*_[]<>|#":
        plain = plain.replace(char, f"\\{char}")
    return plain


def markdown(verdict: Comparison) -> str:
    """The comparison as a self-contained Markdown section; the last line is the verdict."""
    a = f"{cell(verdict.label_a)} `{verdict.a[0][:12]}` ({_launches(verdict.a)})"
    b = f"{cell(verdict.label_b)} `{verdict.b[0][:12]}` ({_launches(verdict.b)})"
    lines = [f"**A** {a}  ", f"**B** {b}", ""]
    lines += ["| changed | A | B | |", "| --- | --- | --- | --- |"]
    uncounted, waived = dict(verdict.uncounted), dict(verdict.waivers)
    for change in verdict.difference.changed:
        mark = uncounted.get(change.axis, "counts")
        mark = f"waived: {waived[change.axis]}" if change.axis in waived else mark
        for item in change.members:
            lines.append(f"| {cell(item.path)} | {cell(value(item.a))} | {cell(value(item.b))} | {cell(mark)} |")
    for item in verdict.difference.derived:
        lines.append(f"| {cell(item.path)} | {cell(value(item.a))} | {cell(value(item.b))} | derived |")
    lines += ["", "| metric | A | B | change | 95 % interval | effect |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for result in verdict.results:
        parts = (reading(result, result.a), reading(result, result.b), ratio(result), interval(result))
        title = metrics.get(result.metric).title
        lines.append(f"| {title} | {' | '.join(cell(part) for part in parts)} | {effect_word(result, verdict)} |")
    findings = told(verdict)
    if findings:
        lines.append("")
        for finding in findings:
            said = f"{finding.at}: {finding.found}. Expected {finding.expected}. {finding.do}"
            lines.append(f"- **{finding.code} {finding.name.replace('_', ' ')}** {cell(said)}")
    if payback(verdict):
        lines += ["", payback(verdict)]
    lines += ["", f"**{verdict.last_line()}** (rules `{verdict.rules[:12]}`)"]
    return "\n".join(lines)


def _launches(ids: tuple[str, ...]) -> str:
    return "1 launch" if len(ids) == 1 else f"{len(ids)} launches"
