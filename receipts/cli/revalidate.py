"""``receipts revalidate``: what the present rules say of the receipts, comparisons and claims that are stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from receipts.base.units import moment
from receipts.cli import output
from receipts.cli.session import Answer, Session, verb

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.workflows.revalidate import Rejudged, Tally


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
