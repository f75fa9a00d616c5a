"""An incident is one issue of GitHub, edited as it goes on, and notices wait on disk until they are delivered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from github_server import GitHub
from receipts.base.errors import UsageError
from receipts.plugins.reach import notices
from receipts.plugins.reach.notices import Outbox, targets

URL = "github://team/bench"


def notice_of(
    what: str, is_open: int, text: str = "cpu-torch: tokens_per_second −4.8 %"
) -> tuple[str, str, dict[str, Any]]:
    """A notice of the line 7."""
    return (f"incident.{what}", text, {"thread": "line 7 training tokens_per_second", "open": is_open})


@pytest.fixture
def outbox(github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    """One for the issues of the server."""
    monkeypatch.setenv("RECEIPTS_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(notices, "PAUSES", (0.0, 0.0))
    return Outbox(targets([], [URL]), "sqlite:///store.sqlite")


def test_an_incident_is_one_issue_that_is_edited_and_closed(github: GitHub, outbox: Outbox) -> None:
    outbox.send(
        [
            notice_of("opened", 1),
            notice_of("worse", 2, "cpu-torch: −9.0 %"),
            notice_of("closed", 1),
            notice_of("closed", 0),
        ]
    )
    (issue,) = github.issues
    assert (issue["state"], issue["labels"], issue["title"]) == ("closed", ["receipts"], "cpu-torch: −9.0 %")
    events = [line.split(" UTC, ")[1].split(":")[0] for line in issue["body"].splitlines()[1:]]
    assert events == ["opened", "worse", "closed", "closed"]
    outbox.send([notice_of("opened", 1)])
    assert (len(github.issues), issue["state"]) == (1, "open")
    outbox.send([("frontier.taken", "a new best", {"receipt": "3f9c"})])
    assert (len(github.issues), outbox.kept) == (1, 0)


def test_a_notice_that_github_refuses_waits_on_disk_and_is_written_once(
    github: GitHub, outbox: Outbox, capsys: pytest.CaptureFixture[str]
) -> None:
    github.status = 503
    outbox.send([notice_of("opened", 1)])
    assert (outbox.kept, github.issues) == (1, [])
    logged = capsys.readouterr().err
    assert f"incident.opened was not delivered to {URL}: GitHub: GET issues: 503" in logged
    assert "secret-token" not in logged
    github.status = 0
    again = Outbox(targets([], [URL]), "sqlite:///store.sqlite")
    assert again.retry()
    assert (again.kept, len(github.issues)) == (0, 1)
    (target,), body = targets([], [URL]), github.issues[0]["body"]
    notice = notices.Notice(*notice_of("opened", 1), id=body.split("<!-- ")[-1].split(" ")[0], at="2026-01-01T00:00:00")
    target.send(notice)  # as where the answer of the first try was lost
    assert github.issues[0]["body"] == body


def test_text_of_a_receipt_calls_nobody_and_ends_no_comment(github: GitHub, outbox: Outbox) -> None:
    outbox.send([notice_of("opened", 1, "lane: @everyone --> <b>x</b>\n<!-- receipts:other -->")])
    body = github.issues[0]["body"]
    assert "@everyone" not in body
    assert "<b>" not in body
    assert len(body.splitlines()) == 2


def test_an_issue_that_a_stranger_began_with_the_mark_is_not_edited(github: GitHub, outbox: Outbox) -> None:
    stranger = {"user": {"type": "User"}, "author_association": "NONE", "state": "open", "number": 1}
    github.issues.append({**stranger, "body": "<!-- receipts:line 7 training tokens_per_second -->", "html_url": ""})
    outbox.send([notice_of("opened", 1)])
    assert [len(item["body"].splitlines()) for item in github.issues] == [1, 2]


@pytest.mark.parametrize("name", ["team", "team/bench/x", "../x/y", "team/be nch"])
def test_a_name_that_is_no_repository_is_refused_before_anything_is_sent(github: GitHub, name: str) -> None:
    with pytest.raises(UsageError, match="OWNER/NAME"):
        targets([], [f"github://{name}"])


def test_without_a_token_or_over_a_clear_connection_nothing_is_sent(
    github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://example.org")
    with pytest.raises(UsageError, match="in the clear"):
        targets([], [URL])
    monkeypatch.delenv("GITHUB_TOKEN")
    with pytest.raises(UsageError, match="set GITHUB_TOKEN"):
        targets([], [URL])
