"""``receipts pin``, ``decide``, ``retract`` and ``purge``: what people decide on a stored receipt.

A pin is a name, usable wherever an id is. A decision and a retraction are shown wherever the receipt is quoted; a
purged receipt is erased.
"""

from __future__ import annotations

import json
from datetime import datetime

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import Mark, Page, sections_of, table_of


@verb("pin")
@click.argument("name", required=False, metavar="[@NAME]")
@click.argument("receipt", required=False, metavar="[ID]")
@click.option("--note", help="Why it is pinned.")
@click.option("--remove", is_flag=True, help="Remove the pin; its history stays.")
def pin(session: Session, name: str | None, receipt: str | None, note: str | None, remove: bool) -> Answer:
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
    if session.server is not None:
        from receipts.store import Pin

        path = f"/v1/pins/{bare}" if bare else "/v1/pins"
        if receipt:
            body = {"receipt": receipt, **({"note": note} if note else {})}
            answered = session.server.ask("PUT", path, body=json.dumps(body).encode())
        else:
            answered = session.server.ask("DELETE" if remove else "GET", path)
        pins = [Pin(**{**item, "at": datetime.fromisoformat(item["at"])}) for item in answered.data]
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


@verb("decide")
@click.argument("receipt", metavar="ID")
@click.argument("decision", required=False, type=click.Choice(["ship", "hold", "drop"]))
@click.option("--reason", help="Why; shown wherever the receipt is quoted.")
def decide(session: Session, receipt: str, decision: str | None, reason: str | None) -> Answer:
    """Record a decision about a receipt, or show earlier ones.

    Examples:
      receipts decide 3f9c drop --reason "faster, and the loss parts after 200 steps"
      receipts decide @golden ship --reason "validated on both hosts"
      receipts decide 3f9c          (what was decided on it)

    Nothing is overwritten: every decision is kept, and the last one counts.
    """
    from receipts.publish.verdict import decision_sentence, decisions

    if (decision is None) is not (reason is None):
        raise UsageError('a decision and its reason go together: receipts decide ID ship|hold|drop --reason "…"')
    stored = session.store.resolve(receipt)
    published = session.store.published
    if decision is not None and reason is not None:
        published.decide(stored, decision, reason)
    record = published.decisions([stored])
    name = stored[:12]
    answer = f"{name}: {decision_sentence(record[-1])}" if record else f"nothing was decided on {name}"
    earlier = decisions(record[:-1] if decision is None else ())
    return Answer([item._asdict() for item in record], Page(name, (answer,), sections=sections_of(earlier)))


@verb("retract")
@click.argument("receipt", metavar="ID|CONDITIONS")
@click.option("--reason", required=True, help="The reason; shown wherever the receipt is quoted.")
@click.option("--withdraw", is_flag=True, help="Withdraw its retraction: the receipt counts again.")
@click.option("--yes", is_flag=True, help="Do not ask before more than one.")
def retract(session: Session, receipt: str, reason: str, withdraw: bool, yes: bool) -> Answer:
    """Retract a receipt. It stays in the store with the reason, and comparisons no longer accept it.

    Examples:
      receipts retract 3f9c --reason "never ran: the log is of another job"
      receipts retract 3f9c --withdraw --reason "it did run: the log was the right one"
      receipts retract 'submitted>=2026-03-08 actor=user:ana' --reason "the wrong folder"

    Conditions, as of receipts list, name several: those of one submit, for example. To replace a receipt by a better
    one of the same launch, submit the better one with run.supersedes. See: receipts help which
    """
    store = session.store
    several = any(sign in receipt for sign in "=<>")
    ids = store.resolve_all(receipt) if several else [store.resolve(receipt)]
    shown = f"{len(ids):,} receipts" if len(ids) > 1 else ids[0][:12]
    if len(ids) > 1 and not yes and not _agreed(f"{'Reinstate' if withdraw else 'Retract'} {shown}?"):
        return Answer([], code=1, notes=("nothing was changed",))
    for number, item in enumerate(ids, 1):
        (store.reinstate if withdraw else store.retract)(item, reason)
        session.progress.at(number, len(ids))
    data = [{"id": item, "retracted": not withdraw, "reason": reason} for item in ids]
    text = f"{shown} {'stand' if len(ids) > 1 else 'stands'} again" if withdraw else f"retracted {shown}"
    return Answer(data if several else data[0], f"{text}: {reason}")


@verb("purge")
@click.argument("receipt", metavar="ID")
@click.option("--reason", required=True, help="Why; kept with the id.")
@click.option("--yes", is_flag=True, help="Do not ask. There is no way back.")
def purge(session: Session, receipt: str, reason: str, yes: bool) -> Answer:
    """Erase a receipt for good, for a leaked secret. Its id, the reason and the time stay.

    Examples:
      receipts purge 3f9c --reason "the command line held a token" --yes
    """
    from receipts.receipt.parse import listed_digests
    from receipts.store.evidence import forget

    store = session.store
    stored = store.resolve(receipt)
    if not yes and not _agreed(f"Erase {stored[:12]} and every verdict on it? There is no way back."):
        return Answer({"id": stored, "purged": False}, code=1, notes=("nothing was erased",))
    files = listed_digests(store.parsed(stored))
    store.purge(stored, reason)
    forget(store, files)
    data = {"id": stored, "purged": True, "reason": reason}
    note = "copies and backups made before still hold it"
    return Answer(data, f"purged {stored[:12]}: {reason}", notes=(note,))


def _agreed(asked: str) -> bool:
    try:
        return click.confirm(asked, err=True)
    except click.Abort:
        raise UsageError("nobody answered and nothing was changed; add --yes where nobody can") from None
