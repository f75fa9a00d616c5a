"""Commands where the store is a team's server: the same words and exit codes, asked over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.errors import UsageError
from receipts.base.files import read_small
from receipts.cli import output
from receipts.cli.session import Answer, from_stdin, is_file, worst
from receipts.publish.page import table_of
from receipts.workflows.server import RemoteServer, ServerResponse, documented

if TYPE_CHECKING:
    from receipts.cli.compare import ComparisonOptions
    from receipts.receipt import Document
    from receipts.store import Entry
    from receipts.workflows.evidence import Verified

PAGE = 1000
MOMENTS = ("started", "finished", "submitted_at")


class TeamServer:
    """What commands ask of a team's server."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server

    def __repr__(self) -> str:
        return f"TeamServer({self._server.url!r})"

    def refuse(self, options: Mapping[str, Any]) -> None:
        """Refuse options that need the database itself. Raises UsageError with the first that was given."""
        for name, value in options.items():
            if value:
                raise UsageError(f"{name} needs the database itself, and {self._server.url} is a server; leave it out")

    def show(self, word: str, *, facts: bool, opened: bool, raw: bool, as_json: bool) -> int:
        """``receipts show``."""
        path = f"/v1/receipts/{word}"
        if raw:
            sys.stdout.buffer.write(self._server.get(f"{path}/raw").body)
            return 0
        return _print(
            self._server.get(path, [*_form("json" if as_json else "text", opened=opened), *_flag("facts", facts)])
        )

    def verified(self, words: Sequence[str]) -> Iterator[Verified]:
        """What ``receipts verify`` prints of stored receipts."""
        from receipts.workflows.evidence import Checked, Verified

        for word in words:
            for row in self._server.get(f"/v1/receipts/{word}/verify").data:
                yield Verified(row["receipt"], row["name"], tuple(Checked(**item) for item in row["checks"]))

    def compare(self, options: ComparisonOptions, form: str, *, opened: bool) -> int:
        """``receipts compare``; files are sent as they are."""
        a, b, witnesses = (documented([_document(word) for word in side]) for side in options.words)
        query = [("metric", options.metric), *(("waive", word) for word in options.waive)]
        query += [("study", options.study)] if options.study else []
        query += [("join", options.join)] if options.join != "session" else []
        query += [*_form("text" if form == "line" else form, opened=opened), *_flag("line", form == "line")]
        body = json.dumps({"a": a, "b": b, "witness": witnesses}).encode()
        return _print(self._server.ask("POST", "/v1/compare", query, body))

    def listed(self, conditions: Sequence[str], limit: int, *, superseded: bool, order: str) -> list[Entry]:
        """Rows of ``receipts list``; a limit of 0 is all."""
        from receipts.store import Entry

        if order == "stored":
            raise UsageError(f"--order stored needs the database itself, and {self._server.url} is a server")
        rows: list[Entry] = []
        query = [*(("where", word) for word in conditions), ("order", order), *_flag("superseded", superseded)]
        cursor: list[tuple[str, str]] = []
        while True:
            wanted = min(PAGE, limit - len(rows)) if limit else PAGE
            answered = self._server.get("/v1/receipts", [*query, ("limit", str(wanted)), *cursor])
            rows += [Entry(**_moments(item)) for item in answered.data]
            following = answered.headers.get("link", "").partition("cursor=")[2]
            if not following or (limit and len(rows) >= limit):
                return rows
            cursor = [("cursor", following.partition(">")[0].partition("&")[0])]

    def preflight(self, plan: str, *, as_json: bool) -> int:
        """``receipts preflight`` of one plan."""
        form, document = _form("json" if as_json else "text", opened=False), _document(plan)
        if isinstance(document, str):
            return _print(self._server.get("/v1/preflight", [("plan", document), *form]))
        return _print(self._server.ask("POST", "/v1/preflight", form, document.raw))

    def pins(self, name: str | None, receipt: str | None, note: str | None, *, remove: bool) -> list[Any]:
        """What ``receipts pin`` prints."""
        from receipts.store import Pin

        path = f"/v1/pins/{name}" if name else "/v1/pins"
        if receipt:
            body = {"receipt": receipt, **({"note": note} if note else {})}
            answered = self._server.ask("PUT", path, body=json.dumps(body).encode())
        else:
            answered = self._server.ask("DELETE" if remove else "GET", path)
        return [Pin(**{**item, "at": datetime.fromisoformat(item["at"])}) for item in answered.data]

    def claims(self, files: Sequence[str], *, add: bool) -> Answer:
        """``receipts claim check`` and ``add`` of files: every verdict, and the exit code."""
        path = "/v1/claims" if add else "/v1/claims/check"
        verdicts = []
        for file in files:
            try:
                raw = read_small(Path(file))
            except OSError as error:
                raise UsageError(f"{file} cannot be read: {error.strerror}") from None
            verdicts += self._server.ask("POST", path, body=raw, media="application/toml").data
        return _claims(verdicts, 0 if add else worst(item["status"] for item in verdicts))

    def claim_list(self, status: str | None, *, everything: bool) -> Answer:
        """``receipts claim list``."""
        query = [*([("status", status)] if status else []), *_flag("superseded", everything)]
        return _claims(self._server.get("/v1/claims", query).data)


def _moments(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{name: datetime.fromisoformat(row[name]) for name in MOMENTS if row[name] is not None}}


def _claims(verdicts: list[dict[str, Any]], code: int = 0) -> Answer:
    from receipts.cli.claim import NO_CLAIMS

    rows = [
        (item["claim"], "superseded" if item.get("superseded") else item["status"], item["text"]) for item in verdicts
    ]
    return Answer(verdicts, table_of("", "claim | status | says", rows, empty=NO_CLAIMS), code)


def _document(word: str) -> Document | str:
    """A file's document, or the word itself."""
    from receipts.receipt import read

    if not is_file(word):
        return word
    return from_stdin() if word == "-" else read(word)


def _form(form: str, *, opened: bool) -> list[tuple[str, str]]:
    terminal = output.terminal()
    query = [("format", form)]
    if form == "text":
        query += [("width", str(terminal.room))] if terminal.room is not None else []
        query += [*_flag("color", terminal.colored), *_flag("verbose", opened)]
    return query


def _flag(name: str, value: bool) -> list[tuple[str, str]]:
    return [(name, "true")] if value else []


def _print(answered: ServerResponse) -> int:
    """The text as the server wrote it, which escapes what a terminal obeys; its code."""
    sys.stdout.write(answered.body.decode())
    return answered.code
