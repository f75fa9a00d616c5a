"""Receipts, verdicts and what indexes say of them, each held against the bytes that it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import InputError, ReceiptsError
from receipts.metrics import Launch
from receipts.receipt import Document, parse_again
from receipts.store.entries import VerdictColumns, promoted, taint_kinds
from receipts.store.index import IndexedReceipt
from receipts.store.inspection import Unreadable
from receipts.workflows.audit.fault import RESTORE, SHOWN, Fault, unreadable
from receipts.workflows.audit.seals import Drift

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store.inspection import Inspection, ReceiptRecord, VerdictRecord

# What the registries and formulas of the version that took a receipt in had a say in.
_BY_VERSION: Final = (
    *("accelerator", "geometry", "layout", "tokens_per_second", "tokens_per_second_per_chip", "step_seconds"),
    *("rate_source", "rate_of", "tflops_per_second_per_chip", "mfu", "peak_bytes", "peak_reserved_bytes"),
    "compile_seconds",
)
_ANEW: Final = "make it anew: receipts db reindex --all"
# Where, what is reported of so many, and what to do.
_INDEX: Final = {
    "missing": ("axis index", "receipts that it does not hold: {}", "add them: receipts db reindex"),
    "elsewhere": ("axis index", "receipts that it has under other values than their documents state: {}", _ANEW),
    "signed": ("signatures", "receipts that have another than their documents give, or none: {}", _ANEW),
    "configurations": ("axis index", "configurations that are not what their receipts ran: {}", _ANEW),
}
_SAME: Final = 1e-12  # one formula on two machines differs in its last digits
_AT_ONCE: Final = 200  # receipts that are held against the index together


class Indexed:
    """What the axis index and signatures say, held against documents as they are read."""

    def __init__(self, inspection: Inspection) -> None:
        self._index = inspection.index
        self._waiting: list[IndexedReceipt] = []
        self._names: dict[int, str] = {}
        self._unsound: dict[str, list[str]] = {name: [] for name in _INDEX}

    def add(self, kept: ReceiptRecord, launch: Launch) -> None:
        """A receipt whose document was read, to be looked up with others."""
        self._waiting.append(IndexedReceipt.of(kept.number, kept.columns["started"], launch))
        self._names[kept.number] = kept.id[:12]
        if len(self._waiting) >= _AT_ONCE:
            self._look()

    def _look(self) -> None:
        unsound = self._index.faults(self._waiting)
        for name in ("missing", "elsewhere", "signed"):
            self._unsound[name] += [self._names[number] for number in getattr(unsound, name)]
        self._unsound["configurations"] += map(str, unsound.configurations)
        self._waiting, self._names = [], {}

    def faults(self) -> Iterator[Fault]:
        """One for each kind: what an index lost it may have lost for every receipt."""
        self._look()
        for name, items in self._unsound.items():
            if items:
                where, problem, do = _INDEX[name]
                yield Fault("index", where, problem.format(_counted_names(items)), do)


def _counted_names(items: Sequence[str]) -> str:
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return f"{len(items):,} ({', '.join(items[:SHOWN])}{more})"


def receipt(kept: ReceiptRecord | Unreadable, rulebook: Rulebook, drift: Drift, indexed: Indexed) -> Iterator[Fault]:
    if isinstance(kept, Unreadable):
        yield unreadable(kept)
        return
    where = f"receipt {kept.id[:12]}"
    if kept.raw is None:
        yield Fault("document", where, kept.why, RESTORE)
        return
    document = Document(kept.raw, where)
    if document.id != kept.id:
        problem = f"its bytes hash to {document.id[:12]}: they were changed, or its id was"
        yield Fault("document", where, problem, RESTORE)
        return
    if kept.size != len(kept.raw):
        yield Fault("document", where, f"it has {len(kept.raw)} bytes and its row says {kept.size}", RESTORE)
    if kept.answer is None:
        yield Fault("verdict", where, "the verdict that it was stored with is gone", RESTORE)
    try:
        parsed = parse_again(document)
        launch = rulebook.launch(parsed)
        expected = _promoted(launch, kept)
    except ReceiptsError as error:
        reason = error.problems[0] if isinstance(error, InputError) and error.problems else error
        yield Fault("document", where, f"it can no longer be read: {reason}", "upgrade frontier-receipts")
        return
    indexed.add(kept, launch)
    changed = [name for name, value in expected.items() if not _same(kept.columns.get(name), value)]
    judged_otherwise = kept.rules != rulebook.rules.digest
    by_version = [name for name in changed if name in _BY_VERSION and judged_otherwise]
    if by_version:
        drift[kept.number] = by_version
    for name in changed:
        if name not in by_version:
            problem = (
                f"{name} is {_value_text(kept.columns.get(name))} and its document gives {_value_text(expected[name])}"
            )
            yield Fault("column", where, f"{problem}: the row was edited", RESTORE)


def _promoted(launch: Launch, kept: ReceiptRecord) -> dict[str, Any]:
    """The columns that follow from the bytes, and from the verdict that was given with them."""
    row = kept.columns
    answer = kept.answer or VerdictColumns(
        row["status"], row["path_answer"], taint_kinds(row["tainted"]), taint_kinds(row["undecided"])
    )
    return promoted(launch, answer, row["submitted_at"])


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME)
    return bool(one == other)


def _value_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "not stated" if value is None else str(value)


def verdict(given: VerdictRecord | Unreadable) -> Iterator[Fault]:
    if isinstance(given, Unreadable):
        yield unreadable(given)
        return
    where = f"row {given.number} of {given.table}"
    if given.body is None:
        yield Fault("verdict", where, given.why, RESTORE)
        return
    for name in ("status", "rules", "judge"):
        if (value := given.body.get(name)) != given.row[name]:
            problem = f"{name} is {given.row[name]} and its body says {value}: the row was edited"
            yield Fault("verdict", where, problem, RESTORE)
    expected = _sides(given)
    if list(given.subjects) != expected:
        problem = f"it speaks of {len(expected)} receipts and its rows name {len(given.subjects)}, or others"
        yield Fault("reference", where, problem, RESTORE)


def _sides(given: VerdictRecord) -> list[tuple[str, str | None]]:
    assert given.body is not None
    if given.table != "claim_verdicts" and given.row["kind"] != "comparison":
        return [("receipt", given.body.get("receipt"))]
    sides = ("baseline", "candidate") if given.table == "claim_verdicts" else ("a", "b")
    return [(side, item) for side in sides for item in given.body.get(side) or ()]
