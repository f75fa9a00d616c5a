"""``receipts flush``: give a store what waited for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, pass_session

if TYPE_CHECKING:
    from receipts.workflows.spool import Flushed

EPILOG = """\b
Examples:
  receipts flush
  receipts --store postgresql+psycopg://me@db/receipts flush
  receipts flush --again

If a store's server does not answer, receipts submit keeps the documents on this machine: in the user's data folder, or
in the folder that RECEIPTS_SPOOL names. Flushing twice, or twice at the same time, stores each document once.

Exit codes: 0 all are stored, 2 some were refused and stay here with the reason, 4 the store still does not answer."""


@click.command("flush", epilog=EPILOG)
@click.option("--again", is_flag=True, help="Also retry documents that the store refused before.")
@click.option("--json", "as_json", is_flag=True, help="Print the result of each document as JSON.")
@pass_session
def command(session: Session, again: bool, as_json: bool) -> int:
    """Store every document that was kept on this machine while the store's server was down."""
    from receipts.workflows import spool

    target = session.target
    if target is None:
        return _elsewhere(as_json)
    done: list[Flushed] = []
    total = spool.count(target)
    progress = output.Progress(total, answers=not as_json)
    if total or again:
        with session.submitting() as submit:
            for item in spool.flush(submit, target, again=again):
                done.append(item)
                progress.at(len(done))
                if not as_json:
                    progress.clear()
                    _print(item)
        progress.clear()
    refused = spool.waiting(target, refused=True)
    if as_json:
        output.as_json(
            {"flushed": [_as_data(item) for item in done], "waiting": spool.count(target), "refused": len(refused)}
        )
    elif not done:
        output.line("nothing is waiting to be stored")
    if refused:
        where = spool.place(target) / spool.REFUSED
        output.note(f"{len(refused)} refused: they are kept in {where}; try them again with: receipts flush --again")
    torn = spool.damaged(target)
    for file in torn:
        output.note(f"{file}: it is damaged; look at it, then remove it")
    return 2 if torn or any(item.refused for item in done) else 0


def _elsewhere(as_json: bool) -> int:
    """The store is a file, for which nothing ever waits: say for which others something does."""
    from receipts.workflows import spool

    waiting = spool.others()
    if waiting:
        counts = ", ".join(f"{number} for {store}" for store, number in waiting.items())
        raise UsageError(f"documents wait for another store ({counts}); name it with --store, with user and password")
    output.answer(as_json, {"flushed": [], "waiting": 0, "refused": 0}, "nothing is waiting to be stored")
    return 0


def _print(item: Flushed) -> None:
    from receipts.cli.submit import print_outcome

    if item.outcome.error is not None:
        output.refuse(item.outcome.error)
    else:
        print_outcome(item.outcome)


def _as_data(item: Flushed) -> dict[str, object]:
    submitted = item.outcome.submitted
    tree: dict[str, object] = {"id": item.waiting.id, "source": item.waiting.source, "kept_at": item.waiting.at}
    if submitted is None:
        return {**tree, "error": item.refused}
    return {**tree, "new": submitted.new, "status": submitted.status, "submitted_at": submitted.at.isoformat()}
