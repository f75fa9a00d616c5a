"""``receipts check``: what the rules say of a receipt, without storing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, fetch, is_file, pass_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.receipt import Parsed

EPILOG = """\b
Examples:
  receipts check run.json
  receipts check *.json --json
  receipts check run.json --witness profile.json
  receipts check 3f9c

Findings: E makes a receipt invalid, I leaves a question open, W is a warning; receipts rules CODE explains one.
Exit codes: 0 valid, 1 invalid, 2 not a receipt, 3 open (path, steps or a needed fact not evidenced)."""


@click.command("check", epilog=EPILOG)
@click.argument("receipts", nargs=-1, required=True, metavar="FILE|ID…")
@click.option(
    "--witness", multiple=True, metavar="FILE|ID", help="A launch that witnesses one of these (run.witness_for)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print one line for each receipt.")
@pass_session
def command(session: Session, receipts: tuple[str, ...], witness: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Check receipts against the rules of their lanes, and store nothing.

    Prints all errors of all documents. A profiled launch among them is the witness of the launch that it names. With
    --store, or if a receipt is given by its id, the store is also searched for witnesses, successors and earlier
    failures.
    """
    from receipts.api.comparison import refuse_strangers
    from receipts.base.errors import InputError, NotFound
    from receipts.judging.judge import judge_receipt
    from receipts.judging.verdict_json import to_json

    given: list[Parsed] = []
    refused = 0
    for word in receipts:
        try:
            given += [item for group in fetch(session, [word]) for item in group]
        except (InputError, NotFound) as error:
            refused += 1
            output.refuse(error)
    witnesses = [item for group in fetch(session, witness) for item in group] if witness else []
    if not refused:
        refuse_strangers(witnesses, given)
    stored = session.asks_store or not all(map(is_file, (*receipts, *witness)))
    verdicts = [
        judge_receipt(
            item, session.rulebook.lanes.of(item.receipt.run.lane), session.rulebook.rules, facts, prove=as_json
        )
        for item, facts in zip(given, _facts(session, given, witnesses, stored=stored), strict=True)
    ]
    if as_json:
        output.as_json([to_json(item) for item in verdicts])
    else:
        for verdict in verdicts:
            print_verdict(verdict, quiet=quiet)
    return 2 if refused else worst(verdicts)


def _facts(session: Session, given: Sequence[Parsed], witnesses: Sequence[Parsed], *, stored: bool) -> list[Facts]:
    """What rules may know of each receipt: what those given say of one another, and a store where one is asked."""
    from dataclasses import replace
    from datetime import UTC, datetime

    from receipts.judging.facts import Facts

    every = [*given, *witnesses]
    among = replace(Facts.among(every), now=datetime.now(UTC))
    if not stored or not given:
        return [among] * len(given)
    with session.open_store() as store:
        known = [store.query.facts(item) for item in given]
    return [
        replace(
            item,
            superseded={**among.superseded, **item.superseded},
            at_once={**among.at_once, **item.at_once},
            resumed={**among.resumed, **item.resumed},
        ).beside(every)
        for item in known
    ]


def worst(verdicts: list[ReceiptVerdict]) -> int:
    """The exit code of several verdicts: invalid before open before valid."""
    from receipts.judging.verdict import EXIT

    codes = [EXIT[item.status] for item in verdicts]
    return 1 if 1 in codes else max(codes, default=0)


def print_verdict(verdict: ReceiptVerdict, *, quiet: bool = False) -> None:
    """One receipt's verdict; the last line carries the status."""
    from receipts.publish.findings import entries

    name = output.clean(verdict.label or verdict.receipt[:12])
    if not quiet:
        _head(name, f"{verdict.receipt[:12]}  {verdict.lane}")
        output.entries(entries(verdict.findings))
        if verdict.witnesses:
            output.wrapped(f"path witnessed by {', '.join(item[:12] for item in verdict.witnesses)}", 0)
    spoilt = f"tainted: {', '.join(verdict.tainted)}" if verdict.tainted else ""
    if spoilt and len(f"{verdict.status} · path {verdict.path} · {spoilt}") > output.width():
        output.line(spoilt)
        spoilt = ""
    spoilt = f" · {spoilt}" if spoilt else ""
    status = output.paint(verdict.status, verdict.status)
    lead = f"{name}: " if quiet else ""
    output.line(f"{lead}{status} · path {output.paint(verdict.path, verdict.path)}{spoilt}")


def _head(name: str, rest: str) -> None:
    """Name and identity in one line, or in two where they would not fit."""
    if len(name) + 2 + len(rest) > output.width():
        output.wrapped(name, 0)
        name = ""
    output.line(output.paint(f"{name}  {rest}".strip(), "head"))
