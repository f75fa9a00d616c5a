"""What became of a document that was submitted, and the exit code of many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.base.errors import ConflictError, InputError
from receipts.judging.verdict import EXIT, ReceiptVerdict, Status
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Submitted


@dataclass(frozen=True)
class Outcome:
    """What became of one document.

    A stored one has `submitted`, and its `name` and `status` for sentences. Where it was judged by this process there
    are `parsed` and `verdict`, too: where the same bytes were stored before, that is how they are judged now, and
    `submitted.status` how they were then. A refused one has `error`, with every problem in it.
    """

    source: str
    submitted: Submitted | None = None
    verdict: ReceiptVerdict | None = None
    parsed: Parsed | None = None
    error: InputError | ConflictError | None = None
    name: str = ""
    status: Status | None = None

    @property
    def stored(self) -> bool:
        """Whether the store holds the document."""
        return self.submitted is not None


def exit_code(outcomes: Iterable[Outcome], require: Status | None = None) -> int:
    """2 where a document was refused, else 0; with ``require`` the code of the worst status that falls short of it.

    ``valid`` asks for valid, ``unwitnessed`` for anything but invalid.
    """
    refused, statuses = False, set[Status]()
    for item in outcomes:
        refused = refused or not item.stored
        if item.status is not None:
            statuses.add(item.status)
    if refused:
        return 2
    if require is None or require == "invalid":
        return 0
    if "invalid" in statuses:
        return EXIT["invalid"]
    return EXIT["unwitnessed"] if require == "valid" and "unwitnessed" in statuses else 0
