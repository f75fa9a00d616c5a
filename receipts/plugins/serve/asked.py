"""The operations of the questions: a route each, what a request says, and the answer in the form that was asked for.

GET takes words. Where a value may be a document, or changes something, POST takes an object of documents and words
as its body, and everything else in the query as GET does. What reads a request reads no file: a word is looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from receipts.api.question import TEXT, Parameter, Question, every, read_value
from receipts.api.question import Param as How
from receipts.base.errors import InputError, NothingToWrite, Problem, UsageError
from receipts.base.untrusted_text import parse_json
from receipts.plugins.serve.guard import AccessDenied
from receipts.plugins.serve.operation import (
    CODE,
    FLAG,
    FORMS,
    MEDIA,
    WORD,
    Body,
    Call,
    Operation,
    Param,
    Reply,
    values_of,
)
from receipts.publish.terminal import Terminal

MAX_SIDE_ENTRIES: Final = 1000  # words and documents of one value
MAX_NOTES: Final = 4000  # characters of a header
DOCUMENT: Final = {
    "type": "object",
    "required": ["document"],
    "properties": {
        "document": {"type": ["string", "object"], "description": "The text of the document"},
        "name": {**TEXT, "description": "What errors and commands call it"},
    },
    "additionalProperties": False,
}
UPLOADS: Final = ("claims", "lines")  # documents that no word names
NOTES, WHY, NOTHING = "Receipts-Notes", "Receipts-Why", "Receipts-Nothing"


class Asked:
    """What answers the operation of a question, by its name: it is sent to processes that answer costly ones."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, call: Call) -> Reply:
        question = every()[self.name]
        session = call.store.session
        answer = question.function(session, **_given(question, call))
        form, opened = call.get("format", "json"), call.get("verbose", False)
        views = {name: call.values[name] for name in question.views if name in call.values and name != "verbose"}
        if form in question.files:
            replied = _file(question, answer, form)
        elif form == "text":
            width = call.get("width")
            terminal = Terminal(width or 100, width, call.get("color", False))
            replied = Reply(answer.text(terminal, opened=opened, **views), MEDIA[form])
        else:
            replied = Reply(answer.form(form, views), MEDIA[form])
        # Behind the body: what proves more of it answers the code as well.
        headers = {**replied.headers, CODE: str(answer.exit_code)}
        texts = [*session.notes, *answer.notes]
        headers |= {name: _packed(each) for name, each in ((NOTES, texts), (WHY, answer.always)) if each}
        if answer.following is not None:
            url = call.request.url.include_query_params(cursor=answer.following)
            headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return replace(replied, headers=headers)


def asked_of(question: Question[..., Any], call: Call) -> Any:
    """The answer to a question by the path and query of a page, which hold nothing else. Raises UsageError."""
    in_path = call.request.path_params
    params = [_param(item) for item in question.parameters if not item.how.local and item.wire not in in_path]
    values = values_of(tuple(params), call.request.query_params)
    return question.function(call.store.session, **_given(question, replace(call, values=values)))


def _file(question: Question[..., Any], answer: Any, name: str) -> Reply:
    file, why = question.files[name], question.files[name].without
    try:
        content = answer.file(name)
    except NothingToWrite as error:
        content, why = None, str(error)
    if content is None:
        return Reply("", "text/plain", headers={NOTHING: _packed([why or "there is nothing to write"])})
    if isinstance(content, Mapping):
        texts = {part: text if isinstance(text, str) else text.decode() for part, text in content.items()}
        return Reply(json.dumps(texts))
    return Reply(content, file.media)


def _packed(texts: Sequence[str]) -> str:
    """Notes for a header: percent-encoded, a space between two."""
    parts: list[str] = []
    for text in texts:
        part = quote(text, safe="")
        if sum(map(len, parts)) + len(part) > MAX_NOTES:
            break
        parts.append(part)
    return " ".join(parts)


def _given(question: Question[..., Any], call: Call) -> dict[str, Any]:
    """The values of a request. Raises UsageError, InputError, and AccessDenied for one that the token may not give."""
    sent = dict(call.values)
    if call.request.method == "POST":
        sent |= _body(question, call.body, toml=call.toml)
    for name, value in call.request.path_params.items():
        sent[name] = str(value)
    given: dict[str, Any] = {}
    for item in question.parameters:
        if item.wire not in sent:
            if item.required:
                raise UsageError(f"{item.wire} is missing: {item.how.help}")
            continue
        value = sent[item.wire]
        scope, token = item.how.scope, call.token
        if scope and value and token is not None and not token.may(scope):
            raise AccessDenied(403, f"{token.name} may {', '.join(token.scopes)}; {item.wire} takes {scope}")
        if item.how.kind.document:
            given[item.name] = item.how.kind.gather(value) if item.how.many else value
        else:
            given[item.name] = read_value(item, item.wire, value)
    return given


def _body(question: Question[..., Any], raw: bytes, *, toml: bool) -> dict[str, Any]:
    """The documents and words of a body. Raises InputError with every problem."""
    takes = {item.wire: item for item in question.parameters if _in_body(item)}
    if toml:
        name = next(name for name, item in takes.items() if item.how.kind.document == "claims")
        one = _document(raw.decode("utf-8", "replace"), "the claims", "claims")
        return {name: [one] if takes[name].how.many else one}
    try:
        body = parse_json(raw) if raw else {}
    except ValueError as error:
        raise InputError("the body", [Problem("$", f"this is not JSON: {error}")]) from None
    if not isinstance(body, dict):
        raise InputError("the body", [Problem("$", "write an object")])
    problems = [Problem(name, f"there is no such key; known: {', '.join(takes)}") for name in body if name not in takes]
    values: dict[str, Any] = {}
    for name, value in body.items():
        if name in takes:
            read = list(_read(name, value, takes[name], problems))
            values[name] = read if takes[name].how.many else read[0] if read else None
    problems += [Problem(name, "it is missing") for name, item in takes.items() if item.required and name not in body]
    if problems:
        raise InputError("the body", problems)
    return values


def _read(name: str, value: Any, item: Parameter, problems: list[Problem]) -> Iterator[Any]:
    if item.how.many and (not isinstance(value, list) or not (item.required <= len(value) <= MAX_SIDE_ENTRIES)):
        problems.append(Problem(name, f"write a list of at most {MAX_SIDE_ENTRIES:,} words or documents"))
        return
    for number, one in enumerate(value if item.how.many else [value]):
        at = f"{name}.{number}" if item.how.many else name
        if isinstance(one, str) and item.how.kind.document not in UPLOADS and _is_word(one):
            yield one
        elif _is_document(one):
            source = one.get("name") or (f"{name}[{number}]" if item.how.many else name)
            yield _document(one["document"], source, item.how.kind.document)
        else:
            problems.append(Problem(at, 'write a word that names a receipt, or {"document": "…"}'))


def received(value: Any, name: str, kind: str) -> Any:
    """A word, or the document that was sent in its place. Raises UsageError and InputError."""
    if isinstance(value, str):
        return value
    if not _is_document(value):
        raise UsageError(f'{name}: write a word that names a receipt, or {{"document": …}}')
    return _document(value["document"], value.get("name") or name, kind)


def _is_document(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"document"} <= set(value) <= {"document", "name"}
        and isinstance(value["document"], str | dict)
        and ("name" not in value or (isinstance(value["name"], str) and _is_word(value["name"])))
    )


def _is_word(text: str) -> bool:
    return WORD["minLength"] <= len(text) <= WORD["maxLength"] and re.search(WORD["pattern"], text) is not None


def _document(text: str | Mapping[str, Any], source: str, kind: str) -> Any:
    """The receipt, plan, claims or lines in a document that was sent. Raises InputError."""
    from receipts.api.receipt import read_given
    from receipts.receipt import Document, parse

    raw = (text if isinstance(text, str) else json.dumps(text)).encode("utf-8", "surrogatepass")
    if kind in UPLOADS:
        return read_given(raw, kind)
    if kind == "plan":
        from receipts.questions.plan import parse_plan

        return parse_plan(Document(raw, source))
    return parse(Document(raw, source))


def _in_body(item: Parameter) -> bool:
    return bool(item.how.kind.document) and not item.how.local


def operations() -> Iterator[Operation]:
    """The operations of every question; paths without a name in them come first, since such a name may be any."""
    asked = [item for item in every().values() if not item.local]
    for question in sorted(asked, key=lambda item: "{" in item.path):
        answer = Asked(question.name)
        in_path = re.findall(r"{(\w+)}", question.path)
        params = [item for item in question.parameters if not item.how.local and item.wire not in in_path]
        posted = [item for item in question.parameters if _in_body(item)]
        scoped = [item for item in params if item.how.scope]
        plain = tuple(_param(item) for item in params if not _in_body(item) and not item.how.scope)
        words = tuple(_param(item) for item in params if _in_body(item) and item.how.kind.document not in UPLOADS)
        toml = any(item.how.kind.document == "claims" for item in posted)
        forms, costly, about = _forms(question), question.costly, question.summary
        files = [file.media for file in question.files.values()]
        media = tuple(dict.fromkeys([*files, *(["text/plain"] if files else [])]))
        if all(item.how.kind.document not in UPLOADS for item in posted) or not any(item.required for item in posted):
            query = (*words, *plain, *forms)
            yield Operation("GET", question.path, "read", answer, query, costly=costly, about=about, files=media)
        if (posted or scoped) and "{" not in question.post:
            schema = {
                "type": "object",
                "properties": {item.wire: _schema(item) for item in posted},
                "required": [item.wire for item in posted if item.required],
                "additionalProperties": False,
            }
            body = Body("application/json", schema, "Words that name receipts, and documents", toml=toml)
            query = (*plain, *map(_param, scoped), *forms)
            yield Operation("POST", question.post, "read", answer, query, body, costly=costly, about=about, files=media)


def _schema(item: Parameter) -> dict[str, Any]:
    one = {"anyOf": [dict(WORD), DOCUMENT]} if item.how.kind.document not in UPLOADS else DOCUMENT
    if not item.how.many:
        return {**one, "description": item.how.help}
    least = {"minItems": 1} if item.required else {}
    return {"type": "array", "items": one, **least, "maxItems": MAX_SIDE_ENTRIES, "description": item.how.help}


def _param(item: Parameter) -> Param:
    how: How = item.how
    return Param(item.wire, how.kind.schema, how.help.rstrip("."), item.required, how.many)


def _forms(question: Question[..., Any]) -> tuple[Param, ...]:
    names = [*(name for name in ("json", *question.forms) if name), *question.files]
    form = Param(
        "format",
        {"type": "string", "enum": list(dict.fromkeys(names))},
        "The form of the answer, or a file that goes with it; json by default",
    )
    views = tuple(
        Param(name, FLAG if how.kind.schema.get("enum") else WORD, how.help.rstrip("."))
        for name, how in question.views.items()
        if name != "verbose"
    )
    return (form, *FORMS, *views)
