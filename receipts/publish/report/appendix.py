"""The appendix of a page: every receipt that it stands on, each with an anchor that numbers lead to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from receipts.judging.facts import Facts
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.publish.report.data import Described
from receipts.publish.report.page import Cell, Code, Entry, Section
from receipts.publish.report.ref import Ref
from receipts.publish.report.text import NOTE, plain
from receipts.receipt import Parsed

MOST_NOTES = 6


def ref_of(parsed: Parsed) -> Ref:
    """What to call a receipt."""
    return Ref(parsed.id, parsed.name)


def described(parsed: Parsed, verdict: ReceiptVerdict, facts: Facts | None = None) -> Described:
    """A receipt as the appendix has it; facts say whether it stands."""
    run = parsed.receipt.run
    said = facts.superseded.get(parsed.id) if facts is not None else None
    notes = [(key, value) for key, value in (parsed.receipt.notes or {}).items() if isinstance(value, str)]
    errors = dict.fromkeys(found.code for found in verdict.findings if found.level is Level.ERROR)
    return Described(
        receipt=ref_of(parsed),
        launch=run.launch,
        lane=run.lane,
        kind=run.kind,
        outcome=run.outcome,
        provenance=run.provenance,
        status=verdict.status,
        path=verdict.path,
        started=run.started_stated or f"{run.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        finished=f"{run.finished.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if run.finished else None,
        context=run.context,
        notes=tuple(notes[:MOST_NOTES]),
        errors=tuple(errors),
        superseded_by=said[0] if said is not None else None,
    )


def section(receipts: Sequence[Described]) -> Section:
    """The appendix in words."""
    says = (
        "Every receipt that a number of this page stands on. Print one with: receipts show ID; its bytes with --raw."
        if receipts
        else "This page stands on no receipt."
    )
    return Section("receipts", "Receipts", (says,), entries=tuple(map(_entry, receipts)))


def _entry(item: Described) -> Entry:
    facts: list[tuple[str, Cell]] = [
        ("id", (Code(item.receipt.id),)),
        ("launch", (Code(item.launch),)),
        ("run", (f"{item.lane} · {item.kind} · {item.outcome} · {item.provenance}",)),
        ("judged", (f"{item.status} · path {item.path}{' · ' if item.errors else ''}{', '.join(item.errors)}",)),
        ("ran", (f"{item.started}{f' to {item.finished}' if item.finished else ''}",)),
    ]
    if item.superseded_by is not None:
        facts.append(("superseded", (f"by {item.superseded_by[:12]}" if item.superseded_by else "retracted",)))
    if item.context:
        facts.append(("context", (item.context,)))
    facts += [(plain(key.replace("_", " ")), (plain(text, NOTE),)) for key, text in item.notes]
    return Entry(item.receipt.anchor, plain(item.receipt.name), tuple(facts))
