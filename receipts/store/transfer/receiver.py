"""What an import calls: batches of another store's rows, each one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from receipts.store.store import Store
from receipts.store.transfer import receipts as intake
from receipts.store.transfer import rows as intake_rows
from receipts.store.transfer import sealed, verdicts
from receipts.store.transfer.origins import Row, TakenRows
from receipts.store.transfer.receipts import Arrival, IntakeResult
from receipts.store.transfer.verdicts import VerdictRow

T = TypeVar("T")


class Receiver:
    """A store that takes in what another store exported, all of it or a part; ``other`` is that store's id.

    Every method is one transaction, and doing it again changes nothing. Raises StoreError.
    """

    def __init__(self, store: Store, other: str, *, whole: bool) -> None:
        self._store = store
        self._whole = whole
        self._other = other

    def receipts(self, batch: Sequence[Arrival], statements: Mapping[str, Sequence[Row]]) -> IntakeResult:
        """Receipts with the verdicts on each alone; see `intake.take`."""
        return self._write(
            lambda connection: intake.take(connection, self._other, batch, statements, whole=self._whole)
        )

    def verdicts(self, batch: Sequence[VerdictRow]) -> tuple[int, int]:
        """Verdicts on several receipts: how many are new, and how many were left out."""
        return self._write(lambda connection: verdicts.take_comparisons(connection, self._other, batch))

    def rows(self, name: str, rows: Sequence[Row]) -> TakenRows:
        """Rows of any other dataset."""
        special = {
            "claims": intake_rows.take_claims,
            "claim_verdicts": verdicts.take_claim_verdicts,
            "erased": sealed.take_erased,
            "origins": sealed.take_origins,
            "purges": intake_rows.take_purges,
            "seals": sealed.take_seals,
        }
        take = special.get(name)
        if not rows:
            return TakenRows(0)
        if take is not None:
            return self._write(lambda connection: take(connection, self._other, rows))
        return self._write(lambda connection: intake_rows.take_plain(connection, self._other, name, rows))

    def _write(self, work: Callable[[Connection], T]) -> T:
        return self._store.database.write(work, alone=True)
