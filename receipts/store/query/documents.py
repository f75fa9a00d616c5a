"""Conditions that no index holds, answered by the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, select

from receipts.axes.configuration import input_value
from receipts.axes.effective import OPEN_MAPS, UNSET, effective, is_complete
from receipts.axes.inputs import PREFIX
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.store.entries import Entry
from receipts.store.packing import AT_ONCE, unpack
from receipts.store.query.conditions import NOT_STATED, Condition, meets, number
from receipts.store.sql import engine_of
from receipts.store.tables import documents

_PLAIN: Final = re.compile(r"[\w .:@-]{3,}", re.ASCII)  # as it is in any JSON that does not escape it


def meeting_leaves(
    connection: Connection, rows: Iterator[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    """Those of some receipts whose documents meet conditions on leaves; some are read at a time."""
    needles = [needle for path, item in conditions for needle in _needles(path, item)]
    while chunk := list(islice(rows, AT_ONCE)):
        stored = documents_of(connection, [row.seq for row in chunk])
        for row in chunk:
            raw = stored[row.seq]
            if not all(needle in raw for needle in needles) and rb"\u" not in raw:
                continue
            parsed = parse(Document(raw, row.id[:12]))
            if all(meets(value_of(parsed, path), item) for path, item in conditions):
                yield row


def documents_of(connection: Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """The bytes of receipts by their numbers, some hundred; what is not stored is left out. Raises StoreError."""
    query = select(documents.c.receipt, documents.c.codec, documents.c.body)
    rows = connection.execute(query.where(engine_of(connection).among(documents.c.receipt, numbers)))
    return {number: unpack(codec, body, f"document {number}") for number, codec, body in rows}


def _needles(path: str, item: Condition) -> Iterator[bytes]:
    """What a document that meets a condition has in its bytes, unless it escapes what need not be escaped.

    To look for it is a twentieth of the work of reading the document.
    """
    leaf = find_leaf(path)
    if leaf is None or leaf.role in (Role.AXIS, Role.DERIVED) or item.operator == "!=" or item.value == NOT_STATED:
        return
    yield b'"%s"' % path.rpartition(".")[2].encode()
    if item.operator == "=" and _PLAIN.fullmatch(item.value) and number(item.value) is None:
        yield item.value.encode()


def value_of(parsed: Parsed, path: str) -> Any:
    """The value at a leaf: what was effective where it is an axis, else what is stated; None where it is not stated."""
    value = effective(parsed).get(path)
    if value == UNSET and (name := path.partition(".")[0]) in OPEN_MAPS and is_complete(parsed, name):
        return None  # it says what its absence says
    if value is not None:
        return value
    stated = parsed.stated
    if path.startswith(PREFIX) and path not in stated:
        return input_value(parsed, path)
    for name in (path, f"{path}.value", f"{path}.version"):
        if name in stated:
            return stated[name]
    return None
