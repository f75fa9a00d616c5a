"""Signed notes and checkpoints, as transparency logs write them (C2SP signed-note and tlog-checkpoint).

A checkpoint says how many entries a log has and what their Merkle root is. Its text is three lines: the log's origin,
the size, the root in base64; then a blank line and a line for each signature.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

from receipts.base.errors import InputError, Problem
from receipts.signing.private import PrivateKey
from receipts.signing.public import SIGNATURE, PublicKey

_ED25519: Final = b"\x01"  # the algorithm's number in a signed note
_NOTE: Final = re.compile(
    "(?P<text>(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]{0,17})\n(?P<root>[A-Za-z0-9+/]{43}=)\n)\n"
    "(?P<signatures>(?:\u2014 [^ +\n]+ [A-Za-z0-9+/]+=*\n)+)"
)


class Checkpoint(NamedTuple):
    """The size and root of a log, and the lines that sign them: each a signer's name, key id and signature."""

    origin: str
    size: int
    root: bytes
    signatures: tuple[tuple[str, bytes], ...] = ()

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"

    @property
    def note(self) -> str:
        """The signed note."""
        lines = (f"\u2014 {name} {b64encode(value).decode()}\n" for name, value in self.signatures)
        return f"{self.text}\n{''.join(lines)}"

    def signers(self, keys: Iterable[PublicKey]) -> tuple[PublicKey, ...]:
        """Those of some keys that signed it."""
        lines = [(name, value[:4], value[4:]) for name, value in self.signatures]
        message = self.text.encode()
        return tuple(
            key
            for key in keys
            if any(start == _key_id(name, key) and key.verifies(value, message) for name, start, value in lines)
        )


def signed_checkpoint(origin: str, size: int, root: bytes, key: PrivateKey) -> Checkpoint:
    """A checkpoint signed by a key, under the key's name."""
    plain = Checkpoint(origin, size, root)
    name = re.sub(r"[\s+]", "-", key.name)
    return plain._replace(signatures=((name, _key_id(name, key.public) + key.sign(plain.text.encode())),))


def _key_id(name: str, key: PublicKey) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + key.raw).digest()[:4]


def read_checkpoints(text: str, source: str) -> list[Checkpoint]:
    """Every checkpoint of a file, which blank lines may separate. Raises InputError for anything else in it."""
    checkpoints, at = [], 0
    while at < len(text):
        if text[at] == "\n":
            at += 1
            continue
        match = _NOTE.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            problem = Problem(f"line {line}", "this is no signed checkpoint", "take the file as it was published")
            raise InputError(source, [problem])
        checkpoints.append(_checkpoint(match))
        at = match.end()
    return checkpoints


def _checkpoint(match: re.Match[str]) -> Checkpoint:
    signatures = []
    for line in match["signatures"].splitlines():
        _, name, value = line.split(" ")
        try:
            content = b64decode(value, validate=True)
        except ValueError:
            continue
        if len(content) == 4 + SIGNATURE and b64encode(content).decode() == value:
            signatures.append((name, content))
    return Checkpoint(match["origin"], int(match["size"]), b64decode(match["root"]), tuple(signatures))
