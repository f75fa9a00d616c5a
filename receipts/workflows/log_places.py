"""Where a log of checkpoints is kept: a file, a file of a git repository, or a URL."""

from __future__ import annotations

import http.client
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from receipts import __version__
from receipts.base import files
from receipts.base.errors import ConflictError, Unreachable, UsageError

PATIENCE: Final = 30.0  # seconds for one answer of a server
GIT_PATIENCE: Final = 120.0  # seconds for one command of git
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
            with urlopen(request, timeout=PATIENCE) as answer:
                return files.read_bounded(answer, files.SMALL), answer.headers.get("ETag", "")
        except HTTPError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise Unreachable(f"{self._name}: no answer ({why}); try again, or publish elsewhere") from None

    def _refused(self, what: str, error: HTTPError) -> UsageError:
        why = f"{error.code} {error.reason}"
        return UsageError(f"{self._name}: it cannot be {what}: {why}; check the URL and its rights")


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
        raise UsageError(f"git {words[0]}: {why.strip()}")
