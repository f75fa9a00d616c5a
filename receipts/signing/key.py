"""Ed25519 keys (RFC 8032), and the envelopes that they sign.

Public keys are read as OpenSSH and OpenSSL write them, without a library; private keys only their owner may read. An
envelope is that of DSSE v1 (https://github.com/secure-systems-lab/dsse): a payload, its type, and who signed both.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.base.environment import extra
from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.files import staged, writable

KEY_KIND: Final = "ssh-ed25519"
SIGNATURE_BYTES: Final = 64  # bytes
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
        return f"{KEY_KIND} {b64encode(_BLOB + self.raw).decode()}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether a signature over a message is of this key. Raises UsageError without the extra ``sign``."""
        if len(signature) != SIGNATURE_BYTES:
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
    if len(words) >= 2 and words[0] == KEY_KIND:
        blob, head = words[1], _BLOB
    elif text.lstrip().startswith("-----BEGIN PUBLIC KEY-----"):
        blob, head = "".join(line for line in text.split("\n") if not line.startswith("-----")), _SPKI
    else:
        raise UsageError(
            f"{source}: this is not a public Ed25519 key; give the .pub file of receipts key new or ssh-keygen"
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


KEY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,79}")
_SERIALIZATION: Final = "cryptography.hazmat.primitives.serialization"
_ED25519: Final = "cryptography.hazmat.primitives.asymmetric.ed25519"


class PrivateKey:
    """A private key. Its bytes are in no representation of it."""

    def __init__(self, key: Any, name: str) -> None:
        self._key = key
        self.name = name
        self.public = PublicKey(key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"PrivateKey({self.name!r}, {self.public.fingerprint})"

    def sign(self, message: bytes) -> bytes:
        """The signature, 64 bytes."""
        signature: bytes = self._key.sign(message)
        return signature


def key_folder() -> Path:
    """Where keys are kept: ``receipts/keys`` below ``XDG_CONFIG_HOME``."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "receipts" / "keys"


def refuse_other_name(name: str) -> None:
    """Raise UsageError for what cannot be the name of a key."""
    if not KEY_NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a key; write a letter or digit, then letters, digits, . _ @ or -")


def new_key(name: str, target: Path) -> PrivateKey:
    """Make a key: the private one in ``target`` (PKCS #8, mode 0600), the public one beside it in ``.pub``.

    Raises UsageError if either file exists.
    """
    refuse_other_name(name)
    form = extra(_SERIALIZATION, "sign")
    generated = extra(_ED25519, "sign").Ed25519PrivateKey.generate()
    key = PrivateKey(generated, name)
    secret = generated.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with writable(target):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with staged(target, mode=0o600) as beside, staged(target.with_name(f"{target.name}.pub")) as public:
            beside.write_bytes(secret)
            public.write_text(f"{key.public.line} {name}\n")
    return key


def read_private(word: str) -> PrivateKey:
    """The key of a name or file, in PEM or OpenSSH's form. Raises UsageError, also where others may read the file."""
    place = Path(word) if os.path.exists(word) or "/" in word or not KEY_NAME.fullmatch(word) else key_folder() / word
    try:
        mode, content = place.stat().st_mode, place.read_bytes()
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; make a key with: receipts key new NAME") from None
    if os.name == "posix" and mode & 0o077:
        raise UsageError(f"{place}: others may read this private key; forbid it with: chmod 600 {place}")
    form = extra(_SERIALIZATION, "sign")
    load = form.load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else form.load_pem_private_key
    try:
        key = load(content, password=None)
    except TypeError:
        raise UsageError(f"{place}: the key has a passphrase; use one without: receipts key new NAME") from None
    except Exception:  # cryptography raises errors of several libraries for bytes that are not a key
        raise UsageError(f"{place}: this is not a private key; make one with: receipts key new NAME") from None
    if not isinstance(key, extra(_ED25519, "sign").Ed25519PrivateKey):
        raise UsageError(f"{place}: only Ed25519 keys sign receipts; make one with: receipts key new NAME")
    return PrivateKey(key, place.stem)


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
