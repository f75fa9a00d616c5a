"""How documents and verdicts are packed. The client does it, so that the server and the wire carry a third."""

from __future__ import annotations

import zlib
from typing import Final

from receipts.errors import StoreError

CODEC: Final = "zlib"
# On a 15 kB receipt (64 chips, 300 steps) level 3 takes 0.09 ms for 4.8 kB; 5 takes 0.16 ms for 6 % less, and 1 saves
# 0.02 ms for 2 % more.
_LEVEL: Final = 3


def pack(raw: bytes) -> bytes:
    """The bytes, packed as `CODEC`."""
    return zlib.compress(raw, _LEVEL)


def unpack(codec: str, body: bytes, what: str) -> bytes:
    """The bytes as they were. Raises StoreError naming ``what`` where they are damaged or packed by a newer version."""
    if codec != CODEC:
        raise StoreError(f"{what} is packed as {codec}, which this version cannot read; upgrade frontier-receipts")
    try:
        return zlib.decompress(body)
    except zlib.error as error:
        raise StoreError(f"{what} is damaged in the store ({error}); restore a backup") from error
