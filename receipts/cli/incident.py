"""``receipts incident``: incidents that watch opened, and closing one."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts incident list
  receipts incident list --all --json
  receipts incident close 4f2a --reason "expected: the new data mix"

An incident that is closed is not opened again for the same change point."""


@click.group("incident", epilog=EPILOG)
def command() -> None:
    """List the incidents that watch opened, or close one."""


LIST_EPILOG = """\b
Examples:
  receipts incident list
  receipts incident list --all --json"""


@command.command("list", epilog=LIST_EPILOG)
@click.option("--all", "every", is_flag=True, help="Closed ones too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_session
def list_(session: Session, every: bool, as_json: bool) -> int:
    """List incidents, open ones first."""
    from receipts.publish.history import incidents
    from receipts.questions.history.watch import most_recent

    with session.open_store() as store:
        shown = [item for item in most_recent(store.published.incidents()) if every or item.closed is None]
    output.answer(as_json, [item._asdict() for item in shown], incidents(shown))
    return 0


CLOSE_EPILOG = """\b
Examples:
  receipts incident close 4f2a --reason "expected: the new data mix"

The id may be shortened while it names one incident."""


@command.command("close", epilog=CLOSE_EPILOG)
@click.argument("incident", metavar="ID")
@click.option("--reason", required=True, help="Why; it stays with the incident.")
@pass_session
def close(session: Session, incident: str, reason: str) -> int:
    """Close an incident, with the reason."""
    from receipts.questions.history import watch

    with session.open_store() as store:
        closed = watch.close(store, incident, reason)
    output.line(f"closed {closed.id}: {reason}")
    return 0
