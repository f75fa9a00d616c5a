"""One document on its way into a store, and the exit code of many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.base.errors import ConflictError, InputError
from receipts.judging.verdict import EXIT, ReceiptVerdict, Status
from receipts.receipt import Document, Parsed

if TYPE_CHECKING:
    from receipts.store import Prepared, Submitted


@dataclass(frozen=True, slots=True)
class Submission:
    """One document. Each stage of the pipeline fills in one field more.

    The way ends with `submitted`, or with `error`, which has every problem of the document. `verdict` is how the
    document is judged now; where the same bytes were stored before, `submitted.status` is how they were judged then.
    A document that another process judged comes back without `parsed` and `verdict`.
    """

    source: str
    document: Document | None = None
    parsed: Parsed | None = None
    verdict: ReceiptVerdict | None = None
    prepared: Prepared | None = None
    submitted: Submitted | None = None
    error: InputError | ConflictError | None = None
    name: str = ""
    status: Status | None = None

    @property
    def stored(self) -> bool:
        """Whether the store holds the document."""
        return self.submitted is not None

    @property
    def ended(self) -> bool:
        """Whether no stage has anything left to do."""
        return self.submitted is not None or self.error is not None


def exit_code(submissions: Iterable[Submission], require: Status | None = None) -> int:
    """2 where a document was refused, else 0; with ``require`` the code of the worst status that falls short of it.

    ``valid`` asks for valid, ``open`` for anything but invalid.
    """
    refused, statuses = False, set[Status]()
    for item in submissions:
        refused = refused or not item.stored
        if item.status is not None:
            statuses.add(item.status)
    if refused:
        return 2
    if require is None or require == "invalid":
        return 0
    if "invalid" in statuses:
        return EXIT["invalid"]
    return EXIT["open"] if require == "valid" and "open" in statuses else 0
