"""``receipts verify``: the files of evidence, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, is_file, named, parsed_file, pass_session

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store.kept import KeptFiles

EPILOG = """\b
Examples:
  receipts verify run.json --evidence outputs/
  receipts verify 3f9c
  receipts verify --all

same: as the receipt says; other: not so; missing: no file with that digest is given or kept; more: today's readers
read a leaf that the receipt does not state.
Exit codes: 0 all same, 1 something is other, 2 wrong call, 3 a file is missing."""


@click.command("verify", epilog=EPILOG)
@click.argument("receipts", nargs=-1, metavar="ID|FILE…")
@click.option("--evidence", metavar="FILE|FOLDER", type=click.Path(exists=True, path_type=Path), help="Files to read.")
@click.option("--all", "every", is_flag=True, help="Every receipt of the store.")
@click.option("--json", "as_json", is_flag=True, help="Print every check as JSON.")
@click.option("--verbose", "-v", "opened", is_flag=True, help="Print also what is the same.")
@pass_session
def command(
    session: Session, receipts: tuple[str, ...], evidence: Path | None, every: bool, as_json: bool, opened: bool
) -> int:
    """Read the evidence of receipts again: bytes against the id, files against digests, leaves against the readers."""
    from receipts.workflows.verify import by_digest, verify

    if bool(receipts) == every:
        raise UsageError("name receipts, or --all for every receipt of the store")
    files = by_digest(evidence) if evidence is not None else {}
    code, rows = 0, []
    for parsed, kept in _chosen(session, receipts, every=every):
        done = verify(parsed, session.rulebook.lanes.of(parsed.receipt.run.lane), files, kept)
        code = 1 if 1 in (code, done.exit_code) else max(code, done.exit_code)
        if as_json:
            checks = [item._asdict() for item in done.checks]
            rows.append({"receipt": done.receipt, "name": done.name, "checks": checks})
            continue
        words = [item.word for item in done.checks]
        counts = " · ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        output.line(f"{done.receipt[:12]}  {output.clean(done.name)}: {counts}")
        for item in done.checks:
            if opened or item.word != "same":
                output.wrapped(output.clean(f"{item.word} {item.what}{': ' if item.why else ''}{item.why}"), 2, 4)
    if as_json:
        output.as_json(rows)
    return code


def _chosen(session: Session, words: tuple[str, ...], *, every: bool) -> Iterator[tuple[Parsed, KeptFiles | None]]:
    """The receipts, one at a time, each with the kept files of the store that holds it."""
    from receipts.store.kept import kept_files

    if not every and all(map(is_file, words)) and not session.asks_store:
        yield from ((parsed_file(word), None) for word in words)
        return
    with session.open_store(looked_up=words) as store:
        kept = kept_files(store.database.address)
        if every:
            yield from ((store.parsed(item), kept) for item in store.ids())
            return
        for word in words:
            yield from ((item, kept) for item in ([parsed_file(word)] if is_file(word) else named(store, word)))
