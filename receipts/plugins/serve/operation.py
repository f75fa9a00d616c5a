"""One operation of the server: its parameters and bodies, who may ask, what answers, and the forms of an answer.

The routes and OpenAPI come from these; those of questions are derived (`receipts.plugins.serve.asked`). A body is the
model that reads it and that OpenAPI describes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from receipts.api.question import FLAG_SCHEMA, TEXT
from receipts.base.errors import InputError, Problem, UsageError

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from receipts.api.store import Store
    from receipts.plugins.serve.server import Server
    from receipts.store.credentials import Token


Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
B = TypeVar("B", bound="Sent")


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
WORD: Final = TEXT
FLAG: Final = FLAG_SCHEMA


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
    toml: bool = False  # a claims.toml as it is will do as well


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
        """The answer in a process that can be ended, where the server has any; so many at once. Raises TooSlow.

        What GET asks changes nothing: whoever asks the same of the same receipts is given the same answer.
        """
        if self.request.method != "GET":
            return self._worked(answer)
        url, anybody = self.request.url, self.token is None
        return self.server.shared((url.path, url.query, anybody), lambda: self._worked(answer))

    def _worked(self, answer: Callable[[Call], A]) -> A:
        sent = {name: self.request.scope[name] for name in ("type", "method", "path", "path_params", "query_string")}
        headers = [(name, value) for name, value in self.request.scope["headers"] if name == b"content-type"]
        given = (answer, {**sent, "headers": headers}, self.token, self.values, self.body)
        with self.server.gate:
            if self.server.workers is None:
                return answer_in_one_state(self.server, *given)
            answered: A = self.server.workers.ask(answer_in_one_state, *given)
            return answered

    @property
    def toml(self) -> bool:
        """Whether the body is a claims.toml as it is."""
        return self.request.headers.get("content-type", "").lower().startswith("application/toml")

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
    about: str = ""
    files: tuple[str, ...] = ()  # media types of its other forms

    @property
    def summary(self) -> str:
        """What it does, as its question or its answer's first line says."""
        return self.about or (self.answer.__doc__ or "").strip().partition("\n")[0].rstrip(".")


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
        return text == "true" if choices == FLAG["enum"] else text
    if not schema["minLength"] <= len(text) <= schema["maxLength"] or not re.search(schema["pattern"], text):
        raise UsageError(f"{item.name}: write 1 to {schema['maxLength']} characters, and no control characters")
    return text


MEDIA: Final = {
    "json": "application/json",
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "line": "text/plain",
}
FORMS: Final = (
    Param(
        "width", {"type": "integer", "minimum": 40, "maximum": 500}, "Columns of the text; without it tables are whole"
    ),
    Param("color", FLAG, "Color the text, for a terminal"),
    Param("verbose", FLAG, "Open what is folded in the text"),
)
# What a command ends with: 0 yes, 1 no, 3 undecided.
CODE: Final = "Receipts-Exit-Code"
