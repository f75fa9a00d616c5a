"""A server in this process over a store with one of everything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from starlette.testclient import TestClient

import report_store
import rule_cases
from receipts.serve.limits import Limits
from receipts.serve.run import with_pages
from receipts.serve.server import Server, Settings
from receipts.store import open_store
from receipts.store.tokens import Tokens
from store_copies import FileCopies

SCOPES = ("submit", "submit:cpu-torch", "read", "decide", "admin")


def fill(path: Path) -> None:
    """One of everything, a pin and a claim's worth of receipts."""
    with report_store.fill(path, report_store.everything()) as store:
        store.pin("golden", store.resolve_all("small decoder")[0])


@pytest.fixture
def server(tmp_path: Path, file_copies: FileCopies) -> Server:
    """A server that everybody on the machine may ask."""
    url = file_copies.file(tmp_path / "store.sqlite", "served", lambda to: fill(Path(to.removeprefix("sqlite:///"))))
    return Server(open_store(url), rule_cases.rulebook(), Settings(("testserver", "127.0.0.1"), open=True))


@pytest.fixture
def client(server: Server) -> Iterator[TestClient]:
    """Asks the server; a token is a header."""
    with TestClient(with_pages(server)) as asking:
        yield asking


@pytest.fixture
def guarded(server: Server) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """The same, asking for tokens, with a token of each scope."""
    tokens = Tokens(server.opened.database)
    secrets = {scope: tokens.add(scope.replace(":", "-"), [scope], None)[1] for scope in SCOPES}
    asking = Server(server.opened, server.rulebook, Settings(("testserver",), limits=Limits(failures="10000/minute")))
    with TestClient(with_pages(asking)) as client:
        yield client, secrets


@pytest.fixture
def listening(server: Server) -> Iterator[str]:
    """The URL of the server on a port of this machine."""
    running = uvicorn.Server(uvicorn.Config(with_pages(server), port=0, log_level="warning"))
    thread = Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    running.should_exit = True
    thread.join()
