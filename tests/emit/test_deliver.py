"""The recorder delivers its receipt to a server: in bounded time, and what cannot be delivered stays a file."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from receipts.emit import Recorder, delivery

pytestmark = pytest.mark.slow

SEEN: list[tuple[str, bytes, str | None]] = []


class Answers(BaseHTTPRequestHandler):
    """A server of receipts, as far as the recorder knows one."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        SEEN.append((self.path, body, self.headers["Authorization"]))
        wrong = self.headers["Authorization"] == "Bearer wrong"
        answer = {"detail": "send a valid token"} if wrong else {"id": sha256(body).hexdigest(), "status": "open"}
        text = json.dumps(answer).encode()
        self.send_response(401 if wrong else 201)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_POST  # noqa: N815  # as the library calls it

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    SEEN.clear()
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def record(folder: Path, *, ask: bool | None = None, trace: Path | None = None) -> Path:
    with Recorder("cpu-torch", context="c", out=folder / "run.json", probes=False, deliver=ask) as rec:
        if trace is not None:
            rec.attach(trace, "torch-profile")
        for _ in range(3):
            with rec.step(tokens=8):
                pass
    return folder / "run.json"


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_receipt_is_delivered_as_it_is_and_stays_a_file(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    monkeypatch.setenv("RECEIPTS_STORE", url)
    monkeypatch.setenv("RECEIPTS_TOKEN", "secret")
    if how == "environment":
        monkeypatch.setenv("RECEIPTS_DELIVER", "1")
    file = record(tmp_path, ask=True if how == "argument" else None)
    assert [("/v1/receipts", file.read_bytes(), "Bearer secret")] == SEEN
    heard = capsys.readouterr().err
    assert f"delivered to {url} as {sha256(file.read_bytes()).hexdigest()[:12]}, open" in heard
    assert "secret" not in heard


def test_files_of_its_evidence_follow(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECEIPTS_STORE", url)
    trace = tmp_path / "trace.json"
    trace.write_bytes(b"{}")
    file = record(tmp_path, ask=True, trace=trace)
    digest = sha256(b"{}").hexdigest()
    assert [("/v1/receipts", file.read_bytes(), None), (f"/v1/evidence/{digest}", b"{}", None)] == SEEN
    assert f"{trace} is kept" in capsys.readouterr().err


def test_nothing_is_sent_unasked(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEIPTS_STORE", url)
    record(tmp_path)
    monkeypatch.setenv("RECEIPTS_STORE", str(tmp_path / "store.sqlite"))
    record(tmp_path / "file", ask=True)
    assert SEEN == []


def test_what_cannot_be_delivered_says_so_and_how_to_send_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0.3)
    silent = socket.create_server(("127.0.0.1", 0))
    cases = (
        (url, "wrong", "send a valid token"),
        ("http://127.0.0.1:1", "", "refused"),
        (f"http://127.0.0.1:{silent.getsockname()[1]}", "", "s"),
        ("http://receipts.example.org", "secret", "in the clear"),
    )
    for number, (store, token, why) in enumerate(cases):
        monkeypatch.setenv("RECEIPTS_STORE", store)
        monkeypatch.setenv("RECEIPTS_TOKEN", token)
        file = record(tmp_path / str(number), ask=True)
        heard = capsys.readouterr().err
        assert file.exists()
        assert "not delivered" in heard
        assert why in heard
        assert f"receipts submit {file}" in heard
    silent.close()
