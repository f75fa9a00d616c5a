"""Incidents that `watch` opens, on the pages of the server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import rule_cases
from grid_store import keep
from line_store import line
from receipts.plugins.serve.run import with_pages
from receipts.plugins.serve.server import Server, Settings
from receipts.plugins.track.watch import close, watch
from receipts.store import open_store
from store_receipts import RULEBOOK

pytestmark = pytest.mark.slow


def test_the_inbox_shows_incidents_that_are_open(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.sqlite"), create=True) as store:
        keep(store, list(line([1.0] * 8 + [1.05] * 4)))
        (opened,) = watch(store, RULEBOOK, datetime(2000, 1, 1, tzinfo=UTC), metric="step_seconds").opened
        server = Server(store, rule_cases.rulebook(), Settings(("testserver",), open=True))
        with TestClient(with_pages(server)) as client:
            page = client.get("/inbox").text
            assert "1 open incident" in page
            assert opened.incident in page
            close(store, opened.incident, "known")
            assert opened.incident not in client.get("/inbox").text
