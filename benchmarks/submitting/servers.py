"""A PostgreSQL of one's own for a benchmark, as the tests have it, but with every commit on the disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import postgres_proxy
import postgres_server

__all__ = ["NoPostgres", "new_database", "postgres_proxy", "server", "size"]

NoPostgres = postgres_server.NoPostgres


@contextmanager
def server() -> Iterator[str]:
    """The URL of a fresh server that waits for the disk. Raises NoPostgres where this machine has no binaries."""
    with postgres_server.running(durable=True) as url:
        yield url


def new_database(url: str, name: str) -> str:
    """Make an empty database; gives its URL."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return url.rpartition("/")[0] + "/" + name


def size(url: str) -> int:
    """Bytes of a database's tables with their indexes and what is stored beside them; or of a SQLite file."""
    if not url.startswith("postgresql"):
        return Path(url).stat().st_size
    import psycopg

    query = b"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(b"VACUUM")
        found = connection.execute(query + b"'public'::regnamespace").fetchone()
    return int(found[0]) if found else 0
