"""Auditing: whether a store is what it was when its rows were written.

Every digest is computed again, promoted columns are held against the documents that they come from, verdicts are read
with the receipts that they name, and rows are held against seals. Whoever may change the database may also write new
seals: what shows that is the root of a seal that was kept elsewhere (`expected`).

A fault says where, what, and what to do. Seals, gaps between rows, references to what is gone, and columns that
another version wrote come first; then receipts and verdicts, each against the bytes that it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.base.errors import InputError, ReceiptsError, StoreError
from receipts.base.units import counted
from receipts.metrics import Launch
from receipts.receipt import Document, parse_again
from receipts.store.entries import VerdictColumns, promoted
from receipts.store.entry import ENTRY, taint_kinds
from receipts.store.index import IndexedReceipt
from receipts.store.snapshot import Unreadable

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store
    from receipts.store.seals import SealRows
    from receipts.store.snapshot import Inspection, ReceiptRecord, VerdictRecord


RESTORE: Final = "restore a backup: receipts restore FILE"
MAX_SHOWN: Final = 5
Kind = Literal[
    "schema", "document", "column", "verdict", "reference", "tombstone", "seal", "gap", "index", "unreadable"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was written: where, what was found, and what to do."""

    kind: Kind
    where: str
    found: str
    do: str


def unreadable(row: Unreadable) -> Fault:
    return Fault("unreadable", f"row {row.number} of {row.table}", row.why, RESTORE)


_DELETED: Final = "deleted without a purge, or left out when a store came from PostgreSQL"


# Columns that the present version would write otherwise, by the receipt's number.
Drift = dict[int, list[str]]


def dangling_references(inspection: Inspection) -> Iterator[Fault]:
    for item in inspection.dangling():
        where = f"row {item.number} of {item.table}"
        if item.table == "erased":
            problem = f"a purge erased {item.names[:12]} and its tombstone is gone"
            yield Fault("tombstone", where, problem, RESTORE)
        else:
            problem = f"it names {item.names[:64]}, which is neither here nor purged"
            yield Fault("reference", where, problem, RESTORE)
    for receipt in inspection.raised():
        do = "purge it again: receipts purge ID, or restore a backup"
        yield Fault("tombstone", f"receipt {receipt[:12]}", "it was purged and is here", do)


def seal_faults(
    inspection: Inspection, every: Sequence[SealRows | Unreadable], expected: Sequence[str]
) -> Iterator[Fault]:
    roots = set()
    for item in every:
        if isinstance(item, Unreadable):
            yield unreadable(item)
            continue
        one = item.seal
        roots.add(one.root)
        if not item.whole:
            where = f"seal {one.seq} over {one.what} {one.first} to {one.last}, of {one.at:%Y-%m-%d %H:%M} UTC"
            yield Fault("seal", where, _broken(inspection, item), RESTORE)
    for root in expected:
        if not any(known.startswith(root.lower()) for known in roots):
            problem = "there is no seal of that root: it was taken away, or this is another store"
            yield Fault("seal", f"root {root[:16]}", problem, RESTORE)


def _broken(inspection: Inspection, item: SealRows) -> str:
    one = item.seal
    if len(item.leaves) < one.held:
        gone = inspection.missing(item)
        shown = ", ".join(str(number) for number in gone[:MAX_SHOWN]) + (", …" if len(gone) > MAX_SHOWN else "")
        what = f"{one.held - len(item.leaves)} of {one.held} rows were taken away without a tombstone"
        return f"{what}; there is none of number {shown}" if gone else what
    if len(item.leaves) > one.held:
        return f"{len(item.leaves) - one.held} rows were put among the {one.held} that it holds"
    return "a row was changed, or one was exchanged for another"


def gap_faults(inspection: Inspection) -> Iterator[Fault]:
    why = "a refused or repeated submit leaves such a gap, or a deletion" if inspection.numbers_skip else _DELETED
    for table, gap in inspection.gaps().items():
        shown = ", ".join(map(str, gap.first)) + (", …" if gap.missing > len(gap.first) else "")
        problem = (
            f"{counted(gap.missing, 'row')} that no seal held {'is' if gap.missing == 1 else 'are'} not there ({shown})"
        )
        yield Fault("gap", table, f"{problem}: {why}", f"{RESTORE}; or seal what is here: receipts audit --seal")


def drifted_columns(drift: Drift, held: Sequence[SealRows | Unreadable]) -> tuple[list[Fault], tuple[str, ...]]:
    """Columns that another version may have written: edited where their seal is broken, else no fault."""
    seals = [item for item in held if not isinstance(item, Unreadable) and item.seal.what == "columns"]
    broken = [range(item.seal.first, item.seal.last + 1) for item in seals if not item.whole]
    faults, kept = [], set()
    for number, names in drift.items():
        if any(number in numbers for numbers in broken):
            problem = f"{', '.join(names)}: not what its document gives, and its seal is broken"
            faults.append(Fault("column", f"row {number} of receipts", problem, RESTORE))
        else:
            kept.update(names)
    kept_count = len(drift) - len(faults)
    if not kept_count:
        return faults, ()
    note = f"{kept_count} receipts were taken in under other rules, which give another {', '.join(sorted(kept))}"
    return faults, (note,)


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
                more = f" and {len(items) - MAX_SHOWN:,} more" if len(items) > MAX_SHOWN else ""
                names = f"{len(items):,} ({', '.join(items[:MAX_SHOWN])}{more})"
                yield Fault("index", where, problem.format(names), do)


def receipt_faults(
    kept: ReceiptRecord | Unreadable, rulebook: Rulebook, drift: Drift, indexed: Indexed
) -> Iterator[Fault]:
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
        row = kept.columns
        answer = kept.answer or VerdictColumns(
            row["status"], row["path_answer"], taint_kinds(row["tainted"]), taint_kinds(row["undecided"])
        )
        expected = promoted(launch, answer, row["submitted_at"])
    except ReceiptsError as error:
        reason = error.problems[0] if isinstance(error, InputError) and error.problems else error
        yield Fault("document", where, f"it can no longer be read: {reason}", "upgrade frontier-receipts")
        return
    indexed.add(kept, launch)
    changed = [name for name, value in expected.items() if not _same(kept.columns.get(name), value)]
    judged_otherwise = kept.rules != rulebook.rules.digest
    by_version = [name for name in changed if ENTRY[name].by_version and judged_otherwise]
    if by_version:
        drift[kept.number] = by_version
    for name in changed:
        if name not in by_version:
            problem = (
                f"{name} is {_value_text(kept.columns.get(name))} and its document gives {_value_text(expected[name])}"
            )
            yield Fault("column", where, f"{problem}: the row was edited", RESTORE)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME)
    return bool(one == other)


def _value_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "not stated" if value is None else str(value)


def verdict_faults(given: VerdictRecord | Unreadable) -> Iterator[Fault]:
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
    claim = given.table == "claim_verdicts"
    sides = ("baseline", "candidate") if claim else ("a", "b")
    expected = [(side, item) for side in sides for item in given.body.get(side) or ()]
    if not claim and given.row["kind"] != "comparison":
        expected = [("receipt", given.body.get("receipt"))]
    if list(given.subjects) != expected:
        problem = f"it speaks of {len(expected)} receipts and its rows name {len(given.subjects)}, or others"
        yield Fault("reference", where, problem, RESTORE)


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found. `counts` are rows by table, `unsealed` the receipts and verdicts that no seal holds yet.

    `notes` are no faults: what another version would have written otherwise. `head` is the root of the newest seal
    over seals, None where nothing was sealed.
    """

    store: str
    counts: Mapping[str, int]
    unsealed: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    head: str | None

    @property
    def sealable(self) -> bool:
        """Whether a seal would hold nothing that is wrong: a gap is closed by the person who seals over it."""
        return all(item.kind == "gap" for item in self.faults)

    @property
    def exit_code(self) -> int:
        """0 where all is as it was written, else 1."""
        return 1 if self.faults else 0


def audit(
    store: Store, rulebook: Rulebook, expected: Sequence[str] = (), progress: Callable[[int, int], None] | None = None
) -> Audit:
    """Look a whole store over, in one state of it. Raises StoreError where it cannot be read at all.

    ``expected`` are roots of seals that must be there. ``progress`` is called with the rows done and their total.
    """
    try:
        faults = [Fault("schema", store.url, *_parts(problem)) for problem in store.check().problems]
    except StoreError as error:
        faults = [Fault("schema", store.url, *_parts(str(error)))]
    try:
        with store.inspect() as inspection:
            counts = inspection.counts
            if inspection.store is None:
                faults.append(Fault("reference", "stores", "the row with the store's own id is gone", RESTORE))
            total, done = counts["receipts"] + counts["verdicts"] + counts["claim_verdicts"], count(1)

            def step(rows: Iterable[Any]) -> Iterator[Any]:
                for row in rows:
                    if progress is not None:
                        progress(next(done), total)
                    yield row

            drift, indexed = Drift(), Indexed(inspection)
            for kept in step(inspection.receipts()):
                faults += receipt_faults(kept, rulebook, drift, indexed)
            faults += indexed.faults()
            for given in step(inspection.verdicts()):
                faults += verdict_faults(given)
            faults += dangling_references(inspection)
            held = list(inspection.seals())
            faults += seal_faults(inspection, held, expected)
            edited, notes = drifted_columns(drift, held)
            faults += edited
            gaps = list(gap_faults(inspection))
            if inspection.numbers_skip:
                notes = (*notes, *(f"{item.where}: {item.found}" for item in gaps))
            else:
                faults += gaps
            heads = [item.seal.root for item in held if not isinstance(item, Unreadable) and item.seal.what == "seals"]
            return Audit(store.url, counts, inspection.unsealed(), tuple(faults), notes, heads[-1] if heads else None)
    except StoreError as error:
        if not faults:
            raise
        # Damage that cannot be read around: report what was found so far.
        rest = Fault("unreadable", store.url, *_parts(str(error)))
        return Audit(store.url, {}, 0, (*faults, *([] if rest.found == faults[-1].found else [rest])), (), None)


def refuse_changed(store: Store, rulebook: Rulebook, name: str, progress: Callable[[int, int], None]) -> None:
    """Refuse a backup with a row that is not as it was written. Raises StoreError.

    A gap may have been there when it was made, and an index is made anew by a command.
    """
    wrong = [item for item in audit(store, rulebook, (), progress).faults if item.kind not in ("gap", "index")]
    if wrong:
        more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
        raise StoreError(
            f"{name}: nothing was restored, because it is not as it was written: {wrong[0].where}: {wrong[0].found}"
            f"{more}; list all with: receipts --store {name} audit; and restore an earlier backup"
        )


def _parts(problem: str) -> tuple[str, str]:
    """What a check of the schema says, and what to do about it."""
    what, _, do = problem.rpartition("; ")
    return (what, do) if what else (problem, RESTORE)
