"""Incidents of histories: lines that changed their level and stayed there, until somebody closes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.publish.history import incidents
from receipts.publish.page import Section

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.decisions import Incident


def regressions(store: Store, until: datetime, only: Sequence[str] = ()) -> tuple[Incident, ...]:
    """Incidents of some lanes, or of all, that were opened until a time, to the second, and are not closed."""
    still = (item for item in store.published.incidents() if item.closed is None)
    known = (item for item in still if item.opened.replace(microsecond=0) <= until)
    return tuple(item for item in known if not only or item.body["lane"] in only)


def section(shown: Sequence[Incident]) -> tuple[Section, ...]:
    """The incidents as a table; none where none is open, since not every store is watched."""
    return (Section("regressions", "Open incidents", tables=(incidents(shown),)),) if shown else ()
