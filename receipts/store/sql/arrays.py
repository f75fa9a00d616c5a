"""Arrays for PostgreSQL, as texts: psycopg looks at every value to find its type, which takes longer than the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ARRAY, DateTime, Dialect, LargeBinary, String, TypeDecorator
from sqlalchemy.types import TypeEngine


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_hex(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


_WRITTEN: Final[tuple[tuple[type[TypeEngine[Any]], Callable[[Any], str]], ...]] = (
    (String, _quoted),
    (LargeBinary, _in_hex),
    (DateTime, str),
)


def written(kind: TypeEngine[Any], values: Iterable[Any]) -> str:
    """The array of some values of a column's type, as PostgreSQL reads it; what has no type here is a number."""
    text = next((text for known, text in _WRITTEN if isinstance(kind, known)), str)
    return "{" + ",".join(["NULL" if value is None else text(value) for value in values]) + "}"


class Array(TypeDecorator[Sequence[Any]]):
    """An array of a column's type that is asked about, and never read."""

    impl = ARRAY
    cache_ok = True

    def __init__(self, kind: TypeEngine[Any]) -> None:
        super().__init__(kind)
        self.kind = kind

    def bind_processor(self, dialect: Dialect) -> Callable[[Sequence[Any] | None], str]:
        """A function that writes values as PostgreSQL's array literal; no values are an empty array."""
        return lambda values: written(self.kind, values or ())
