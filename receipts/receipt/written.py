"""Whether a document is still as the program that wrote it left it, by the digest in ``run.recorded``.

The digest covers the bytes of the document with 64 zeros in its own place. It shows an edit by hand; it proves
nothing against somebody who computes it again, which is what a signature is for.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from receipts.receipt.parse import Parsed

UNWRITTEN: Final = "0" * 64


def intact(parsed: Parsed) -> bool | None:
    """Whether nobody edited the document since its program wrote it; None where no program says that it did."""
    recorded = parsed.receipt.run.recorded
    if recorded is None:
        return None
    digest = recorded.digest.encode()
    if parsed.raw.count(digest) != 1:
        return False
    return hashlib.sha256(parsed.raw.replace(digest, UNWRITTEN.encode())).hexdigest() == recorded.digest


def listed(parsed: Parsed) -> frozenset[str]:
    """The digests of the files behind a receipt: of its evidence, and of its recorder's journals."""
    recorded = parsed.receipt.run.recorded
    digests = {entry.sha256 for entry in parsed.receipt.evidence or () if entry.sha256}
    return frozenset(digests.union(recorded.journals or () if recorded is not None else ()))


def sealed(raw: bytes) -> bytes:
    """The bytes with their digest where `UNWRITTEN` is; as they are without it."""
    place = UNWRITTEN.encode()
    return raw.replace(place, hashlib.sha256(raw).hexdigest().encode()) if raw.count(place) == 1 else raw
