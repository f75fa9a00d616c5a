"""``receipts db``: the store's schema."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts db check
  receipts --store lab.sqlite db upgrade"""


@click.group("db", epilog=EPILOG)
def command() -> None:
    """Upgrade or check the store's schema."""


@command.command("upgrade", epilog="\b\nExamples:\n  receipts db upgrade\n  receipts --store lab.sqlite db upgrade")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@pass_session
def upgrade(session: Session, as_json: bool) -> int:
    """Bring the store to this version's schema, all of it or nothing."""
    from receipts.store import schema
    from receipts.store.address import address

    done = schema.upgrade(address(session.store_url))
    if as_json:
        output.as_json(done._asdict())
    elif done.found == done.wanted:
        output.line(f"{done.store}: at schema {done.wanted} already")
    else:
        output.line(f"{done.store}: upgraded from {done.found or 'nothing'} to {done.wanted}")
    return 0


@command.command("check", epilog="\b\nExamples:\n  receipts db check\n  receipts db check --json")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@pass_session
def check(session: Session, as_json: bool) -> int:
    """Look the store over: schema, triggers, and the engine's own check. Exit code 1 where something is wrong."""
    from receipts.store import schema
    from receipts.store.address import address

    found = schema.check(address(session.store_url))
    if as_json:
        output.as_json(found._asdict())
    else:
        output.line(f"{found.store}: schema {found.found or 'unknown'}, {found.receipts:,} receipts")
        for problem in found.problems:
            output.wrapped(problem, 2, 4)
        if not found.problems:
            output.line("whole")
    return found.exit_code
