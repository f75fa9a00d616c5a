"""``receipts check``: what the rules say of a receipt, without storing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, fetch, is_file, worst
from receipts.cli.sides import GRADE
from receipts.cli.verb import each, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.axes.lane import Grade
    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.publish.page import Page
    from receipts.receipt import Parsed
    from receipts.store import Store


@verb("check")
@click.argument("receipts", nargs=-1, required=True, metavar="FILE|ID…")
@click.option(
    "--witness", multiple=True, metavar="FILE|ID", help="A launch that witnesses one of these (run.witness_for)."
)
@GRADE
@click.option("--quiet", "-q", is_flag=True, help="Print one line for each receipt.")
@click.option("--missing", is_flag=True, help="List what is missing, by weight, with what to do about it.")
def command(
    session: Session, receipts: tuple[str, ...], witness: tuple[str, ...], grade: Grade, quiet: bool, missing: bool
) -> int:
    """Check receipts against the rules of their lanes, and store nothing.

    Prints all errors of all documents. A profiled launch among them is the witness of the launch that it names. The
    store, if there is one, is also searched for witnesses, successors, earlier failures and sustained shapes.

    Examples:
      receipts check run.json
      receipts check *.json --json
      receipts check run.json --missing
      receipts check run.json --witness profile.json
      receipts check 3f9c

    Findings: E makes a receipt invalid, I leaves a question open, W is a warning; receipts rules CODE explains one.
    Exit codes: 0 valid, 1 invalid, 2 not a receipt, 3 open (path, steps or a needed fact not evidenced).
    """
    from dataclasses import replace

    from receipts.api.comparison import refuse_strangers
    from receipts.base.errors import InputError, NotFound, near
    from receipts.judging.judge import judge_receipt
    from receipts.judging.verdict import verdict_to_json
    from receipts.publish.check import line, page
    from receipts.publish.page import text

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
    # Where nothing is left to judge, no store is asked, and none need be there.
    store = None if not given else session.known if all(map(is_file, (*receipts, *witness))) else session.store
    lanes, rules = session.rulebook.lanes, session.rulebook.rules
    known = [replace(facts, grade=grade) for facts in _facts(given, witnesses, store)]
    replaced = {name: words for facts in known for name, words in facts.superseded.items()}
    judged = (
        (item, judge_receipt(item, lanes.of(item.receipt.run.lane), rules, facts, prove=session.as_json))
        for item, facts in zip(given, known, strict=True)
    )

    def shown(judged: tuple[Parsed, ReceiptVerdict]) -> Page | str:
        item, verdict = judged
        if quiet:
            return text(line(verdict, replaced.get(item.id)))
        lane = item.receipt.run.lane
        undeclared = (lane, near(lane, lanes.names())) if lane not in lanes.names() else None
        return page(verdict, item.source, missing=missing, undeclared=undeclared, replaced=replaced.get(item.id))

    verdicts = each(session, judged, lambda pair: verdict_to_json(pair[1]), shown)
    return 2 if refused else worst(verdict.status for _, verdict in verdicts)


def _facts(given: Sequence[Parsed], witnesses: Sequence[Parsed], store: Store | None) -> list[Facts]:
    """What rules may know of each receipt: what those given say of one another, and a store where there is one."""
    from dataclasses import replace
    from datetime import UTC, datetime

    from receipts.judging.facts import Facts

    every = [*given, *witnesses]
    among = replace(Facts.among(every), now=datetime.now(UTC))
    if store is None or not given:
        return [among] * len(given)
    known = [store.query.facts(item) for item in given]
    return [
        replace(
            item,
            superseded={**among.superseded, **item.superseded},
            at_once={**among.at_once, **item.at_once},
            resumed={**among.resumed, **item.resumed},
            witnesses=tuple({one.id: one for other in known for one in other.witnesses}.values()),
            sides={name: sides for other in known for name, sides in other.sides.items()},
        ).beside(every)
        for item in known
    ]
