"""A store that somebody else holds locked is given up after a while, and the caller may spool."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from receipts.base.errors import StoreError, Unreachable
from receipts.receipt import Document
from receipts.store import database, open_store
from receipts.store.sql import sqlite
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, raw


@contextmanager
def _locked(url: str) -> Iterator[None]:
    if url.startswith("postgresql"):
        with psycopg.connect(url.replace("+psycopg", "")) as other:
            other.execute("LOCK TABLE receipts IN ACCESS EXCLUSIVE MODE")
            yield
            other.rollback()
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_a_locked_store_is_given_up_and_takes_the_same_document_later(
    made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 1)
    monkeypatch.setitem(database._PATIENCE, "options", "-c lock_timeout=1s")
    document = Document(raw(), "run.json")
    kind = Unreachable if made_url.startswith("postgresql") else StoreError
    with open_store(made_url) as store:
        with _locked(made_url), pytest.raises(kind, match=r"has held the store .*(fuser \S+\.sqlite|pg_stat_activity)"):
            list(submit([document], store, RULEBOOK))
        (ended,) = submit([document], store, RULEBOOK)
        assert ended.submitted is not None
        assert ended.submitted.new
