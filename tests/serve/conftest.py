"""A server in this process over a store with one of everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
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
    return Server(open_store(url), rule_cases.rulebook(), Settings(("testserver",), open=True))


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
