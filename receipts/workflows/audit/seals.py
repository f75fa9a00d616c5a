"""Seals, gaps between rows, references to what is gone, and columns that another version wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from receipts.base.units import counted
from receipts.store.inspection import Unreadable
from receipts.workflows.audit.fault import RESTORE, SHOWN, Fault, unreadable

if TYPE_CHECKING:
    from receipts.store.inspection import Inspection
    from receipts.store.seals import SealRows

_DELETED: Final = "deleted without a purge, or left out when a store came from PostgreSQL"


# Columns that the present version would write otherwise, by the receipt's number.
Drift = dict[int, list[str]]


def references(inspection: Inspection) -> Iterator[Fault]:
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


def seals(inspection: Inspection, every: Sequence[SealRows | Unreadable], expected: Sequence[str]) -> Iterator[Fault]:
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
        shown = ", ".join(str(number) for number in gone[:SHOWN]) + (", …" if len(gone) > SHOWN else "")
        what = f"{one.held - len(item.leaves)} of {one.held} rows were taken away without a tombstone"
        return f"{what}; there is none of number {shown}" if gone else what
    if len(item.leaves) > one.held:
        return f"{len(item.leaves) - one.held} rows were put among the {one.held} that it holds"
    return "a row was changed, or one was exchanged for another"


def gaps(inspection: Inspection) -> Iterator[Fault]:
    why = "a refused or repeated submit leaves such a gap, or a deletion" if inspection.numbers_skip else _DELETED
    for table, gap in inspection.gaps().items():
        shown = ", ".join(map(str, gap.first)) + (", …" if gap.missing > len(gap.first) else "")
        problem = (
            f"{counted(gap.missing, 'row')} that no seal held {'is' if gap.missing == 1 else 'are'} not there ({shown})"
        )
        yield Fault("gap", table, f"{problem}: {why}", f"{RESTORE}; or seal what is here: receipts audit --seal")


def drifted(drift: Drift, held: Sequence[SealRows | Unreadable]) -> tuple[list[Fault], tuple[str, ...]]:
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
    count = len(drift) - len(faults)
    if not count:
        return faults, ()
    note = f"{count} receipts were taken in under other rules, which give another {', '.join(sorted(kept))}"
    return faults, (note,)
