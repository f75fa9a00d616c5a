"""How documents and verdicts are packed. The client does it, so that the server and the wire carry a third."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from isal import isal_zlib

from receipts.base.errors import StoreError
from receipts.base.untrusted_text import parse_json
from receipts.receipt import Document

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


def document(codec: str, body: bytes, receipt_id: str) -> Document:
    """The document of a receipt. Raises StoreError where it has other bytes than its id says."""
    short = receipt_id[:12]
    kept = Document(unpack(codec, body, short), short)
    if kept.id != receipt_id:
        raise StoreError(f"the bytes of {short} were changed in the store; restore a backup")
    return kept


def readable(codec: str, body: bytes) -> tuple[bytes | None, str]:
    """What a packed body holds, or why it cannot be read."""
    try:
        return unpack(codec, body, "it"), ""
    except (StoreError, TypeError) as error:
        return None, str(error).partition(";")[0]


def as_json(codec: str, body: bytes) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON object that a packed body holds, or why it cannot be read."""
    raw, problem = readable(codec, body)
    if raw is None:
        return None, problem
    try:
        tree = parse_json(raw)
    except ValueError as error:
        return None, f"it is not JSON: {error}"
    return (tree, "") if isinstance(tree, dict) else (None, "it is not a JSON object")
