"""A question whose store is a team's server: asked over HTTP, printed and written as if it were answered here."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from receipts.api.question import Question
from receipts.base.errors import NothingToWrite, ReceiptsError, UsageError, printed
from receipts.cli import output
from receipts.cli.asked import Wanted, values_of, write, write_raw

if TYPE_CHECKING:
    from receipts.workflows.server import RemoteServer, ServerResponse

NOTHING = "receipts-nothing"  # the header that says why there is no file
MAX_NAME = 500  # characters
PAGE = 1000  # rows of a list that are asked for at once


class _Call:
    """One question to one server: where it is asked, with which query and body."""

    def __init__(
        self, question: Question[..., Any], server: RemoteServer, words: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        self.server = server
        self.path = question.path
        self.refused: list[str] = []  # of documents that could not be read
        self.query: list[tuple[str, str]] = []
        self.body: dict[str, Any] = {}
        posts = False
        for item in question.parameters:
            value = words[item.name]
            if item.how.local:
                if value is not None and value != item.default and value != [] and value != ():
                    name = item.how.flags[0] if item.how.flags else item.name
                    raise UsageError(f"{name} needs the database itself, and {server.url} is a server; leave it out")
            elif f"{{{item.wire}}}" in self.path and isinstance(given[item.name], str):
                self.path = self.path.replace(f"{{{item.wire}}}", str(value))
            elif item.how.kind.document:
                held = values_of(item, given)
                self.refused += [text for one in held if isinstance(one, ReceiptsError) for text in printed(one)]
                whole = [one for one in held if not isinstance(one, ReceiptsError)]
                sent = [one if isinstance(one, str) else _sent(one) for one in whole]
                posts |= any(isinstance(one, dict) for one in sent)
                if sent:
                    self.body[item.wire] = sent if item.how.many else sent[0]
            elif value is not None and (item.required or value != item.default):
                posts |= bool(item.how.scope)
                several = value if item.how.many else [value]
                self.query += [(item.wire, "true" if one is True else str(one)) for one in several]
        self.method = "POST" if posts else "GET"
        if posts:
            self.path = question.post
        else:
            for name, value in self.body.items():
                self.query += [(name, str(one)) for one in (value if isinstance(value, list) else [value])]

    def ask(self, *more: tuple[str, str], without: str = "") -> ServerResponse:
        """The server's answer."""
        query = [item for item in self.query if item[0] != without] + list(more)
        body = json.dumps(self.body).encode() if self.method == "POST" else None
        return self.server.ask(self.method, self.path, query, body)


def _sent(document: Any) -> dict[str, str]:
    """A document as the server takes it, with the name that commands know it by."""
    named = {"name": document.source} if 0 < len(document.source) <= MAX_NAME and document.source.isprintable() else {}
    return {"document": document.raw.decode(), **named}


def ask(
    question: Question[..., Any],
    server: RemoteServer,
    words: Mapping[str, Any],
    given: Mapping[str, Any],
    wanted: Wanted,
) -> int:
    """Ask a server; its bytes are printed as they are. Files are asked for alone, and written here."""
    call = _Call(question, server, words, given)
    from receipts.base import files

    for name, place in wanted.files.items():
        if question.files[name].new:
            files.refuse_existing(place)
    for name, place in wanted.files.items():
        write(question, name, place, partial(_file, question, call, name))
    if wanted.printed is not None:
        answer = call.ask(("format", wanted.printed))
        if (why := answer.headers.get(NOTHING)) is not None:
            output.note(unquote(why))
            return 3
        write_raw(answer.body)
        return answer.code
    views = [(name, "true" if value is True else str(value)) for name, value in wanted.views.items() if value]
    if question.pages is not None and (given["limit"] == 0 or given["limit"] > PAGE):
        return _pages(question, call, given["limit"], wanted)
    form = [("format", wanted.form), *views]
    if wanted.form == "text":
        terminal = output.terminal()
        form += [("width", str(terminal.room))] if terminal.room is not None else []
        form += [("color", "true")] if terminal.colored else []
    answer = call.ask(*form)
    sys.stdout.write(answer.body.decode())
    for text in (*call.refused, *_notes(answer, "receipts-why"), *(_notes(answer) if wanted.form == "text" else ())):
        output.note(text)
    return 2 if call.refused else answer.code


def _file(question: Question[..., Any], call: _Call, name: str) -> Any:
    answer = call.ask(("format", name))
    if answer.headers.get(NOTHING) is not None:
        raise NothingToWrite(unquote(answer.headers[NOTHING]))
    return answer.data if question.files[name].folder else answer.body


def _notes(answer: ServerResponse, name: str = "receipts-notes") -> list[str]:
    return [unquote(part) for part in answer.headers.get(name, "").split()]


def _pages(question: Question[..., Any], call: _Call, limit: int, wanted: Wanted) -> int:
    """A list that is longer than a page of the server: its rows, page after page, shown here."""
    assert question.pages is not None
    rows: list[Any] = []
    cursor: list[tuple[str, str]] = []
    while True:
        size = min(PAGE, limit - len(rows)) if limit else PAGE
        answer = call.ask(("format", "json"), ("limit", str(size)), *cursor, without="limit")
        rows += answer.data
        following = answer.headers.get("link", "").partition("cursor=")[2].partition(">")[0].partition("&")[0]
        if not following or (limit and len(rows) >= limit):
            break
        cursor = [("cursor", following)]
    shown = question.pages(rows, [f"the first {limit}; --limit 0 prints all"] if following else _notes(answer))
    if wanted.form == "text":
        sys.stdout.write(shown.text(output.terminal(), **wanted.views))
        for text in shown.notes:
            output.note(text)
    else:
        sys.stdout.write(shown.form(wanted.form, wanted.views))
    return answer.code
