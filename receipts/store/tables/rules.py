"""What each table declares of its rows: triggers, grants, seals and imports are derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Table

Role = Literal["submitter", "decider", "owner"]


@dataclass(frozen=True, slots=True)
class TableRules:
    """How rows of a table are added, kept and sealed.

    `added_by` is the role with the fewest rights that may insert rows on PostgreSQL. `sealed` says whose seals cover
    a row: nobody's, this store's ("here"), or also those of the stores that it came from ("everywhere"). A seal does
    not cover `unsealed` columns: a column that is added later must be one. `rebuilt` rows follow from the documents;
    all others are append-only.
    """

    added_by: Role
    sealed: Literal["", "here", "everywhere"] = ""
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
