"""A regression reaches somebody: `watch` and `incident close` write the issue of a line, and notices wait on disk."""

from __future__ import annotations

import pytest

from command_line import Shell, shell
from github_server import GitHub
from grid_store import keep
from line_store import line
from receipts.plugins.reach import notices
from receipts.store import open_store

__all__ = ["shell"]


@pytest.mark.slow
def test_watch_writes_an_issue_once_github_takes_it_and_closing_the_incident_closes_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(shell.folder / "store.sqlite"), create=True) as store:
        keep(store, list(line([1.0] * 8 + [1.05] * 4, codes=[1] * 8 + [2] * 4)))
    (shell.folder / "receipts.toml").write_text('notify = ["github://team/bench"]\n')
    config = ("--config", str(shell.folder / "receipts.toml"))
    monkeypatch.setattr(notices, "PAUSES", (0.0,))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    said = shell(*config, "watch")
    assert (said.code, "set GITHUB_TOKEN" in said.err) == (2, True), said.err
    assert shell("incident", "list", "--json").json == []
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    with GitHub() as github:
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        github.status = 502
        said = shell(*config, "watch")
        assert (said.code, github.issues) == (1, []), said.err
        assert "it is kept, and tried again" in said.err
        github.status = 0
        assert shell(*config, "watch").code == 0
        (issue,) = github.issues
        assert "tokens_per_second" in issue["title"]
        assert issue["state"] == "open"
        (incident,) = shell("incident", "list", "--json").json
        assert shell(*config, "incident", "close", incident["id"], "--reason", "the new data mix").code == 0
        assert (issue["state"], "the new data mix" in issue["body"]) == ("closed", True)
        assert len(github.issues) == 1
