"""The page of a preflight: the answer, the launch that shows it, and the next rung; and a ranking of plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from receipts.base.units import amount
from receipts.publish.page import Mark, Page, Section, State, Table, named_rows, table_of

if TYPE_CHECKING:
    from receipts.questions.ladder import Rung
    from receipts.questions.preflight import PreflightAnswer, PreflightEvidence, Ranked
    from receipts.receipt import Parsed

STATES: Final[dict[str, tuple[State, str]]] = {
    "worked": ("yes", "known to work"),
    "likely": ("yes", "likely to work"),
    "unknown": ("open", "unknown"),
    "predicted": ("no", "predicted to fail"),
    "failed": ("no", "known to fail"),
}


def page(plan: Parsed, answer: PreflightAnswer, rung: Rung | None, written: str | None = None) -> Page:
    """The whole page; ``written`` names the file that holds the next rung's plan."""
    sections = []
    if answer.by is not None:
        sections.append(Section("known", "Known launch", tables=(named_rows(_evidence(answer.by, answer)),)))
    if rung is not None:
        title = "Next rung" if answer.status != "unknown" else "Next rung, should it fail"
        notes = [f"written to {written}" if written else "write it with: --next FILE"] * (rung.plan is not None)
        if answer.status in ("failed", "predicted"):
            notes.append("recompute and other axes off the ladder, alone and in pairs: receipts fit PLAN")
        table = named_rows(_rung(rung), tuple(notes))
        sections.append(Section("next", title, tables=(table,)))
    facts = (("plan", (f"{plan.name} · lane {plan.receipt.run.lane}",)), ("signature", (answer.signature[:16],)))
    headline = (Mark(*STATES[answer.status]), f": {answer.why}")
    return Page(plan.name, headline, facts=facts, sections=tuple(sections))


def _evidence(by: PreflightEvidence, answer: PreflightAnswer) -> Iterator[tuple[str, str]]:
    """The launch: when, how it ended, with which bytes and lineage, and where it is unlike the plan."""
    yield "receipt", f"{by.id[:12]}  {by.name}"
    yield "when", f"{by.started:%Y-%m-%d %H:%M} UTC"
    if by.outcome == "ok":
        yield "ended", "ok"
    else:
        phase, chip = by.phase and f"in {by.phase}", None if by.chip is None else f"chip {by.chip}"
        yield "ended", " · ".join(filter(None, (by.outcome, by.class_, phase, chip)))
        sizes = (("requested", by.requested_bytes), ("used", by.used_bytes), ("limit", by.limit_bytes))
        known = ", ".join(f"{word} {amount(size)}" for word, size in sizes if size is not None)
        yield from ((name, text) for name, text in (("bytes", known), ("where", by.operator)) if text)
        if by.blocks:
            yield "blocks", by.blocks
    yield from ((leaf, f"{there} there, {here} here") for leaf, there, here in by.pressures)
    if by.lineage:
        yield "lineage", ", ".join(f"{name} {version}" for name, version in by.lineage)
    yield from (("but", str(item)) for item in by.unlike)
    if answer.worked + answer.failed > 1:
        yield "launches", f"{answer.worked} worked, {answer.failed} failed with this signature"


def _rung(rung: Rung) -> Iterator[tuple[str, str]]:
    """What changes, what it is, and why others were skipped."""
    yield "rung", rung.name if rung.plan is not None else "stop: record the frontier, nothing is left to shrink"
    for path, (old, new) in rung.changes.items():
        if old != new and path not in rung.dropped:
            yield path, f"{old} → {'not stated' if new is None else new}"
    if rung.answer is not None:
        yield "it is", f"{rung.answer.status}: {rung.answer.why}"
    yield from (("skipped", f"{item.rung}: {item.why}") for item in rung.skipped)
    if rung.reason is not None and rung.plan is not None:
        yield "reason", rung.reason
    if rung.dropped:
        yield "state anew", ", ".join(rung.dropped)


def ranking(ranked: Sequence[Ranked]) -> Table:
    """Candidates in the order in which to try them, each with the line where it was."""
    rows = (
        (
            *(str(place), str(item.candidate.line), item.answer.status, item.answer.failure_type or "-"),
            item.answer.by.id[:12] if item.answer.by is not None else "-",
            item.candidate.plan.receipt.run.label or "",
        )
        for place, item in enumerate(ranked, start=1)
    )
    return table_of("", "#try | #line | status | failure | receipt | label", rows)
