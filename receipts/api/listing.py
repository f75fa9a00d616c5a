"""A page of stored receipts, and the cursor of the next one.

A cursor names the last receipt of a page, so that receipts that come in meanwhile move none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from receipts.api.receipt import Receipts
from receipts.base.errors import NoStore, UsageError, near
from receipts.base.untrusted_text import parse_json
from receipts.store import Condition, Entry, Filters, ListPlan, condition

if TYPE_CHECKING:
    from receipts.api.session import Session
    from receipts.store import Store
    from receipts.store.query.lists import Order

MAX_CONDITIONS = 50
NO_RECEIPTS = "no receipts yet; add one with: receipts submit FILE"


class Cursor(NamedTuple):
    """The last receipt of a page: when it started, and its number in the store."""

    started: str
    seq: int

    @property
    def moment(self) -> datetime:
        """When the receipt's launch started."""
        return datetime.fromisoformat(self.started)

    def text(self) -> str:
        """As it goes into a URL."""
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """A cursor from a URL. Raises UsageError."""
    try:
        started, seq = parse_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if datetime.fromisoformat(started).tzinfo is None or type(seq) is not int:
            raise ValueError(text)
    except (ValueError, TypeError):
        raise UsageError(f"cursor={text[:40]}: this is no cursor; take the one of the page before") from None
    return Cursor(started, seq)


def listed(
    session: Session,
    conditions: Sequence[str],
    *,
    limit: int,
    order: Order,
    superseded: bool,
    deciding: bool,
    cursor: str | None,
) -> Receipts:
    """So many receipts, 0 for all, with the cursor of the next page and what there is to say. Raises UsageError."""
    if len(conditions) > MAX_CONDITIONS:
        raise UsageError(f"{len(conditions):,} conditions are too many; write at most {MAX_CONDITIONS}")
    if limit < 0:
        raise UsageError(f"--limit {limit}: write how many rows to print at most; 0 for all")
    wanted = tuple(condition(text) for text in conditions)
    try:
        store = session.store
    except NoStore:
        if session.chosen:
            raise  # a name that may be mistyped
        return Receipts(session, [], {} if deciding else None, (NO_RECEIPTS,), nothing=True)
    rows, following = _page(session, store, wanted, limit, order, cursor, superseded=superseded)
    commands = {item.id: _deciding(session, store, item.id) for item in rows if deciding and item.status == "open"}
    notes: tuple[str, ...] = (f"the first {limit}; --limit 0 prints all",) if following else ()
    if not rows:
        # The lanes that a condition may mean, where it names one that nobody declared.
        lanes = session.rulebook.lanes.names()
        names = [
            item.value for item in wanted if item.name == "lane" and item.operator == "=" and item.value not in lanes
        ]
        notes += tuple(f"there is no lane {name!r}{hint}" for name in names if (hint := near(str(name), lanes)))
    return Receipts(session, rows, commands if deciding else None, notes, following)


def _page(
    session: Session,
    store: Store,
    conditions: tuple[Condition, ...],
    limit: int,
    order: Order,
    cursor: str | None,
    *,
    superseded: bool,
) -> tuple[list[Entry], str | None]:
    """So many rows after a cursor, and the cursor of the next page; None where this is the last."""
    after = read_cursor(cursor) if cursor else None
    behind = (after.moment, after.seq) if after is not None else None
    filters = Filters(conditions, superseded, order, limit + 1 if limit else None, behind)
    plan = store.plan(filters)
    slow = plan.slow and bool(conditions)
    if slow:
        session.note(_scanning(plan))
    rows = list(store.find(filters, session.advance if slow else None))
    if not limit or len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], Cursor(last.started.isoformat(), last.seq).text()


def _deciding(session: Session, store: Store, receipt: str) -> str:
    """The command that would decide an open receipt, as the present rules judge it."""
    from receipts.judging.judge import judge_receipt
    from receipts.questions.next_command import of_receipt

    parsed = store.parsed(receipt)
    lane = session.rulebook.lanes.of(parsed.receipt.run.lane)
    return of_receipt(parsed, judge_receipt(parsed, lane, session.rulebook.rules, store.query.facts([parsed])))


def _scanning(plan: ListPlan) -> str:
    """What takes time about a list, and what would make it quick."""
    documents = f" and reads documents for {', '.join(plan.documents)}, which no index holds" if plan.documents else ""
    return f"scans {plan.most:,} receipts{documents}; context=, host=, code.commit= or started>= leave fewer to look at"
