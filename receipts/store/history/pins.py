"""Pins: names of receipts, with all that each was set to. Each is a row that is added."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, insert, select

from receipts.base.errors import UsageError
from receipts.store.database import By
from receipts.store.entries import entry_with_id
from receipts.store.history.withdrawals import fallen
from receipts.store.tables import pins

_PIN: Final = re.compile(r"^[A-Za-z][A-Za-z0-9._-]{0,99}$")


class Pin(NamedTuple):
    """A named reference at some time; `receipt` is None where the name was taken away.

    `withdrawn` says how a receipt that no longer stands fell, and why.
    """

    name: str
    receipt: str | None
    note: str | None
    at: datetime
    actor: str | None = None
    withdrawn: str | None = None


_COLUMNS: Final = Pin._fields[:-1]


def pin(connection: Connection, by: By, name: str, receipt_id: str | None, note: str | None = None) -> Pin:
    """Point ``@name`` at a receipt, or, with None, take the name away. Raises NotFound, UsageError."""
    if receipt_id is not None:
        entry_with_id(connection, receipt_id)
    bare = name.removeprefix("@")
    if not _PIN.match(bare):
        raise UsageError(f"{name!r} cannot name a pin; write @ and a letter, then letters, digits, . _ or -")
    fell = fallen(connection, [receipt_id] if receipt_id is not None else ()).get(receipt_id or "")
    placed = Pin(bare, receipt_id, note, by.at, by.actor, str(fell) if fell is not None else None)
    connection.execute(insert(pins).values(name=bare, receipt=receipt_id, note=note, **by._asdict()))
    return placed


def pin_history(connection: Connection, name: str | None = None) -> list[Pin]:
    """What one pin, or every pin, has pointed at, oldest first."""
    query = select(*(pins.c[name] for name in _COLUMNS)).order_by(pins.c.seq)
    if name is not None:
        query = query.where(pins.c.name == name.removeprefix("@"))
    placed = [Pin._make((*row, None)) for row in connection.execute(query)]
    fell = fallen(connection, {item.receipt for item in placed if item.receipt is not None})
    return [item._replace(withdrawn=str(fell[item.receipt])) if item.receipt in fell else item for item in placed]


def current_pins(connection: Connection) -> dict[str, Pin]:
    """Each pin that is set, by its name without the @."""
    last = {item.name: item for item in pin_history(connection)}
    return {name: item for name, item in sorted(last.items()) if item.receipt is not None}
