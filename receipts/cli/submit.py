"""``receipts submit``: check receipts and keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, from_stdin, pass_session

if TYPE_CHECKING:
    from receipts.submit import Outcome
    from receipts.verdict import Status

EPILOG = """\b
Examples:
  receipts submit run.json
  receipts submit runs/*.json --require valid
  ssh node cat run.json | receipts submit -

Exit codes: 0 stored, whatever its status, which is printed (with --require valid: 1 invalid, 3 unwitnessed),
2 some document was refused (every other one is stored), 4 the store failed."""


@click.command("submit", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE…|-")
@click.option("--require", type=click.Choice(["valid"]), help="Let the status decide the exit code as well.")
@click.option("--json", "as_json", is_flag=True, help="Print what became of each document as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
@pass_session
def command(session: Session, files: tuple[str, ...], require: str | None, as_json: bool, quiet: bool) -> int:
    """Check receipts and keep them in the store. `-` is standard input.

    A receipt that is invalid, or that tells of a failure, is kept all the same: only what is not a receipt is
    refused, with every error at once. Submitting the same bytes again is harmless.
    """
    from receipts.submit import exit_code, submit

    documents = [from_stdin() if word == "-" else word for word in files]
    wanted: Status | None = "valid" if require else None
    outcomes = []
    progress = output.Progress(len(documents), answers=not (quiet or as_json))
    with session.open_store(create=True) as store:
        for item in submit(documents, store, session.rulebook):
            outcomes.append(item)
            progress.at(len(outcomes))
            if item.error is not None:
                progress.clear()
                output.refuse(item.error)
            elif not quiet and not as_json:
                print_outcome(item)
    progress.clear()
    if as_json:
        output.as_json([_as_data(item) for item in outcomes])
    return exit_code(outcomes, wanted)


def print_outcome(item: Outcome) -> None:
    """One stored receipt in one line, and what it replaced."""
    if item.submitted is None or item.parsed is None:
        return
    stored = item.submitted
    again = "" if stored.new else f"  already stored {stored.at:%Y-%m-%d %H:%M} UTC"
    output.line(
        f"{stored.id[:12]}  {output.paint(stored.status, stored.status)}  {output.clean(item.parsed.name)}{again}"
    )
    for replaced in stored.superseded:
        output.line(f"  supersedes {replaced[:12]}")
    if not stored.stands:
        output.line("  it no longer stands: a later receipt replaced it, or it was retracted")


def _as_data(item: Outcome) -> dict[str, object]:
    if item.submitted is None:
        return {"source": item.source, "error": str(item.error)}
    stored = item.submitted
    return {
        "source": item.source,
        "id": stored.id,
        "new": stored.new,
        "status": stored.status,
        "submitted_at": stored.at.isoformat(),
        "superseded": list(stored.superseded),
        "stands": stored.stands,
    }
