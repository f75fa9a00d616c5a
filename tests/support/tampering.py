"""What somebody does to a store who owns its database."""

from __future__ import annotations

from sqlalchemy import text

from receipts.store.address import address
from receipts.store.database import connect


def tamper(url: str, *statements: str) -> None:
    """Run statements as somebody would who owns the database: no trigger, no key holds them back."""
    engine = connect(address(url))
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection:
        if sqlite:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("PRAGMA foreign_keys = OFF")  # which does nothing inside a transaction
            dropped = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            kept = connection.exec_driver_sql(dropped).all()
            for name, _ in kept:
                connection.exec_driver_sql(f"DROP TRIGGER {name}")
        else:
            connection.exec_driver_sql("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(text(statement))
        for _, made in kept if sqlite else []:
            connection.exec_driver_sql(made)
        connection.commit()
    engine.dispose()
