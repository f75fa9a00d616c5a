"""Checkpoints of a store's log, kept elsewhere: they show a tail that was deleted, an old backup, a second history.

The log is the list of the store's own seals, in order. A checkpoint says how many there are and what their Merkle root
is: a store that continues the checkpoint has the same root over as many seals. It is written as transparency logs
write theirs (C2SP signed-note and tlog-checkpoint): three lines, the log's origin, the size, the root in base64; then a
blank line and a line for each signature. The place is a file, a file of a git repository, or a URL.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from receipts import __version__
from receipts.base import files
from receipts.base.errors import (
    ConflictError,
    InputError,
    Problem,
    ReceiptsError,
    Unreachable,
    UsageError,
    may_answer_later,
)
from receipts.base.units import counted
from receipts.signing.key import SIGNATURE_BYTES, PrivateKey, PublicKey
from receipts.store import seals
from receipts.workflows.audit import RESTORE, Fault

if TYPE_CHECKING:
    from receipts.store import Store


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
    """The checkpoint of a note; a signature of another length or spelling is none of ours, and left out."""
    signatures = []
    for line in match["signatures"].splitlines():
        _, name, value = line.split(" ")
        with suppress(ValueError):
            content = b64decode(value, validate=True)
            if len(content) == 4 + SIGNATURE_BYTES and b64encode(content).decode() == value:
                signatures.append((name, content))
    return Checkpoint(match["origin"], int(match["size"]), b64decode(match["root"]), tuple(signatures))


WEB_PATIENCE: Final = 30.0  # seconds for one answer of a server
GIT_PATIENCE: Final = 120.0  # seconds for one command of git
# What git says where nobody answered, or the server has a fault of its own.
_UNREACHED: Final = re.compile(
    r"(?i)could not resolve|connection (?:refused|reset)|failed to connect|timed out|returned error: (?:5\d\d|429)"
)
_GIT: Final = "git+"
_WEB: Final = ("http://", "https://")


@contextmanager
def log_place(word: str) -> Iterator[FilePlace | WebPlace]:
    """The place of a file, of ``git+URL#FILE`` in a repository, or of ``https://…``.

    What cannot be read or written raises UsageError, ConflictError or Unreachable, and then nothing is changed.
    """
    if not word.startswith(_GIT):
        yield WebPlace(word) if word.lower().startswith(_WEB) else FilePlace(Path(word))
        return
    url, _, name = word.removeprefix(_GIT).partition("#")
    if not name or Path(name).is_absolute() or {"..", ".git"} & set(Path(name).parts):
        raise UsageError(f"{without_secrets(word)}: name the file in the repository: git+URL#checkpoints.txt")
    with TemporaryDirectory(prefix="receipts-log-") as folder:
        # A link of the repository leads nowhere: it is read as a file.
        _git(folder, "clone", "--quiet", "--depth", "1", "--config", "core.symlinks=false", "--", url, "log")
        yield GitPlace(Path(folder, "log"), name)


class FilePlace:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = ""

    def read(self) -> str:
        """The text; empty where there is none yet."""
        self._before = self._text()
        return self._before

    def _text(self) -> str:
        try:
            return files.read_small(self._path).decode() if self._path.exists() else ""
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{self._path}: it cannot be read as text; give a place of audit --publish") from None

    def write(self, text: str) -> None:
        """Replace the text that was read. Raises ConflictError where another wrote to it since it was read."""
        if self._text() != self._before:
            raise ConflictError(f"{self._path}: it changed meanwhile, and is left as it is; publish again")
        files.write(self._path, text, over=True)


class GitPlace(FilePlace):
    """A file in a fresh clone: a change of it is committed and pushed."""

    def __init__(self, clone: Path, name: str) -> None:
        super().__init__(clone / name)
        self._clone, self._name = clone, name

    def write(self, text: str) -> None:
        """As `FilePlace.write`. Raises UsageError where the repository does not take it, with what git says."""
        files.write_folder(self._path.parent, {self._path.name: text}, over=True)
        _git(self._clone, "add", "--", self._name)
        _git(self._clone, "commit", "--quiet", "--message", "receipts: a checkpoint")
        _git(self._clone, "push", "--quiet", "origin", "HEAD")


class WebPlace:
    """A text at a URL: read with GET, replaced with PUT, and only as it was read where the server gives ETags."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if not parts.hostname or parts.username or parts.password:
            raise UsageError(f"{without_secrets(url)}: write https://HOST/PATH, without a name and a password")
        self._url, self._name = url, without_secrets(url)
        self._unchanged: dict[str, str] = {}

    def read(self) -> str:
        """As `FilePlace.read`."""
        try:
            raw, tag = self._ask("GET")
            self._unchanged = {"If-Match": tag} if tag.startswith('"') else {}
            return raw.decode()
        except HTTPError as error:
            if error.code not in (404, 410):
                raise self._refused("read", error) from None
            self._unchanged = {"If-None-Match": "*"}
            return ""
        except UnicodeDecodeError:
            raise UsageError(f"{self._name}: it is not text; give a place of audit --publish") from None

    def write(self, text: str) -> None:
        """As `FilePlace.write`."""
        try:
            self._ask("PUT", text, {"Content-Type": "text/plain; charset=utf-8", **self._unchanged})
        except HTTPError as error:
            if error.code in (409, 412):
                raise ConflictError(f"{self._name}: it changed meanwhile; publish again") from None
            raise self._refused("written", error) from None

    def _ask(self, method: str, text: str = "", headers: dict[str, str] | None = None) -> tuple[bytes, str]:
        own = {"User-Agent": f"receipts/{__version__}", **(headers or {})}
        request = Request(self._url, text.encode() or None, own, method=method)
        try:
            with urlopen(request, timeout=WEB_PATIENCE) as answer:
                return files.read_bounded(answer, files.SMALL), answer.headers.get("ETag", "")
        except HTTPError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise Unreachable(f"{self._name}: no answer ({why}); try again, or publish elsewhere") from None

    def _refused(self, what: str, error: HTTPError) -> ReceiptsError:
        why = f"{self._name}: it cannot be {what}: {error.code} {error.reason}"
        if may_answer_later(error.code):
            return Unreachable(f"{why}; try again later")
        return UsageError(f"{why}; check the URL and its rights")


def without_secrets(url: str) -> str:
    """A URL without what may be a secret: its user and its query."""
    scheme, mark, rest = url.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def _git(folder: str | Path, *words: str) -> None:
    """Run git in a folder, without questions. Raises UsageError with what it says, and Unreachable if it takes long."""
    quiet = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
    command = ["git", "-C", str(folder), *words]
    try:
        answer = subprocess.run(
            command, env={**quiet, **os.environ}, capture_output=True, timeout=GIT_PATIENCE, check=False
        )
    except FileNotFoundError:
        raise UsageError("git+…: there is no git on this machine; install it, or name a file") from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"git {words[0]} took longer than {GIT_PATIENCE:.0f} s; try again") from None
    if answer.returncode:
        lines = [line for line in answer.stderr.decode(errors="replace").splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith(("fatal:", "error:"))), *lines[:1] or ["it failed"])
        if _UNREACHED.search(" ".join(lines)):
            raise Unreachable(f"git {words[0]}: {why.strip()}; try again later")
        raise UsageError(f"git {words[0]}: {why.strip()}; check the URL and your rights")


class Continued(NamedTuple):
    """The proof that a log of ``second`` seals continues the one of its ``first``; roots and digests in hex."""

    first: int
    second: int
    first_root: str
    second_root: str
    proof: tuple[str, ...]


def publish_checkpoint(store: Store, target: str, key: PrivateKey) -> Checkpoint | None:
    """Append a signed checkpoint of the store's log to a place; None where its last one says the same, or none is due.

    Raises ConflictError where the store does not continue what the place has of it.
    """
    if not (log := _log(store)):
        return None
    with log_place(target) as there:
        text = there.read()
        before = _of(store, text, target)
        for item in before:
            if why := why_not_continued(log, item):
                raise ConflictError(f"{without_secrets(target)}: {why}; look into it with: receipts audit --against")
        if before and before[-1].size == len(log):
            return None
        one = signed_checkpoint(origin_of(store), len(log), seals.merkle_root(log), key)
        there.write(f"{text}{chr(10) if text else ''}{one.note}")
    return one


def published_checkpoints(store: Store, source: str) -> list[Checkpoint]:
    """The checkpoints of a store that a place has. Raises UsageError where it is empty, InputError for other text."""
    with log_place(source) as there:
        text = there.read()
    if not text:
        raise UsageError(f"{without_secrets(source)}: nothing is there; give a place of audit --publish")
    return _of(store, text, source)


def faults_against(store: Store, source: str, keys: Iterable[PublicKey]) -> Iterator[Fault]:
    """What the checkpoints of a place show against the store. Raises as `published` does."""
    log, known, every = _log(store), list(keys), published_checkpoints(store, source)
    if not every:
        none = f"it has no checkpoint of the store {store.id}"
        yield Fault("seal", without_secrets(source), none, "take the store's own place")
    for item in every:
        where = f"checkpoint of {counted(item.size, 'seal')}"
        if not item.signers(known):
            do = "pass the public key that signed it: --key FILE.pub"
            yield Fault("seal", where, "no key that counts signed it", do)
        elif why := why_not_continued(log, item):
            yield Fault("seal", where, why, RESTORE)


def continued(store: Store, first: int, second: int | None = None) -> Continued:
    """The proof that the log of so many seals (None: of all) continues the one of its first. Raises UsageError where
    the store does not have as many.
    """
    every = _log(store)
    log = every[: len(every) if second is None else second]
    if not 0 < first <= len(log) or (second or 0) > len(log):
        raise UsageError(f"the store has {counted(len(every), 'seal')}; write two numbers of them, the smaller first")
    roots = seals.merkle_root(log[:first]).hex(), seals.merkle_root(log).hex()
    return Continued(first, len(log), *roots, tuple(item.hex() for item in seals.consistency(log, first)))


def why_not_continued(log: Sequence[bytes], checkpoint: Checkpoint) -> str:
    """Why a log does not continue a checkpoint; empty where it does."""
    if checkpoint.size > len(log):
        gone = counted(checkpoint.size - len(log), "seal")
        return f"{gone} that were published are not there: the tail was deleted, or this is an older backup"
    if seals.merkle_root(log[: checkpoint.size]) != checkpoint.root:
        return "the store has another history than the one that was published"
    return ""


def origin_of(store: Store) -> str:
    """The name of the store's log."""
    return f"frontier-receipts/{store.id}"


def _of(store: Store, text: str, source: str) -> list[Checkpoint]:
    return [item for item in read_checkpoints(text, without_secrets(source)) if item.origin == origin_of(store)]


def _log(store: Store) -> list[bytes]:
    with store.inspect() as inspection:
        return inspection.log()
