"""What ``receipts preflight`` prints for people: the launch that an answer stands on, the next rung, a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.base.units import amount
from receipts.cli import output

if TYPE_CHECKING:
    from receipts.questions.preflight import PreflightAnswer, PreflightEvidence, Ranked, Rung


def print_evidence(by: PreflightEvidence, answer: PreflightAnswer) -> None:
    """The launch: when, how it ended, with which bytes and lineage, and where it is unlike the plan."""
    output.heading("Known launch")
    rows = [("receipt", f"{by.id[:12]}  {by.name}"), ("when", f"{by.started:%Y-%m-%d %H:%M} UTC")]
    if by.outcome != "ok":
        chip = f"chip {by.chip}" if by.chip is not None else None
        ended = [by.outcome, by.class_, f"in {by.phase}" if by.phase else None, chip]
        rows.append(("ended", " · ".join(item for item in ended if item)))
        sizes = [
            f"{word} {amount(size)}"
            for word, size in (
                ("requested", by.requested_bytes),
                ("used", by.used_bytes),
                ("limit", by.limit_bytes),
            )
            if size is not None
        ]
        rows += [("bytes", ", ".join(sizes))] if sizes else []
        rows += [("where", by.operator)] if by.operator else []
        rows += [("blocks", by.blocks)] if by.blocks else []
    else:
        rows.append(("ended", "ok"))
    rows += [(leaf, f"{there} there, {here} here") for leaf, there, here in by.pressures]
    if by.lineage:
        rows.append(("lineage", ", ".join(f"{name} {version}" for name, version in by.lineage)))
    rows += [("but", str(item)) for item in by.unlike]
    if answer.worked + answer.failed > 1:
        rows.append(("launches", f"{answer.worked} worked, {answer.failed} failed with this signature"))
    _rows(rows)


def print_rung(rung: Rung, written: str | None, *, known: bool) -> None:
    """The next rung, what changes, and why others were skipped."""
    output.heading("Next rung" if known else "Next rung, should it fail")
    rows = [("rung", rung.name if rung.plan is not None else "stop: record the frontier, nothing is left to shrink")]
    rows += [
        (path, f"{old} → {new}" if new is not None else f"{old} → not stated") for path, (old, new) in _rung_rows(rung)
    ]
    if rung.answer is not None:
        rows.append(("it is", f"{rung.answer.status}: {rung.answer.why}"))
    rows += [("skipped", f"{item.rung}: {item.why}") for item in rung.skipped]
    if rung.reason is not None and rung.plan is not None:
        rows.append(("reason", rung.reason))
    if rung.dropped:
        rows.append(("state anew", ", ".join(rung.dropped)))
    _rows(rows)
    if rung.plan is not None:
        output.wrapped(f"written to {written}" if written else "write it with: --next FILE", 2)


def _rung_rows(rung: Rung) -> list[tuple[str, tuple[object, object]]]:
    return [(path, pair) for path, pair in rung.changes.items() if pair[0] != pair[1] and path not in rung.dropped]


def _rows(rows: Sequence[tuple[str, str]]) -> None:
    size = min(max(len(name) for name, _ in rows), output.width() // 3)
    for name, value in rows:
        output.wrapped(f"{name.ljust(size)}  {value}", 2, size + 4)


def print_ranked(ranked: Sequence[Ranked]) -> None:
    """Candidates in the order in which to try them, each with the line where it stood."""
    rows = [
        (
            str(place),
            str(item.candidate.line),
            item.answer.status,
            item.answer.failure_type or "-",
            item.answer.by.id[:12] if item.answer.by is not None else "-",
            item.candidate.plan.receipt.run.label or "",
        )
        for place, item in enumerate(ranked, start=1)
    ]
    output.table(("try", "line", "status", "failure", "receipt", "label"), rows, right=(0, 1))
