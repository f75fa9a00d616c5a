"""The two engines of `store/sql` have one interface."""

from __future__ import annotations

import inspect

from receipts.store.sql.postgres import Postgres
from receipts.store.sql.sqlite import Sqlite


def interface(engine: type) -> dict[str, str]:
    """The public methods of a class with their parameters, annotations left out."""
    methods = inspect.getmembers(engine, inspect.isfunction)
    return {name: str(list(inspect.signature(method).parameters)) for name, method in methods if name[0] != "_"}


def test_the_engines_differ_in_no_method_and_no_parameter() -> None:
    assert interface(Sqlite)
    assert interface(Sqlite) == interface(Postgres)
