"""``receipts pin``: named references, usable wherever an id is."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb
from receipts.publish.page import Mark, table_of


@verb("pin")
@click.argument("name", required=False, metavar="[@NAME]")
@click.argument("receipt", required=False, metavar="[ID]")
@click.option("--note", help="Why it is pinned.")
@click.option("--remove", is_flag=True, help="Remove the pin; its history stays.")
def command(session: Session, name: str | None, receipt: str | None, note: str | None, remove: bool) -> Answer:
    """Pin a name to a receipt, list the pins, or show the history of one.

    Examples:
      receipts pin @golden 3f9c --note "grid baseline, no graphs"
      receipts compare @golden 81aa
      receipts pin                  (what is pinned)
      receipts pin @golden          (what it has pointed at)
      receipts pin @golden --remove
    """
    if remove and (receipt or not name):
        raise UsageError("--remove takes a name alone: receipts pin @golden --remove")
    bare = (name or "").removeprefix("@")
    if session.team is not None:
        pins = session.team.pins(bare, receipt, note, remove=remove)
    else:
        store = session.store
        if name and (receipt or remove):
            pins = [store.pin(bare, store.resolve(receipt) if receipt else None, note)]
        else:
            pins = store.pin_history(bare) if name else list(store.pins().values())
    rows = (
        (
            f"@{item.name}",
            (
                item.receipt[:12] if item.receipt else "removed",
                *((" ", Mark("no", item.withdrawn)) if item.withdrawn else ()),
            ),
            f"{item.at:%Y-%m-%d %H:%M}",
            item.actor or "",
            item.note or "",
        )
        for item in pins
    )
    empty = "nothing is pinned; receipts pin @golden ID"
    listed = table_of("", "pin | receipt | since, UTC | by | note", rows, empty=empty)
    return Answer([item._asdict() for item in pins], listed)
