"""``receipts show``: one receipt, headed by the five answers."""

from __future__ import annotations

import sys

import click

from receipts.cli import output
from receipts.cli.session import Session, is_file, named, parsed_file
from receipts.cli.verb import verb


@verb("show")
@click.argument("receipt", metavar="ID|FILE")
@click.option("--facts", "all_facts", is_flag=True, help="Also list every stated leaf.")
@click.option("--verbose", "-v", "opened", is_flag=True, help="Show every finding in full, and memory by chip.")
@click.option("--raw", is_flag=True, help="Print the document's bytes as they came.")
@click.option("--envelope", is_flag=True, help="Print the DSSE envelope: the document with its signatures.")
def command(session: Session, receipt: str, all_facts: bool, opened: bool, raw: bool, envelope: bool) -> int:
    """Show one receipt: what ran, where, on which path, what was measured, and the rules' verdict.

    Examples:
      receipts show 3f9c
      receipts show @golden --facts
      receipts show run.json
      receipts show 3f9c --raw > run.json
    """
    from receipts.api.receipt import Receipt
    from receipts.api.store import Store

    if session.team is not None and not is_file(receipt):
        return session.team.show(receipt, facts=all_facts, opened=opened, raw=raw, as_json=session.as_json)
    if envelope:
        return _print_envelope(session, receipt)
    rulebook = session.rulebook
    if is_file(receipt):
        parsed = parsed_file(receipt)
        known = session.known if not raw else None
        receipts = [Receipt(parsed, rulebook, known.query.facts(parsed)) if known else Receipt(parsed, rulebook)]
    else:
        store = session.opened(looked_up=[receipt])
        receipts = [Store(store, rulebook).get(one.id) for one in named(store, receipt)]
    for item in receipts:
        if raw:
            _print_raw(item.raw)
        elif session.as_json:
            output.line(item.to_json())
        else:
            output.show(item.page(stated=all_facts), opened=opened)
    return 0


def _print_raw(document: bytes) -> None:
    """The bytes as they came; on a terminal, made harmless for it."""
    if sys.stdout.isatty():
        output.line("\n".join(output.clean(part) for part in document.decode().splitlines()))
    else:
        sys.stdout.buffer.write(document)


def _print_envelope(session: Session, word: str) -> int:
    store = session.opened(looked_up=[word])
    receipt = store.resolve(word)
    envelope = store.signing.envelope(receipt, store.document(receipt))
    if envelope is None:
        output.note(f"{receipt[:12]} is not signed; receipts submit FILE --sign KEY signs it")
        return 3
    output.line(envelope.to_json().rstrip("\n"))
    return 0
