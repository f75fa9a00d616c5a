"""``receipts verify``: the files of evidence, read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session, is_file, named, parsed_file
from receipts.cli.verb import each, verb

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store.evidence import KeptFiles
    from receipts.workflows.verify import Verified


@verb("verify")
@click.argument("receipts", nargs=-1, metavar="ID|FILE…")
@click.option("--evidence", metavar="FILE|FOLDER", type=click.Path(exists=True, path_type=Path), help="Files to read.")
@click.option("--all", "every", is_flag=True, help="Every receipt of the store.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    metavar="N",
    help="With --all: how many processes; of many receipts, one a core.",
)
@click.option("--verbose", "-v", "opened", is_flag=True, help="Print also what is the same.")
def command(
    session: Session, receipts: tuple[str, ...], evidence: Path | None, every: bool, jobs: int | None, opened: bool
) -> int:
    """Read the evidence of receipts again: bytes against the id, files against digests, leaves against the readers.

    Examples:
      receipts verify run.json --evidence outputs/
      receipts verify 3f9c
      receipts verify --all

    same: as the receipt says; other: a file or reader shows something else; missing: no file with that digest is given
    or kept; more: today's readers read a leaf that the receipt does not state. Exit codes: 0 all same, 1 something is
    other, 2 wrong call, 3 a file is missing.
    """
    from receipts.publish.integrity import verified
    from receipts.workflows.verify import by_digest, code

    if bool(receipts) == every:
        raise UsageError("name receipts, or --all for every receipt of the store")
    files = by_digest(evidence) if evidence is not None else {}
    chosen = _chosen(session, receipts, files, jobs, every=every)
    return code(each(session, chosen, lambda item: item.as_data(), lambda item: verified(item, opened=opened)))


def _chosen(
    session: Session, words: tuple[str, ...], files: Mapping[str, Path], jobs: int | None, *, every: bool
) -> Iterator[Verified]:
    """The receipts, checked one at a time, each beside the kept files of the store that holds it."""
    from receipts.store.evidence import kept_files
    from receipts.workflows.verify import verify, verify_all

    def checked(items: Iterable[Parsed], kept: KeptFiles | None) -> Iterator[Verified]:
        return (verify(item, session.rulebook.lanes.of(item.receipt.run.lane), files, kept) for item in items)

    if not every and all(map(is_file, words)) and not session.asks_store:
        yield from checked(map(parsed_file, words), None)
        return
    if session.team is not None:
        local = ", ".join(filter(is_file, words))
        session.team.refuse({"--all": every, "--evidence": files, local: local})
        yield from session.team.verified(words)
        return
    store = session.opened(looked_up=words)
    if every:
        yield from verify_all(store, session.rulebook, files, jobs)
        return
    kept = kept_files(store.database.address)
    for word in words:
        yield from checked([parsed_file(word)] if is_file(word) else named(store, word), kept)
