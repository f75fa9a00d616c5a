"""Servers over a store with one of everything: in this process, asking for tokens or not, and on a port."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from receipts.plugins.serve.server import Server
    from store_copies import FileCopies

SCOPES = ("submit", "submit:cpu-torch", "read", "decide", "admin")


def fill(url: str) -> None:
    """One of everything, and a pin."""
    import report_store

    with report_store.fill(Path(url.removeprefix("sqlite:///")), report_store.everything()) as store:
        store.pin("golden", store.resolve_all("small decoder")[0])


@pytest.fixture
def server(tmp_path: Path, file_copies: FileCopies) -> Server:
    """A server that everybody on the machine may ask."""
    import rule_cases
    from receipts.plugins.serve.server import Server, Settings
    from receipts.store import open_store

    url = file_copies.file(tmp_path / "store.sqlite", "served", fill)
    return Server(open_store(url), rule_cases.rulebook(), Settings(("testserver", "127.0.0.1"), open=True))


@pytest.fixture
def client(server: Server) -> Iterator[TestClient]:
    """Asks the server."""
    from starlette.testclient import TestClient

    from receipts.plugins.serve.run import with_pages

    with TestClient(with_pages(server)) as asking:
        yield asking


@pytest.fixture
def guarded(server: Server) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """The same, asking for tokens, with a token of each scope."""
    from starlette.testclient import TestClient

    from receipts.plugins.serve.guard import Limits
    from receipts.plugins.serve.run import with_pages
    from receipts.plugins.serve.server import Server, Settings
    from receipts.store.credentials import Tokens

    tokens = Tokens(server.opened.database)
    secrets = {scope: tokens.add(scope.replace(":", "-"), [scope], None)[1] for scope in SCOPES}
    limits = Limits(failures="10000/minute")
    asking = Server(server.opened, server.rulebook, Settings(("testserver",), limits=limits))
    with TestClient(with_pages(asking)) as client:
        yield client, secrets


@pytest.fixture
def listening(server: Server) -> Iterator[str]:
    """The URL of the server on a port of this machine."""
    import uvicorn

    from receipts.plugins.serve.run import with_pages

    running = uvicorn.Server(uvicorn.Config(with_pages(server), port=0, log_level="warning"))
    thread = Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    running.should_exit = True
    thread.join()
