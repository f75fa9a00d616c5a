"""GitHub over its REST API: one comment of a pull request and one issue of a line, each found by a mark and edited.

Anybody may write the mark. Only what a bot or somebody who may write to the repository began is edited, so that no
stranger's comment comes to carry a verdict.
"""

from __future__ import annotations

import json
import os
import re
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from receipts import __version__
from receipts.base.errors import ReceiptsError, UsageError, may_answer_later
from receipts.base.files import read_bounded
from receipts.publish.text import cell

SCHEME: Final = "github://"
TOKEN: Final = "GITHUB_TOKEN"
API: Final = "GITHUB_API_URL"  # as GitHub's runners set it; another one for GitHub Enterprise
LABEL: Final = "receipts"
MAX_PAGES: Final = 30  # of 100 comments or issues
MAX_TEXT: Final = 65_000  # characters; GitHub takes 65,536
MAX_ANSWER: Final = 16 << 20  # bytes
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_DO: Final = {  # where GitHub refuses with that status
    401: f"{TOKEN} is not valid, or expired",
    403: f"{TOKEN} may not do that; give the job: permissions: pull-requests: write, issues: write",
    404: f"check the number and the repository {{name}}, and that {TOKEN} may read it",
    410: "issues are switched off in {name}",
}
_OWN: Final = ("OWNER", "MEMBER", "COLLABORATOR")


class NotTaken(ReceiptsError, OSError):
    """GitHub did not take it, and may later."""


class Refused(NotTaken):
    """GitHub refuses the token, or what it was asked for."""

    exit_code = 2


class _Stays(HTTPRedirectHandler):
    """Follows no redirect: the token would go with it."""

    def redirect_request(self, *_: Any) -> None:
        """Nothing."""


class Written(NamedTuple):
    """What became of a comment or issue: ``created``, ``edited`` or ``unchanged``, and where it is."""

    what: str
    url: str


class Repository:
    """A repository by ``OWNER/NAME``; the token is that of ``GITHUB_TOKEN``. ``asked_by`` is for error messages.

    Raises UsageError for a name, a token or an API that cannot be asked.
    """

    def __init__(self, name: str, asked_by: str, patience: float = 30.0) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{asked_by}: write the repository as OWNER/NAME")
        self._base = os.environ.get(API) or "https://api.github.com"
        self._token = os.environ.get(TOKEN, "")
        if not self._token or not (self._token.isascii() and self._token.isprintable()):
            raise UsageError(f"{asked_by}: set {TOKEN} to a token that may write issues of {name}")
        parts = urlsplit(self._base)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise UsageError(f"{API}: the token would travel in the clear; write https://…")
        self.name = name
        self._patience = patience

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to one request below the repository. Raises NotTaken, which never holds the token."""
        request = Request(
            f"{self._base.rstrip('/')}/repos/{self.name}/{path}",
            json.dumps(body).encode() if body is not None else None,
            {
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": f"receipts/{__version__}",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            method=method,
        )
        try:
            with build_opener(_Stays).open(request, timeout=self._patience) as answer:
                read = json.loads(read_bounded(answer, MAX_ANSWER))
            for item in read if method == "GET" else [read]:
                if "html_url" not in item or not isinstance(item, dict):
                    raise ValueError
            return read
        except HTTPError as refused:
            with refused:
                what = f"GitHub: {method} {path.partition('?')[0]}: {refused.code} {refused.reason}"
                limited = refused.headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in refused.headers
                if may_answer_later(refused.code) or limited:
                    raise NotTaken(f"{what}; try again later") from None
                do = _DO.get(refused.code, f"check {API}").format(name=self.name)
                raise Refused(f"{what}; {do}") from None
        except (ValueError, TypeError):
            what = f"GitHub: {method} {path.partition('?')[0]}: the answer is not what GitHub's API gives"
            raise Refused(f"{what}; check {API}") from None
        except (URLError, OSError, HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise NotTaken(f"GitHub does not answer: {why}; try again later, or check {API}") from None

    def marked(self, path: str, mark: str) -> dict[str, Any] | None:
        """The first comment or issue of a list that begins with a mark, and that one of us began."""
        joined = "&" if "?" in path else "?"
        for page in range(1, MAX_PAGES + 1):
            items = self.ask("GET", f"{path}{joined}per_page=100&page={page}")
            for item in items:
                own = item.get("author_association") in _OWN or (item.get("user") or {}).get("type") == "Bot"
                if own and str(item.get("body") or "").startswith(mark):
                    return dict(item)
            if len(items) < 100:
                break
        return None


def quoted(text: object) -> str:
    """Text of a receipt in a comment: no markup, and no name or number that GitHub would call or link.

    It looks for those in what Markdown left, where an escaped ``@`` is one again.
    """
    return cell(text).replace("&#64;", "@\u200b").replace("\\#", "\\#\u200b")


def mark_of(name: str) -> str:
    """What a comment or issue begins with, unseen, by which it is found again."""
    return f"<!-- receipts:{re.sub(r'[^A-Za-z0-9._ -]', '-', name)[:100]} -->"


def comment(repository: Repository, number: int, name: str, text: str, *, quiet: bool) -> Written | None:
    """Write the one comment of this name on a pull request, or edit it; None where there is none, and it stays so.

    With ``quiet`` none is begun. Raises NotTaken.
    """
    mark = mark_of(name)
    body = f"{mark}\n{text}"[:MAX_TEXT]
    there = repository.marked(f"issues/{number}/comments", mark)
    if there is None:
        if quiet:
            return None
        return Written("created", repository.ask("POST", f"issues/{number}/comments", {"body": body})["html_url"])
    if there["body"].replace("\r\n", "\n") == body:
        return Written("unchanged", there["html_url"])
    return Written("edited", repository.ask("PATCH", f"issues/comments/{there['id']}", {"body": body})["html_url"])


def edit_issue(repository: Repository, thread: str, title: str, line: str, notice: str, *, is_open: bool) -> Written:
    """Add a line to the issue of a thread, and open or close it; an empty ``title`` leaves the one that it has.

    A notice that it has is not added twice. Raises NotTaken.
    """
    mark, own = mark_of(thread), f"<!-- {notice} -->"
    there = repository.marked(f"issues?state=all&labels={LABEL}&sort=updated", mark)
    state = "open" if is_open else "closed"
    if there is None:
        values = {"title": title[:250] or thread, "body": f"{mark}\n{line} {own}", "labels": [LABEL]}
        there = repository.ask("POST", "issues", values)
        if is_open:
            return Written("created", there["html_url"])
    lines = [item for item in str(there["body"]).replace("\r\n", "\n").split("\n")[1:] if item]
    if not any(own in item for item in lines):
        lines.append(f"{line} {own}")
    elif there["state"] == state:
        return Written("unchanged", there["html_url"])
    while len(mark) + sum(map(len, lines)) + len(lines) > MAX_TEXT:
        lines.pop(0)
    values = {"body": "\n".join([mark, *lines]), "state": state, **({"title": title[:250]} if title else {})}
    return Written("edited", repository.ask("PATCH", f"issues/{there['number']}", values)["html_url"])
