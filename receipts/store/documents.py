"""Documents: how they and verdicts are packed, how they are read by number, and conditions that no index holds.

The client packs them, so that the server and the wire carry a third.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from isal import isal_zlib
from sqlalchemy import Connection, insert, select

from receipts.axes.configuration import input_value
from receipts.axes.effective import OPEN_MAPS, UNSET, effective, is_complete
from receipts.axes.inputs import PREFIX
from receipts.base.errors import StoreError
from receipts.base.untrusted_text import parse_json
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.store.database import By
from receipts.store.entry import Entry
from receipts.store.query import NOT_STATED, Condition, meets, number
from receipts.store.sql import engine_of
from receipts.store.tables import documents, extracts, receipts

# zlib's format, which every zlib reads. ISA-L writes it five times as fast: a 15 kB receipt (64 chips, 300 steps) takes
# 0.02 ms for 4.7 kB, where zlib takes 0.11 ms for 4.8 kB at level 3. ISA-L's level 3 takes half as long again for 1 %.
CODEC: Final = "zlib"
_LEVEL: Final = 1
AT_ONCE: Final = 250  # rows with their bodies that are read together: some 1 MB packed, 4 MB unpacked
_DAMAGED: Final = cast("type[Exception]", isal_zlib.error)  # its stubs have it for an instance


def pack(raw: bytes) -> bytes:
    """The bytes, packed as `CODEC`."""
    return isal_zlib.compress(raw, _LEVEL)


def unpack(codec: str, body: bytes, what: str) -> bytes:
    """The bytes as they were. Raises StoreError naming ``what`` where they are damaged or packed by a newer version."""
    if codec != CODEC:
        raise StoreError(f"{what} is packed as {codec}, which this version cannot read; upgrade frontier-receipts")
    try:
        return isal_zlib.decompress(body)
    except _DAMAGED as error:
        raise StoreError(f"{what} is damaged in the store ({error}); restore a backup") from error


def unpacked_document(codec: str, body: bytes, receipt_id: str) -> Document:
    """The document of a receipt. Raises StoreError where it has other bytes than its id says."""
    short = receipt_id[:12]
    kept = Document(unpack(codec, body, short), short)
    if kept.id != receipt_id:
        raise StoreError(f"the bytes of {short} were changed in the store; restore a backup")
    return kept


class Extract(NamedTuple):
    """What a plugin made of a file of evidence: the file's SHA-256, what it is, and its bytes."""

    digest: str
    kind: str
    raw: bytes


def keep_extracts(connection: Connection, _by: By, receipt: str, items: Sequence[Extract]) -> None:
    """Keep extracts of the files that a stored receipt lists; those that it has stay as they are."""
    number = connection.execute(select(receipts.c.seq).where(receipts.c.id == receipt)).scalar_one()
    held = select(extracts.c.digest, extracts.c.kind).where(extracts.c.receipt == number)
    there = {(digest, kind) for digest, kind in connection.execute(held)}
    rows = [
        {"receipt": number, "digest": item.digest, "kind": item.kind, "codec": CODEC, "body": pack(item.raw)}
        for item in dict.fromkeys(items)
        if (item.digest, item.kind) not in there
    ]
    if rows:
        connection.execute(insert(extracts), rows)


def extracts_of(connection: Connection, receipt: str, kind: str) -> list[Extract]:
    """The extracts of one kind of a receipt's files, by their digests. Raises StoreError for a damaged one."""
    query = (
        select(extracts.c.digest, extracts.c.codec, extracts.c.body)
        .join(receipts, receipts.c.seq == extracts.c.receipt)
        .where(receipts.c.id == receipt, extracts.c.kind == kind)
        .order_by(extracts.c.digest)
    )
    return [
        Extract(digest, kind, unpack(codec, body, digest[:12])) for digest, codec, body in connection.execute(query)
    ]


def readable_body(codec: str, body: bytes) -> tuple[bytes | None, str]:
    """What a packed body holds, or why it cannot be read."""
    try:
        return unpack(codec, body, "it"), ""
    except (StoreError, TypeError) as error:
        return None, str(error).partition(";")[0]


def json_body(codec: str, body: bytes) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON object that a packed body holds, or why it cannot be read."""
    raw, problem = readable_body(codec, body)
    if raw is None:
        return None, problem
    try:
        tree = parse_json(raw)
    except ValueError as error:
        return None, f"it is not JSON: {error}"
    return (tree, "") if isinstance(tree, dict) else (None, "it is not a JSON object")


_PLAIN: Final = re.compile(r"[\w .:@-]{3,}", re.ASCII)  # as it is in any JSON that does not escape it


def meeting_leaves(
    connection: Connection, rows: Iterator[Entry], conditions: Sequence[tuple[str, Condition]]
) -> Iterator[Entry]:
    """Those of some receipts whose documents meet conditions on leaves; some are read at a time."""
    # What a document that meets them has in its bytes, unless it escapes what need not be escaped: to look for it is a
    # twentieth of the work of reading the document.
    needles = []
    for path, item in conditions:
        leaf = find_leaf(path)
        unset = item.operator == "!=" or item.value == NOT_STATED
        if unset or leaf is None or leaf.role in (Role.AXIS, Role.DERIVED):
            continue
        needles.append(b'"%s"' % path.rpartition(".")[2].encode())
        if item.operator == "=" and _PLAIN.fullmatch(item.value) and number(item.value) is None:
            needles.append(item.value.encode())
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
