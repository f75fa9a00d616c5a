"""Private Ed25519 keys: files that only their owner may read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from receipts.base.environment import extra
from receipts.base.errors import UsageError
from receipts.base.files import staged, writable
from receipts.signing.public import PublicKey

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,79}")
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


def folder() -> Path:
    """Where keys are kept: ``receipts/keys`` below ``XDG_CONFIG_HOME``."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "receipts" / "keys"


def place_of(word: str) -> Path:
    """The file of a key that a word names: a path, or the name of one in `folder`."""
    return Path(word) if os.path.exists(word) or "/" in word or not NAME.fullmatch(word) else folder() / word


def refuse_other_name(name: str) -> None:
    """Raise UsageError for what cannot be the name of a key."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a key; write a letter or digit, then letters, digits, . _ @ or -")


def new_key(name: str, target: Path) -> PrivateKey:
    """Make a key: the private one in ``target`` (PKCS #8, mode 0600), the public one beside it in ``.pub``.

    Raises UsageError where either file exists.
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
    place = place_of(word)
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
    except Exception:  # cryptography raises errors of several libraries for what is no key
        raise UsageError(f"{place}: this is no private key; make one with: receipts key new NAME") from None
    if not isinstance(key, extra(_ED25519, "sign").Ed25519PrivateKey):
        raise UsageError(f"{place}: only Ed25519 keys sign receipts; make one with: receipts key new NAME")
    return PrivateKey(key, place.stem)
