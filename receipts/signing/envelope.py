"""Envelopes of DSSE v1 (https://github.com/secure-systems-lab/dsse): a payload, its type, and who signed both."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from receipts.base.errors import InputError, Problem
from receipts.signing.key import PrivateKey, PublicKey

RECEIPT: Final = "application/vnd.frontier-receipts.receipt+json"
STATEMENT: Final = "application/vnd.in-toto+json"
BUNDLE: Final = "application/vnd.frontier-receipts.bundle+json"
MEDIA: Final = "application/vnd.dsse.envelope.v1+json"
MAX_BYTES: Final = 24 * 1024 * 1024  # a document of 16 MiB in base64, and its signatures


class Signature(NamedTuple):
    """One signature, 64 bytes, and the fingerprint of the key that it says it is of."""

    key: str
    value: bytes


class Envelope(NamedTuple):
    """A payload with its type and signatures."""

    kind: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def signers(self, keys: Mapping[str, PublicKey]) -> tuple[str, ...]:
        """Fingerprints of the known keys whose signature holds, in the order of the signatures."""
        message = encoded(self.kind, self.payload)
        return tuple(
            item.key
            for item in self.signatures
            if (known := keys.get(item.key)) is not None and known.verifies(item.value, message)
        )

    def to_json(self) -> str:
        """The envelope in DSSE's JSON form."""
        rows = [{"keyid": item.key, "sig": b64encode(item.value).decode()} for item in self.signatures]
        values = {"payload": b64encode(self.payload).decode(), "payloadType": self.kind, "signatures": rows}
        return json.dumps(values, indent=1) + "\n"


def encoded(kind: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding (PAE): what is signed. Lengths are in bytes."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def signed(kind: str, payload: bytes, key: PrivateKey) -> Envelope:
    """A payload signed by a key."""
    return Envelope(kind, payload, (Signature(key.public.fingerprint, key.sign(encoded(kind, payload))),))


def read_envelope(raw: bytes, source: str) -> Envelope:
    """An envelope from its JSON. Raises InputError with what is wrong."""
    try:
        if len(raw) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES // 1024**2} MiB")
        values = json.loads(raw, object_pairs_hook=_distinct)
        kind, rows = values["payloadType"], values["signatures"]
        payload = _bytes(values["payload"])
        signatures = tuple(Signature(row.get("keyid", ""), _bytes(row["sig"])) for row in rows)
        if not (isinstance(kind, str) and signatures and all(isinstance(item.key, str) for item in signatures)):
            raise ValueError("it has no payloadType or no signature")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        problem = Problem("", f"this is no DSSE envelope: {reason}", "make one with: receipts submit --sign KEY")
        raise InputError(source, [problem]) from None
    return Envelope(kind, payload, signatures)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key is there twice")
    return values


def _bytes(text: str) -> bytes:
    """Base64 in the standard or the URL-safe alphabet, as DSSE allows; no other spelling of the same bytes."""
    try:
        plain = text.translate(str.maketrans("-_", "+/")) if "+" not in text and "/" not in text else text
        content = b64decode(plain, validate=True)
    except (Base64Error, AttributeError):
        raise ValueError("its base64 is damaged") from None
    if b64encode(content).decode() != plain:
        raise ValueError("its base64 is damaged")
    return content
