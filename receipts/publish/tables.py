"""Stored receipts as a table: which columns, with which units, and which a narrow terminal drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.publish.page import Page, Section, Table, table_of
from receipts.publish.readings import number, unit

if TYPE_CHECKING:
    from receipts.store import Entry

NONE = "-"


def stored(entries: Sequence[Entry], *, who: bool = False) -> Table:
    """Stored receipts, one a row; with who submitted them where that is asked for."""
    rate, memory = metrics.get("tokens_per_second"), metrics.get("peak_bytes")
    header = (
        "id | status | outcome | lane ^5 | chips ^3 | #sequence ^6 | #micro ^7"
        f" | rate, [{unit(rate)}] ^1 | !what it is ^8 | peak, [{unit(memory)}] ^4"
        f"{' | submitted by' if who else ''} | label…"
    )
    rows = (
        (
            item.id[:12],
            item.status if item.stands else "superseded",
            item.outcome,
            item.lane,
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            str(item.sequence_length or NONE),
            str(item.micro_batch or NONE),
            number(rate, item.tokens_per_second) if item.tokens_per_second else NONE,
            _basis(item),
            number(memory, item.peak_bytes) if item.peak_bytes else NONE,
            *([item.actor or "not recorded"] if who else []),
            item.label or "",
        )
        for item in entries
    )
    return table_of("Receipts", header, rows, empty="no receipt meets these conditions")


def listed(entries: Sequence[Entry], commands: Mapping[str, str], *, who: bool = False) -> Page | Table:
    """The same, as a page with the commands that would decide open receipts, by receipt, if there are any."""
    steps = tuple((command, f"What would decide {receipt[:12]}") for receipt, command in commands.items() if command)
    table = stored(entries, who=who)
    return Page("Receipts", next=steps, sections=(Section("receipts", "", tables=(table,)),)) if steps else table


def _basis(item: Entry) -> str:
    """What the rate of a receipt is."""
    if item.rate_of is None:
        return {"stated": "as stated", "derived": "derived from what is stated"}.get(item.rate_source or "", NONE)
    return f"{item.rate_of}, not steady" if item.rate_source == "unsteady" else item.rate_of
