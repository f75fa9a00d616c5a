"""One operation of the server: its parameters and bodies, who may ask, what answers, and the forms of an answer.

The routes and OpenAPI come from these. A body is the model that reads it and that OpenAPI describes. A cursor of a list
names the last receipt of a page, so that receipts that come in meanwhile move none. An answer is the JSON of the
command, or its page as text, Markdown or HTML.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.untrusted_text import parse_json
from receipts.publish.markdown import markdown
from receipts.publish.terminal import Terminal
from receipts.store import Entry, Filters, condition
from receipts.store import Store as Opened

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from receipts.api.answer import Answer
    from receipts.api.store import Store
    from receipts.plugins.serve.server import Server
    from receipts.store.tokens import Token


Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
# A word that names stored receipts, or a document.
Named = Text | Annotated[dict[Literal["document"], str], Field(min_length=1)]
B = TypeVar("B", bound="Sent")
MAX_SIDE_ENTRIES = 1000  # words and documents of a side


class Sent(BaseModel):
    """What a request sends as JSON; no other keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls: type[B], raw: bytes) -> B:
        """The body. Raises InputError with every problem."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            every = error.errors(include_url=False, include_context=False, include_input=False)
            # What follows the place in a list is the branch of a union.
            problems = [Problem(".".join(map(str, item["loc"][:2])) or "$", item["msg"]) for item in every]
            raise InputError("the body", problems) from None


class Sides(Sent):
    """Both sides of a comparison, and launches that show the path of one."""

    a: Annotated[list[Named], Field(min_length=1, max_length=MAX_SIDE_ENTRIES)]
    b: Annotated[list[Named], Field(min_length=1, max_length=MAX_SIDE_ENTRIES)]
    witness: Annotated[list[Named], Field(max_length=MAX_SIDE_ENTRIES)] = []


class Pinned(Sent):
    """The receipt that a pin points at, and why."""

    receipt: Text
    note: Text | None = None


class Decided(Sent):
    """What is decided about a receipt, and why."""

    receipt: Text
    decision: Literal["ship", "hold", "drop"]
    reason: Text


A = TypeVar("A")
# A text that can name something: no control characters, not longer than a label.
WORD: Final = {"type": "string", "minLength": 1, "maxLength": 500, "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"}
FLAG: Final = {"type": "string", "enum": ["true", "false"]}


class Param(NamedTuple):
    """A query parameter: its JSON Schema (of each value where there are ``many``)."""

    name: str
    schema: Mapping[str, Any]
    summary: str
    required: bool = False
    many: bool = False


class Body(NamedTuple):
    """A request's body: its media type, JSON Schema (None for bytes as they are), and what it is.

    One that is ``streamed`` is a file: it is handed over in pieces, and never whole in memory.
    """

    media: str
    schema: Mapping[str, Any] | None
    summary: str
    streamed: bool = False


@dataclass(frozen=True)
class Reply:
    """What an operation answers: a text or bytes with its type. ``digest`` is its ETag; None: that of the bytes."""

    body: bytes | str
    media: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    digest: str | None = None


@dataclass(frozen=True)
class Call:
    """One request, checked: who asks, the values of its parameters, and its body; of a streamed one the ``pieces``."""

    server: Server
    request: Request
    token: Token | None
    values: Mapping[str, Any]
    body: bytes = b""
    pieces: AsyncIterator[bytes] | None = None

    @cached_property
    def store(self) -> Store:
        """The store, as Python asks it."""
        return self.server.store(self.token)

    def costly(self, answer: Callable[[Call], A]) -> A:
        """The answer in a process that can be ended, where the server has any; so many at once. Raises TooSlow."""
        sent = {name: self.request.scope[name] for name in ("type", "method", "path", "path_params", "query_string")}
        given = (answer, {**sent, "headers": []}, self.token, self.values, self.body)
        with self.server.gate:
            if self.server.workers is None:
                return answer_in_one_state(self.server, *given)
            answered: A = self.server.workers.ask(answer_in_one_state, *given)
            return answered

    @property
    def name(self) -> str:
        """The value of the path's one parameter."""
        return str(next(iter(self.request.path_params.values())))

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a parameter."""
        return self.values.get(name, default)


Responder = Callable[[Call], Reply] | Callable[[Call], Awaitable[Reply]]  # the latter holds no thread while it waits


class Operation(NamedTuple):
    """``scope`` is None for what everybody may ask. ``costly`` ones count against the comparisons that may run."""

    method: str
    path: str
    scope: str | None
    answer: Responder
    query: tuple[Param, ...] = ()
    body: Body | None = None
    answers: Mapping[int, str] = {200: "application/json"}
    costly: bool = False

    @property
    def summary(self) -> str:
        """What it does, as its answer's first line says."""
        return (self.answer.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def answer_in_one_state(
    server: Server, answer: Callable[[Call], A], scope: Mapping[str, Any], *given: Any, **more: Any
) -> A:
    """The answer to a costly call that was sent here as values; all that it reads is one state of the store."""
    from starlette.requests import Request

    call = Call(server, Request(dict(scope)), *given, **more)
    with call.store.opened.one_state():
        return answer(call)


def values_of(params: tuple[Param, ...], given: QueryParams) -> dict[str, Any]:
    """The values of the query, of the types that the parameters say. Raises UsageError with the first that is wrong."""
    known = {item.name: item for item in params}
    for name in given:
        if name not in known:
            raise UsageError(f"there is no parameter {name!r}; known: {', '.join(known) or 'none'}")
    values: dict[str, Any] = {}
    for item in params:
        texts = given.getlist(item.name)
        if not texts:
            if item.required:
                raise UsageError(f"{item.name} is missing: {item.summary}")
            continue
        if len(texts) > 1 and not item.many:
            raise UsageError(f"{item.name} is given {len(texts)} times; give it once")
        read = [_value(item, text) for text in texts]
        values[item.name] = read if item.many else read[0]
    return values


def _value(item: Param, text: str) -> Any:
    schema = item.schema
    if schema["type"] == "integer":
        if not re.fullmatch(r"-?[0-9]{1,9}", text):
            raise UsageError(f"{item.name}={text[:40]}: write an integer")
        number = int(text)
        if not schema["minimum"] <= number <= schema["maximum"]:
            raise UsageError(f"{item.name}={number}: write one from {schema['minimum']} to {schema['maximum']}")
        return number
    choices = schema.get("enum")
    if choices is not None:
        if text not in choices:
            raise UsageError(f"{item.name}={text[:40]}: write one of {', '.join(choices)}")
        return text == "true" if schema is FLAG else text
    if not schema["minLength"] <= len(text) <= schema["maxLength"] or not re.search(schema["pattern"], text):
        raise UsageError(f"{item.name}: write 1 to {schema['maxLength']} characters, and no control characters")
    return text


ORDERS = ("newest", "oldest")
MAX_CONDITIONS = 50  # conditions of a list


class Cursor(NamedTuple):
    """The last receipt of a page: when it started, and its number in the store."""

    started: str
    seq: int

    def text(self) -> str:
        """As it goes into a URL."""
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """A cursor from a URL. Raises UsageError."""
    try:
        started, seq = parse_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if datetime.fromisoformat(started).tzinfo is None or type(seq) is not int:
            raise ValueError(text)
    except (ValueError, TypeError):
        raise UsageError(f"cursor={text[:40]}: this is no cursor; take the one of the page before") from None
    return Cursor(started, seq)


def listed_page(
    store: Opened,
    conditions: Sequence[str],
    *,
    limit: int,
    order: str = ORDERS[0],
    superseded: bool = False,
    cursor: str | None = None,
) -> tuple[list[Entry], str | None]:
    """So many rows after a cursor, and the cursor of the next page; None where this is the last. Raises UsageError."""
    if len(conditions) > MAX_CONDITIONS:
        raise UsageError(f"{len(conditions):,} conditions are too many; write at most {MAX_CONDITIONS}")
    after = read_cursor(cursor) if cursor else None
    newest = order == "newest"
    bound = [f"started{'<=' if newest else '>='}{after.started}"] if after else []
    wanted = tuple(condition(text) for text in (*conditions, *bound))
    # Rows of the instant that the last page ended with come again, and are passed by.
    again = 1 if after else 0
    while True:
        filters = Filters(wanted, superseded, "newest" if newest else "oldest", limit + again + 1)
        rows = list(store.find(filters))
        left = [item for item in rows if after is None or not _passed(item, after, newest=newest)]
        if len(left) > limit or len(rows) < limit + again + 1:
            break
        again = 2 * again + 8
    following = Cursor(left[limit - 1].started.isoformat(), left[limit - 1].seq).text() if len(left) > limit else None
    return left[:limit], following


def _passed(item: Entry, after: Cursor, *, newest: bool) -> bool:
    if item.started.isoformat() != after.started:
        return False
    return item.seq >= after.seq if newest else item.seq <= after.seq


MEDIA: Final = {"json": "application/json", "text": "text/plain", "markdown": "text/markdown"}
FORMS: Final = (
    Param("format", {"type": "string", "enum": list(MEDIA)}, "The form of the answer; json by default"),
    Param(
        "width", {"type": "integer", "minimum": 40, "maximum": 500}, "Columns of the text; without it tables are whole"
    ),
    Param("color", FLAG, "Color the text, for a terminal"),
    Param("verbose", FLAG, "Open what is folded in the text"),
)
# What a command ends with: 0 yes, 1 no, 3 undecided.
CODE: Final = "Receipts-Exit-Code"


def reply(call: Call, answer: Answer, **page: Any) -> Reply:
    """An answer in the form that was asked for. ``page`` are further arguments of its page."""
    form = call.get("format", "json")
    headers = {CODE: str(answer.exit_code)}
    if form == "json":
        return Reply(answer.to_json() + "\n", headers=headers)
    shown = answer.page(**page)
    if form == "markdown":
        return Reply(markdown(shown) + "\n", MEDIA[form], headers=headers)
    width = call.get("width")
    terminal = Terminal(width or 100, width, call.get("color", False))
    lines = terminal.page(shown, opened=call.get("verbose", False))
    return Reply("".join(f"{line}\n" for line in lines), MEDIA[form], headers=headers)
