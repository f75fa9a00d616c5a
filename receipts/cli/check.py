"""``receipts check`` and ``revalidate``: what the rules say of receipts that are given, and of those that are stored.

``check`` stores nothing; ``revalidate`` runs the present rule set over the store.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from receipts.base.units import moment
from receipts.cli import output
from receipts.cli.compare import GRADE
from receipts.cli.session import Answer, Session, each, fetch, is_file, verb, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.axes.lane import Grade
    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.publish.page import Page
    from receipts.receipt import Parsed
    from receipts.store import Store
    from receipts.workflows.revalidate import Rejudged, Tally


@verb("check")
@click.argument("receipts", nargs=-1, required=True, metavar="FILE|ID…")
@click.option(
    "--witness", multiple=True, metavar="FILE|ID", help="A launch that witnesses one of these (run.witness_for)."
)
@GRADE
@click.option("--quiet", "-q", is_flag=True, help="Print one line for each receipt.")
@click.option("--missing", is_flag=True, help="List what is missing, by weight, with what to do about it.")
def check(
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
    from receipts.publish.page import text
    from receipts.publish.verdict import line, page

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


@verb("revalidate")
@click.option("--since", metavar="WHEN", help="Only what was stored or judged since then: 2026-03-01, or 7d.")
@click.option("--lane", "lanes", multiple=True, metavar="GLOB", help="Only receipts of this lane; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print what would flip, and write nothing.")
def revalidate(session: Session, since: str | None, lanes: tuple[str, ...], dry_run: bool) -> Answer:
    """Judge stored receipts, comparisons and claims again under the current rules, and list what flipped and why.

    A flip is a change of status. It is printed with the findings that appeared or vanished, and their rules.

    Examples:
      receipts revalidate --dry-run
      receipts revalidate
      receipts revalidate --since 2026-03-01 --lane 'gb200-*'

    Earlier verdicts are kept. What was already judged under the current rule set is skipped, so after an interruption,
    run the same command again. A verdict that no seal holds, or that contradicts the one before it under the same
    rules, is judged again even so, because anyone who can write to the database can add one. At the end everything is
    sealed.

    Exit codes: 0 all that was valid, accepted or supported still is, 1 something no longer is, 2 wrong call,
    4 the store failed.
    """
    from receipts.publish.integrity import flipped, rejudged
    from receipts.workflows.revalidate import Revalidation, Tally

    begin = moment("--since", since) if since is not None else None
    tally = Tally()
    store = session.store
    for lane in lanes:
        _refuse_unknown_lane(lane, store, session)
    work = Revalidation(store, session.rulebook, begin, lanes, dry_run)
    progress = session.progress.of(work.count())
    for done, item in enumerate(work.run(), 1):
        tally.add(item)
        progress.at(done)
        if item.flipped and not session.as_json:
            progress.clear()
            output.show(flipped(item))
    rules = session.rulebook.rules.digest
    return Answer(
        lambda: _tally_data(tally, rules, dry_run),
        lambda: rejudged(tally, dry_run=dry_run),
        tally.exit_code,
        ("what quotes them: receipts impact ID",) if tally.exit_code else (),
    )


def _refuse_unknown_lane(lane: str, store: Store, session: Session) -> None:
    """Raise NotFound for a pattern that fits no declared lane and no receipt: a slip must not read as nothing to do."""
    import fnmatch

    from receipts.base.errors import NotFound, near
    from receipts.store import Condition, Filters

    names = session.rulebook.lanes.names()
    if fnmatch.filter(names, lane):
        return
    if next(store.find(Filters((Condition("lane", "=", lane),), superseded=True, limit=1)), None) is None:
        hint = near(lane, names)
        raise NotFound(f"--lane {lane}: no such lane is declared, and no receipt names it; see: receipts lanes{hint}")


def _tally_data(tally: Tally, rules: str, dry_run: bool) -> dict[str, Any]:
    return {
        "rules": rules,
        "dry_run": dry_run,
        "judged": tally.judged,
        "same": tally.same,
        "reworded": tally.reworded,
        "flipped": [_flip(item) for item in tally.flipped],
    }


def _flip(item: Rejudged) -> dict[str, Any]:
    row = asdict(item)
    return {"receipts": row.pop("names"), **row, "fell": item.fell}
