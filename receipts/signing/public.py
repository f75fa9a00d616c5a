"""Public Ed25519 keys (RFC 8032), as OpenSSH and OpenSSL write them. Reading one takes no library."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from receipts.base.environment import extra
from receipts.base.errors import UsageError

KIND: Final = "ssh-ed25519"
SIGNATURE: Final = 64  # bytes
# RFC 8410, section 4: what precedes the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo.
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
_BLOB: Final = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # RFC 8709, section 4


class PublicKey(NamedTuple):
    """A public key: its 32 bytes."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """``SHA256:…``, as ``ssh-keygen -lf`` prints it: the key id of every signature."""
        return f"SHA256:{b64encode(sha256(_BLOB + self.raw).digest()).decode().rstrip('=')}"

    @property
    def line(self) -> str:
        """The key as OpenSSH has it: ``ssh-ed25519 AAAA…``."""
        return f"{KIND} {b64encode(_BLOB + self.raw).decode()}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether a signature over a message is of this key. Raises UsageError without the extra ``sign``."""
        if len(signature) != SIGNATURE:
            return False
        ed25519 = extra("cryptography.hazmat.primitives.asymmetric.ed25519", "sign")
        invalid = extra("cryptography.exceptions", "sign").InvalidSignature
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (invalid, ValueError):
            return False
        return True


def read_public(text: str, source: str) -> PublicKey:
    """A public key in OpenSSH's line or in PEM. Raises UsageError for any other text."""
    words = text.split()
    if len(words) >= 2 and words[0] == KIND:
        blob, head = words[1], _BLOB
    elif text.lstrip().startswith("-----BEGIN PUBLIC KEY-----"):
        blob, head = "".join(line for line in text.split("\n") if not line.startswith("-----")), _SPKI
    else:
        raise UsageError(
            f"{source}: this is no public Ed25519 key; give the .pub file of receipts key new or ssh-keygen"
        )
    try:
        content = b64decode("".join(blob.split()), validate=True)
    except (Base64Error, ValueError):
        content = b""
    if not content.startswith(head) or len(content) != len(head) + 32:
        raise UsageError(f"{source}: the key is damaged or not an Ed25519 key; make one with: receipts key new NAME")
    return PublicKey(content[len(head) :])


def read_public_file(name: str) -> PublicKey:
    """The public key of a file. Raises UsageError."""
    try:
        return read_public(Path(name).read_text(), name)
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"{name}: there is no public key; give the .pub file of receipts key new or ssh-keygen"
        ) from None
