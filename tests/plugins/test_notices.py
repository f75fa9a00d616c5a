"""Notices: signed, sent after the commit, and never a submit's concern."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from standardwebhooks import Webhook as Signer
from starlette.testclient import TestClient

import report_store
from receipts.base.environment import read_config
from receipts.base.errors import UsageError
from receipts.plugins.reach import notices
from receipts.plugins.reach.notices import Notice, targets
from receipts.plugins.serve import notices as looking
from receipts.plugins.serve.notices import Standing, changes
from receipts.plugins.serve.run import with_pages
from receipts.plugins.serve.server import Server

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LEFT = report_store.launches("x", path__witnessed__attention="math", run__started="2026-03-09T09:00:00+00:00")


class Received:
    """A receiver on a port of this machine; it refuses the first so many requests."""

    def __init__(self, refused: int = 0) -> None:
        self.verified: list[dict[str, Any]] = []
        received, left = self, [refused]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                left[0] -= 1
                if left[0] < 0:
                    received.verified.append(Signer(SECRET).verify(body, dict(self.headers)))
                self.send_response(503 if left[0] >= 0 else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses."""
    monkeypatch.setenv(notices.VARIABLE, SECRET)
    monkeypatch.setattr(looking, "GATHER", 0.0)
    monkeypatch.setattr(notices, "PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def receiver(request: pytest.FixtureRequest) -> Iterator[Received]:
    """One that refuses as often as the test says."""
    received = Received(getattr(request, "param", 0))
    yield received
    received.close()


@pytest.mark.parametrize("receiver", [0, 2], indirect=True, ids=["at once", "refused twice"])
def test_a_path_left_is_posted_once_with_a_signature_that_holds(
    server: Server, receiver: Received, quick: None
) -> None:
    telling = Server(server.opened, server.rulebook, server.settings, targets([receiver.url], []))
    with TestClient(with_pages(telling)) as client:
        for _ in range(2):
            answer = client.post("/v1/receipts", content=LEFT[0].raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    (sent,) = receiver.verified
    assert sent["type"] == "path.left"
    assert sent["data"]["receipt"] == LEFT[0].id
    assert any(reason.startswith("R3") for reason in sent["data"]["reasons"])


@pytest.mark.parametrize("receiver", [3], indirect=True)
def test_what_a_target_did_not_take_is_kept_over_a_restart_and_its_url_shown_shortened(
    server: Server, receiver: Received, quick: None, capsys: Any
) -> None:
    def telling() -> Server:
        return Server(server.opened, server.rulebook, server.settings, targets([receiver.url], []))

    first = telling()
    with TestClient(with_pages(first)) as client:
        client.post("/v1/receipts", content=LEFT[0].raw, headers={"Content-Type": "application/json"})
    assert first.notices is not None
    assert (receiver.verified, first.notices.kept) == ([], 1)
    logged = capsys.readouterr().err
    assert "http://127.0.0.1/…: 503 Service Unavailable; it is kept, and tried again" in logged
    assert "/hook" not in logged
    second = telling()
    assert second.notices is not None
    deadline = time.monotonic() + 10
    while second.notices.kept and time.monotonic() < deadline:
        time.sleep(0.01)
    second.close()
    assert [item["type"] for item in receiver.verified] == ["path.left"]


def test_a_target_that_hangs_or_fails_costs_a_submit_nothing(server: Server, quick: None, capsys: Any) -> None:
    class Bad:
        url = key = "bad"

        def send(self, _notice: Notice) -> None:
            time.sleep(0.2)
            raise RuntimeError("broken")

    telling = Server(server.opened, server.rulebook, server.settings, [Bad()])  # type: ignore[list-item]
    with TestClient(with_pages(telling)) as client:
        begun = time.perf_counter()
        assert (
            client.post("/v1/receipts", content=LEFT[0].raw, headers={"Content-Type": "application/json"}).status_code
            == 201
        )
        assert time.perf_counter() - begun < 0.6  # three tries take longer
    assert "path.left was not delivered to bad: RuntimeError; it is kept" in capsys.readouterr().err


def test_a_claim_that_falls_and_a_new_best_are_told_once() -> None:
    row = {"receipt": "a", "label": "A", "lane": "cpu-torch"}
    claim = {"claim": "x", "text": "B is faster"}
    before = Standing({"x": {**claim, "status": "supported"}}, {("shape",): row})
    after = Standing({"x": {**claim, "status": "refuted"}}, {("shape",): {**row, "receipt": "b"}})
    assert [item.type for item in changes(before, after)] == ["claim.refuted", "frontier.taken"]
    assert list(changes(after, after)) == []
    led, again = ({("shape",): {**row, "receipt": name, "configuration": 7}} for name in "ab")
    assert list(changes(Standing({}, led), Standing({}, again))) == []
    stale = Standing({"x": {**claim, "status": "stale"}}, before.best)
    assert [item.data["was"] for item in changes(before, stale)] == ["supported"]


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # of the library apprise
def test_targets_are_named_in_one_place_and_checked_before_the_server_listens(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "receipts.toml"
    file.write_text('webhooks = "https://hooks.example.org/x"\nnotify = ["json://localhost/x"]\n', encoding="utf-8")
    config = read_config(file)
    assert [item.url for item in targets(config.webhooks, config.notify)] == ["https://hooks.example.org/…", "json"]
    for wrong in (["ftp://x/secret"], []), ([], ["nothing-of-that-kind://secret"]):
        with pytest.raises(UsageError) as refused:
            targets(*wrong)
        assert "secret" not in str(refused.value)
    monkeypatch.delenv(notices.VARIABLE)
    with pytest.raises(UsageError, match=notices.VARIABLE):
        targets(config.webhooks, [])
