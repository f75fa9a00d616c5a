"""Pages of a list: a cursor names the last receipt of a page, so that what comes in meanwhile moves none of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from receipts.base.errors import UsageError
from receipts.base.untrusted_text import parse_json
from receipts.store import Entry, Filters, condition
from receipts.store import Store as Opened

ORDERS = ("newest", "oldest")
MOST = 50  # conditions of a list


class Cursor(NamedTuple):
    """The last receipt of a page: when it started, and its number in the store."""

    started: str
    seq: int

    def text(self) -> str:
        """As it goes into a URL."""
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode().rstrip("=")


def read(text: str) -> Cursor:
    """A cursor from a URL. Raises UsageError."""
    try:
        started, seq = parse_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if datetime.fromisoformat(started).tzinfo is None or type(seq) is not int:
            raise ValueError(text)
    except (ValueError, TypeError):
        raise UsageError(f"cursor={text[:40]}: this is no cursor; take the one of the page before") from None
    return Cursor(started, seq)


def page(
    store: Opened,
    conditions: Sequence[str],
    *,
    limit: int,
    order: str = ORDERS[0],
    superseded: bool = False,
    cursor: str | None = None,
) -> tuple[list[Entry], str | None]:
    """So many rows after a cursor, and the cursor of the next page; None where this is the last. Raises UsageError."""
    if len(conditions) > MOST:
        raise UsageError(f"{len(conditions):,} conditions are too many; write at most {MOST}")
    after = read(cursor) if cursor else None
    newest = order == "newest"
    bound = [f"started{'<=' if newest else '>='}{after.started}"] if after else []
    wanted = tuple(condition(text) for text in (*conditions, *bound))
    # Rows of the instant that the last page ended with come again, and are passed by.
    again = 1 if after else 0
    while True:
        filters = Filters(wanted, superseded, "newest" if newest else "oldest", limit + again + 1)
        rows = list(store.find(filters))
        left = [item for item in rows if after is None or not _passed(item, after, newest=newest)]
        if len(left) > limit or len(rows) < limit + again + 1:
            break
        again = 2 * again + 8
    following = Cursor(left[limit - 1].started.isoformat(), left[limit - 1].seq).text() if len(left) > limit else None
    return left[:limit], following


def _passed(item: Entry, after: Cursor, *, newest: bool) -> bool:
    if item.started.isoformat() != after.started:
        return False
    return item.seq >= after.seq if newest else item.seq <= after.seq
