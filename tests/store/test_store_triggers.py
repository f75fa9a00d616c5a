"""A trigger of the right name that holds nothing back is found."""

from __future__ import annotations

from sqlalchemy import text

from receipts.store import schema
from receipts.store.address import address
from receipts.store.database import connect, writing


def _run(url: str, *statements: str) -> None:
    engine = connect(address(url))
    with writing(engine) as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_triggers_of_a_store_are_those_that_it_was_made_with(made_url: str) -> None:
    assert schema.check(address(made_url)).problems == ()


def test_a_trigger_that_does_nothing_is_found(made_url: str) -> None:
    if made_url.startswith("postgresql"):
        idle = "CREATE OR REPLACE FUNCTION receipts_refuse() RETURNS trigger LANGUAGE plpgsql AS"
        _run(made_url, f"{idle} $$BEGIN RETURN NEW; END$$")
    else:
        idle = "CREATE TRIGGER pins_no_update BEFORE UPDATE ON pins WHEN 0 BEGIN SELECT 1; END"
        _run(made_url, "DROP TRIGGER pins_no_update", idle)
    (problem,) = schema.check(address(made_url)).problems
    assert "pins_no_update" in problem
    assert "missing or changed" in problem


def test_a_trigger_on_other_events_or_rows_is_found(made_url: str) -> None:
    if made_url.startswith("postgresql"):
        _run(made_url, "ALTER TABLE pins DISABLE TRIGGER pins_no_delete")
    else:
        _run(
            made_url,
            "DROP TRIGGER pins_no_delete",
            "CREATE TRIGGER pins_no_delete AFTER INSERT ON pins BEGIN SELECT 1; END",
        )
    (problem,) = schema.check(address(made_url)).problems
    assert "pins_no_delete" in problem
