"""Checkpoints in a git repository and at a URL: written and read as those of a file are, or nothing is changed."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from command_line import Shell
from receipts.base.errors import ConflictError, Unreachable, UsageError
from receipts.workflows.checkpoints import log_place, without_secrets

NOTE = "one\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty bare repository."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "ana")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ana@example.org")
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "log.git"], check=True)
    return tmp_path / "log.git"


class OneText(BaseHTTPRequestHandler):
    """A server of one text, which checks what a PUT expects."""

    text: bytes | None = None

    def do_GET(self) -> None:
        """The text with its tag."""
        self._answer(200 if self.text is not None else 404, self.text or b"")

    def do_PUT(self) -> None:
        """Replace the text, if it is the one that the client read."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        expected = self.headers.get("If-Match") or self.headers.get("If-None-Match")
        held = type(self).text
        if self.path == "/read-only":
            self._answer(403, b"")
        elif expected != ("*" if held is None else _tag(held)):
            self._answer(412, b"")
        else:
            type(self).text = content
            self._answer(204, b"")

    def _answer(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("ETag", _tag(content))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _tag(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()}"'


@pytest.fixture
def url() -> Iterator[str]:
    """A server without a text."""
    OneText.text = None
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneText)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/checkpoints.txt"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_rolled_back_store_is_seen_from_a_repository_and_a_url(shell: Shell, repository: Path, url: str) -> None:
    shell("key", "new", "ana", "--out", "ana")
    places = (f"git+{repository.as_uri()}#lab/checkpoints.txt", url)
    yesterday = b""
    for name in ("one", "two"):
        shell.store(name)
        for place in places:
            answer = shell("audit", "--seal", "--publish", place, "--sign", "ana")
            assert answer.code == 0, answer.err
        yesterday = yesterday or (shell.folder / "store.sqlite").read_bytes()
    for place in places:
        assert shell("audit", "--against", place, "--key", "ana.pub").code == 0
    (shell.folder / "store.sqlite").write_bytes(yesterday)
    for place in places:
        answer = shell("audit", "--against", place, "--key", "ana.pub")
        assert answer.code == 1
        assert "older backup" in " ".join(answer.out.split())


def test_every_change_of_a_repository_is_a_commit(repository: Path) -> None:
    for text in (NOTE, NOTE * 2):
        with log_place(f"git+{repository.as_uri()}#a/log.txt") as place:
            place.write(place.read() + NOTE)
            assert place.read() == text
    log = subprocess.run(["git", "-C", repository, "log", "--format=%an"], capture_output=True, text=True, check=True)
    assert log.stdout == "ana\nana\n"


def test_a_push_that_the_repository_does_not_take_is_an_error(repository: Path) -> None:
    with (
        log_place(f"git+{repository.as_uri()}#log.txt") as first,
        log_place(f"git+{repository.as_uri()}#log.txt") as second,
    ):
        first.write(NOTE)
        with pytest.raises(UsageError, match="git push"):
            second.write("other\n")
    with log_place(f"git+{repository.as_uri()}#log.txt") as place:
        assert place.read() == NOTE


def test_a_link_in_a_repository_leads_nowhere(repository: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", repository, work], check=True, capture_output=True)
    (work / "log.txt").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret")
    for words in (["add", "."], ["commit", "--quiet", "--message", "x"], ["push", "--quiet", "origin", "HEAD"]):
        subprocess.run(["git", "-C", work, *words], check=True)
    with log_place(f"git+{repository.as_uri()}#log.txt") as place:
        assert place.read() == str(tmp_path / "secret")
        place.write(NOTE)
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "word", ["git+https://host/log.git", "git+https://host/log.git#../x", "git+https://host/log.git#.git/config"]
)
def test_a_file_outside_the_repository_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="name the file in the repository"), log_place(word):
        pass


def test_a_repository_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    word = f"git+{(tmp_path / 'none.git').as_uri()}#log.txt"
    with pytest.raises(UsageError, match="git clone: fatal"), log_place(word):
        pass


def test_a_text_at_a_url_that_changed_meanwhile_is_kept(url: str) -> None:
    with log_place(url) as first, log_place(url) as second:
        assert first.read() == second.read() == ""
        first.write(NOTE)
        with pytest.raises(ConflictError, match="publish again"):
            second.write("other\n")
        assert second.read() == NOTE


def test_a_file_that_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.txt"
    with log_place(str(file)) as one, log_place(str(file)) as other:
        assert (one.read(), other.read()) == ("", "")
        one.write(NOTE)
        with pytest.raises(ConflictError, match="publish again"):
            other.write("two\n")
    assert file.read_text(encoding="utf-8") == NOTE


def test_a_url_that_takes_or_answers_nothing_is_an_error(url: str) -> None:
    with log_place(url.replace("checkpoints.txt", "read-only")) as place, pytest.raises(UsageError, match="403"):
        place.write(NOTE)
    with log_place("http://127.0.0.1:9/x?token=secret") as place, pytest.raises(Unreachable) as caught:
        place.read()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("https://ana:secret@host/log.txt?token=secret", "https://host/log.txt"),
        ("git+https://ana:secret@host/log.git#c.txt", "git+https://host/log.git#c.txt"),
        ("folder/checkpoints.txt", "folder/checkpoints.txt"),
    ],
)
def test_a_place_is_shown_without_its_secrets(word: str, shown: str) -> None:
    assert without_secrets(word) == shown
