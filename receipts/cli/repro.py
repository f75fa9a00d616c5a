"""``receipts repro``: what it takes to run a receipt again."""

from __future__ import annotations

from dataclasses import asdict

import click

from receipts.cli.session import Session, is_file, one, parsed_file
from receipts.cli.verb import Answer, verb


@verb("repro")
@click.argument("receipt", metavar="ID|FILE")
def command(session: Session, receipt: str) -> Answer:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state.

    Examples:
      receipts repro 3f9c
      receipts repro @golden > again.sh
    """
    from receipts.questions.repro import recipe

    if is_file(receipt):
        parsed = parsed_file(receipt)
    else:
        parsed = one(session.opened(looked_up=[receipt]), receipt)
    steps = recipe(parsed)
    return Answer({"id": parsed.id, **asdict(steps)}, steps.script)
