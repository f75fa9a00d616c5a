"""From what people type to receipts: an id, its beginning, a label, ``label=glob*``, conditions, a launch, ``@pin``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, select

from receipts.base.errors import NotFound, near
from receipts.base.units import named
from receipts.store.entries import standing
from receipts.store.query import condition
from receipts.store.query.lists import Filters, find
from receipts.store.query.terms import begins_with, pattern_prefix
from receipts.store.sql import engine_of
from receipts.store.tables import pins, placements, purges, receipts

_HEX: Final = re.compile(r"^[0-9a-f]{4,64}$")
_CONDITION: Final = re.compile(r"[A-Za-z][\w.*-]*(?:!=|<=|>=|=|<|>).")
MAX_SHOWN: Final = 5
NEWEST: Final = 1000  # launches among whose labels a mistyped one is looked for


def resolve_all(connection: Connection, text: str) -> list[str]:
    """Ids of all receipts that a text names, newest launch first; a label may name several, an id names one.

    Receipts that no longer stand are found by id or pin, and by label or launch only where none of that name stands.
    Raises NotFound where nothing is called so, where a beginning fits several ids, and where a text is both the
    beginning of an id and a label.
    """
    if text.startswith("@"):
        query = select(pins.c.receipt).where(pins.c.name == text[1:]).order_by(pins.c.seq.desc()).limit(1)
        pinned: str | None = connection.execute(query).scalar()
        if pinned is None:
            names = sorted(set(connection.execute(select(pins.c.name)).scalars()))
            do = f"known: {named(names, MAX_SHOWN)}" if names else "set one: receipts pin @NAME ID"
            raise NotFound(f"there is no pin {text}; {do}")
        _refuse_purged(connection, pinned)
        return [pinned]
    conditions = _conditions(text)
    if text.startswith("label=") and not conditions:
        return _labelled(connection, text, text.removeprefix("label="))
    by_name = _called(connection, receipts.c.label == text) or _called(connection, receipts.c.launch == text)
    if conditions and not by_name:
        # Receipts that meet every condition, as `list` finds them: those that stand, or all where none does.
        wanted = tuple(map(condition, conditions))
        for superseded in (False, True):
            if ids := [item.id for item in find(connection, Filters(wanted, superseded))]:
                return ids
        raise NotFound(f"no receipt meets {text!r}; see: receipts list {' '.join(map(repr, conditions))}")
    by_id: list[str] = []
    if _HEX.match(start := text.lower()):
        # All 64 digits are one key; of fewer a few are enough to name.
        query = select(receipts.c.id).where(receipts.c.id >= start, receipts.c.id < f"{start}g").order_by(receipts.c.id)
        by_id = list(connection.execute(query.limit(MAX_SHOWN + 1)).scalars())
    if by_id and by_name and by_id != by_name:
        raise NotFound(
            f"{text!r} is a label and the beginning of {by_id[0][:16]}; write label={text}, or more of the id"
        )
    if by_name:
        return by_name
    if len(by_id) > 1:
        beginnings = named([item[:16] for item in by_id], MAX_SHOWN)
        raise NotFound(f"{text!r} is the beginning of {beginnings}; write more of it")
    if by_id:
        return by_id
    raise _unknown(connection, text)


def resolve(connection: Connection, text: str, *, repeated: bool = False) -> str:
    """The id of the one receipt that a text names. Raises NotFound as `resolve_all`, and where it names several.

    With ``repeated`` it may name several of one configuration; the newest that was measured and ended well represents
    them.
    """
    ids = resolve_all(connection, text)
    if len(ids) == 1:
        return ids[0]
    if repeated and (one := _of_one_configuration(connection, ids)):
        return one
    shown, of = named([item[:12] for item in ids], MAX_SHOWN), " of several configurations" if repeated else ""
    raise NotFound(f"{len(ids)} receipts{of} are called {text!r}: {shown}; write the id of one")


def _of_one_configuration(connection: Connection, ids: Sequence[str]) -> str | None:
    """The launch that represents these; None where the index does not show that they ran one configuration."""
    query = (
        select(receipts.c.id, receipts.c.kind, receipts.c.outcome, placements.c.configuration)
        .join(placements, placements.c.receipt == receipts.c.seq)
        .where(engine_of(connection).among(receipts.c.id, list(ids)))
    )
    rows = {row.id: row for row in connection.execute(query)}
    if len(rows) < len(ids) or len({row.configuration for row in rows.values()}) > 1:
        return None
    return min(ids, key=lambda item: (rows[item].outcome != "ok", rows[item].kind != "training"))


def _labelled(connection: Connection, text: str, pattern: str) -> list[str]:
    start, label = pattern_prefix(pattern), receipts.c.label
    beginning = label == pattern if start == pattern else begins_with(label, start) if start else label.is_not(None)
    ids = _called(connection, beginning, lambda name: start == pattern or fnmatch.fnmatchcase(name, pattern))
    if not ids:
        raise NotFound(f"no receipt has {text}; see: receipts list")
    return ids


def _conditions(text: str) -> list[str]:
    """The conditions of ``label=x batch.micro_batch=1``; a word without a sign belongs to the value before it.

    Empty for ``label=…`` alone, which is looked up as it is.
    """
    conditions: list[str] = []
    for part in text.split():
        if _CONDITION.match(part):
            conditions.append(part)
        elif conditions:
            conditions[-1] += f" {part}"
        else:
            return []
    return conditions if len(conditions) > 1 or not text.startswith("label=") else []


def _called(
    connection: Connection, named: ColumnElement[bool], fits: Callable[[str], bool] = lambda _label: True
) -> list[str]:
    """Receipts with a name, the newest first: those that stand, or all where none does; ``fits`` is asked of labels."""
    query = select(receipts.c.id, receipts.c.label).where(named)
    query = query.order_by(receipts.c.started.desc(), receipts.c.seq.desc())
    for narrowed in (query.where(standing()), query):
        ids = [row.id for row in connection.execute(narrowed) if fits(row.label)]
        if ids:
            return ids
    return []


def _unknown(connection: Connection, text: str) -> NotFound:
    if _HEX.match(text.lower()):
        _refuse_purged(connection, text.lower())
    elif re.match(r"^[0-9a-fA-F]{1,3}$", text):
        return NotFound(f"{text!r} is too short for an id; write at least 4 digits of it")
    if pattern_prefix(text) != text:
        return NotFound(f"no receipt is called {text!r}; launches whose labels match it are: 'label={text}'")
    newest = select(receipts.c.label).where(receipts.c.label.is_not(None)).order_by(receipts.c.seq.desc())
    labels = connection.execute(newest.limit(NEWEST)).scalars()
    return NotFound(
        f"no receipt is called {text!r}: no id begins with it, and no label or launch has that name; "
        f"see: receipts list{near(text, labels)}"
    )


def _refuse_purged(connection: Connection, beginning: str) -> None:
    query = select(purges).where(purges.c.receipt >= beginning, purges.c.receipt < beginning + "g").limit(1)
    row = connection.execute(query).first()
    if row is not None:
        who = f" by {row.actor}" if row.actor else ""
        raise NotFound(f"{row.receipt[:12]} was purged on {row.at:%Y-%m-%d}{who}: {row.reason}")
