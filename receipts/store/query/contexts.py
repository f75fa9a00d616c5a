"""What varies under a context, although the context is to hold it: leaves of which launches there state two values."""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import Connection

from receipts.store.entries import safe
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axis_values, placements, receipts
from receipts.store.write.index import members_of

# The newest launches of a context that are looked at: configurations repeat, and two values of a leaf are enough.
MOST_LAUNCHES: Final = 1000
_LAUNCHES: Final = Lookup(
    [receipts.c.context],
    [placements.c.configuration],
    joined=(placements, placements.c.receipt == receipts.c.seq),
    newest=[receipts.c.started],
)
_VALUES: Final = Lookup([axis_values.c.seq], [axis_values.c.value])


def varied(connection: Connection, context: str) -> frozenset[str]:
    """Axis leaves that the newest launches of a context state with two values."""
    numbers = set(_LAUNCHES.read(connection, [(safe(context),)], MOST_LAUNCHES))
    members = list(members_of(connection, (number for (number,) in sorted(numbers))).values())
    none = frozenset[int]()
    # What every configuration has does not vary.
    apart = none.union(*members) - (members[0].intersection(*members) if members else none)
    seen: dict[str, set[str]] = {}
    for (text,) in _VALUES.read(connection, ((number,) for number in sorted(apart))):
        for path, value in json.loads(text).items():
            seen.setdefault(path, set()).add(json.dumps(value))
    return frozenset(path for path, values in seen.items() if len(values) > 1)
