"""What tables are made of: the store's metadata, its types, columns that say what they hold, and the rules of a table.

Triggers, grants, seals and imports are derived from the rules that each table declares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, CreateTable

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect


Role = Literal["submitter", "decider", "owner"]


@dataclass(frozen=True, slots=True)
class TableRules:
    """How rows of a table are added, kept and sealed.

    `added_by` is the role with the fewest rights that may insert rows on PostgreSQL. `sealed` says whether seals cover
    a row. They do not cover `unsealed` columns: a column that is added later must be one. `rebuilt` rows follow from
    the documents; all others are append-only.
    """

    added_by: Role
    sealed: bool = False
    unsealed: frozenset[str] = frozenset()
    rebuilt: bool = False

    @property
    def info(self) -> dict[str, TableRules]:
        """The rules as `info` of a table."""
        return {"rules": self}


def rules_of(table: Table) -> TableRules:
    """The rules that a table declares."""
    declared: TableRules = table.info["rules"]
    return declared


def content_columns(table: Table) -> tuple[str, ...]:
    """Columns that mean the same in every store: all but the row's number, in their order."""
    return tuple(column.name for column in table.columns if column.name != "seq")


class _Utc(TypeDecorator[datetime]):
    """A moment with its zone, `timestamptz`; always read back in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    # Processors of its own: those that SQLAlchemy wraps around a type's take several times as long over each moment.

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any] | None:
        return _utc

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None] | None:
        return _utc


class _UtcText(_Utc):
    """The same as ISO text in UTC, for an engine that has no such type."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any] | None:
        return _text

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None] | None:
        return _moment


def _text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


Utc = _Utc().with_variant(_UtcText(), "sqlite")
# Byte order on both engines, so that prefixes are ranges and lists come in one order whatever the server's locale.
Words = String().with_variant(String(collation="C"), "postgresql")
Number = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)


def key(comment: str) -> Column[int]:
    return Column("seq", Number, primary_key=True, autoincrement=True, comment=comment)


def part_of(name: str, table: str, comment: str, *, cascade: bool = False) -> Column[int]:
    """The number of a row of another table, as the key of rows that belong to it; ``cascade`` deletes them with it."""
    other = ForeignKey(f"{table}.seq", ondelete="CASCADE" if cascade else None)
    return Column(name, Number, other, primary_key=True, autoincrement=False, comment=comment)


def packed(comment: str) -> tuple[Column[str], Column[bytes]]:
    body = Column("body", LargeBinary, nullable=False, comment=f"{comment}, packed")
    return words("codec", "How body is packed: zlib", required=True), body


def words(name: str, comment: str, *, required: bool = False, of: str = "") -> Column[str]:
    """A column of text; ``of`` is the table whose ids it holds, where an audit reports one that is gone."""
    return Column(name, Words, nullable=not required, comment=comment, info={"of": of} if of else None)


def number(name: str, comment: str, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=not required, comment=comment)


def moment(name: str, comment: str, *, required: bool = True) -> Column[datetime]:
    return Column(name, Utc, nullable=not required, comment=comment)


def actor() -> Column[str]:
    """Who caused a row; null where it came from a store that did not record it."""
    return words("actor", "Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)")


@compiles(CreateColumn, "sqlite")
def _column_with_comment(element: Any, compiler: Any, **kw: Any) -> str:
    """SQLite keeps no comments but the text of CREATE TABLE, so that `.schema` shows them there."""
    text: str = compiler.visit_create_column(element, **kw)
    comment = element.element.comment
    return f"{text} /* {comment} */" if text and comment else text


@compiles(CreateTable, "sqlite")
def _table_with_comment(element: Any, compiler: Any, **kw: Any) -> str:
    text: str = compiler.visit_create_table(element, **kw)
    comment = element.element.comment
    return text.replace("(", f"( /* {comment} */", 1) if comment else text
