"""GitHub on a port of this machine, and the environment of a job that may write to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from github_server import GitHub


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """The server; this process has its address and its token."""
    with GitHub() as fake:
        monkeypatch.setenv("GITHUB_API_URL", fake.url)
        monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
        yield fake
