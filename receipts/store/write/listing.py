"""What a receipt is listed by beside its axes: when, where and from which code it ran, and its outcome.

What came of it is one of some hundred combinations of columns, a facet, so that a list of what nobody has is known to
be empty at once, and one of what few have is read in its order, however many receipts there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam, exists, insert, select

from receipts.receipt import Parsed
from receipts.store.entries import cut
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import facets

# Columns of `receipts` with few values; a facet's text has them in this order.
OF_FACET: Final = (
    *("lane", "kind", "outcome", "provenance", "status", "path_answer", "tainted", "schema_version"),
    *("accelerator", "rate_source", "failure_phase", "failure_class"),
)
# Columns of `receipts` that a receipt is listed by, and those of `placements` that say it.
COLUMNS: Final = ("started", "host", "context", *OF_FACET)
LISTED: Final = ("at", "facet", "host", "context", "revision")
COMMIT: Final = "code.commit"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Facet(NamedTuple):
    """A combination of columns, as JSON, and 8 bytes of its SHA-256, signed."""

    digest: int
    value: str


class ListingKeys(NamedTuple):
    """What one receipt is listed by. ``at`` is `run.started` in microseconds since 1970; texts are cut for an index."""

    at: int
    facet: Facet
    host: str | None
    context: str | None
    revision: str | None

    @property
    def row(self) -> dict[str, Any]:
        """The columns of `placements`."""
        return {**self._asdict(), "facet": self.facet.digest}


def listed(row: Mapping[str, Any], parsed: Parsed) -> ListingKeys:
    """What a receipt is listed by, from its row of `receipts` and from the document, which alone has the commit."""
    revision = parsed.stated.get(COMMIT)
    return ListingKeys(
        at=instant(row["started"]),
        facet=facet(tuple(row[name] for name in OF_FACET)),
        host=cut(row["host"]),
        context=cut(row["context"]),
        revision=cut(revision.replace("\0", "\\u0000")) if isinstance(revision, str) else None,
    )


def instant(moment: datetime) -> int:
    """A moment as lists order by it: microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=4096)
def facet(values: tuple[str | None, ...]) -> Facet:
    """The facet of these columns' values."""
    text = json.dumps(values, separators=(",", ":"))
    return Facet(int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True), text)


# Two writers of one new facet meet at its key, and the second begins again.
INSERT: Final = SqlStatement(
    insert(facets).from_select(
        ["digest", "value"],
        select(bindparam("digest", type_=facets.c.digest.type), bindparam("value", type_=facets.c.value.type)).where(
            ~exists().where(facets.c.digest == bindparam("digest"))
        ),
    )
)
