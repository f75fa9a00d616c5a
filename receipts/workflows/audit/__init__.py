"""Auditing: whether a store is what it was when its rows were written.

Every digest is computed again, promoted columns are held against the documents that they come from, verdicts are read
with the receipts that they name, and rows are held against seals. Whoever may change the database may also write new
seals: what shows that is the root of a seal that was kept elsewhere (`expected`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from receipts.base.errors import StoreError
from receipts.store.inspection import Unreadable
from receipts.workflows.audit import rows, seals
from receipts.workflows.audit.fault import RESTORE, Fault, Kind

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store

__all__ = ["Audit", "Fault", "Kind", "audit"]


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
        return _inspected(store, rulebook, expected, progress, faults)
    except StoreError as error:
        if not faults:
            raise
        # Damage that cannot be read around: report what was found so far.
        rest = Fault("unreadable", store.url, *_parts(str(error)))
        return Audit(store.url, {}, 0, (*faults, *([] if rest.found == faults[-1].found else [rest])), (), None)


def _inspected(
    store: Store,
    rulebook: Rulebook,
    expected: Sequence[str],
    progress: Callable[[int, int], None] | None,
    faults: list[Fault],
) -> Audit:
    with store.inspect() as inspection:
        counts = inspection.counts
        if inspection.store is None:
            faults.append(Fault("reference", "stores", "the row with the store's own id is gone", RESTORE))
        step = _counted(progress, counts["receipts"] + counts["verdicts"] + counts["claim_verdicts"])
        drift, indexed = seals.Drift(), rows.Indexed(inspection)
        for kept in step(inspection.receipts()):
            faults += rows.receipt(kept, rulebook, drift, indexed)
        faults += indexed.faults()
        for given in step(inspection.verdicts()):
            faults += rows.verdict(given)
        faults += seals.references(inspection)
        held = list(inspection.seals())
        faults += seals.seals(inspection, held, expected)
        edited, notes = seals.drifted(drift, held)
        faults += edited
        gaps = list(seals.gaps(inspection))
        if inspection.numbers_skip:
            notes = (*notes, *(f"{item.where}: {item.found}" for item in gaps))
        else:
            faults += gaps
        heads = [item.seal.root for item in held if not isinstance(item, Unreadable) and item.seal.what == "seals"]
        return Audit(store.url, counts, inspection.unsealed(), tuple(faults), notes, heads[-1] if heads else None)


def _parts(problem: str) -> tuple[str, str]:
    """What a check of the schema says, and what to do about it."""
    what, _, do = problem.rpartition("; ")
    return (what, do) if what else (problem, RESTORE)


def _counted(progress: Callable[[int, int], None] | None, total: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    done = 0

    def step(rows: Iterable[Any]) -> Iterator[Any]:
        nonlocal done
        for row in rows:
            done += 1
            if progress is not None:
                progress(done, total)
            yield row

    return step
