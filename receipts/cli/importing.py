"""What the importers share: where receipts go, what is printed of them, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base import files
from receipts.cli import output
from receipts.cli.verb import Answer

if TYPE_CHECKING:
    from receipts.base.errors import Problem
    from receipts.cli.output import Shown
    from receipts.cli.session import Session
    from receipts.receipt import Document

_OPTIONS = (
    click.option("--submit", "submitting", is_flag=True, help="Store the receipts."),
    click.option(
        "--out", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write receipts here."
    ),
)


class Destination(NamedTuple):
    """Where a call wants its receipts: in a folder, in the store."""

    out: Path | None
    submitting: bool


def to_receipts(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Give a command the options that say where receipts go; it takes them as one ``to``."""

    @wraps(command)
    def call(*given: Any, out: Path | None, submitting: bool, **options: Any) -> Answer:
        return command(*given, to=Destination(out, submitting), **options)

    for option in _OPTIONS:
        call = option(call)
    return call


def deliver(
    session: Session,
    documents: Sequence[Document],
    refused: Iterable[tuple[str, Sequence[Problem]]],
    to: Destination,
    data: Callable[[], Any],
    shown: Callable[[str], Shown],
    written: Mapping[str, bytes] | None = None,
) -> Answer:
    """Write receipts as ``written`` names their files, else by their ids, submit them, and give the answer.

    ``shown`` makes it of the words that say where they went. Records that are ``refused`` are named on standard error;
    the exit code is 2 if there are any, or if the store does not take all that it is given.
    """
    where, whole = "", True
    if to.out is not None:
        # By its id a file has the same name whenever it is written.
        named = {f"{item.id[:16]}.json": item.raw for item in documents} if written is None else written
        files.write_folder(to.out, named, over=True)
        where = f", written to {to.out}"
    if to.submitting:
        stored = _submit(session, documents)
        where, whole = f"{where}, {stored} in the store", stored == len(documents)
    for name, problems in refused:
        whole = False
        output.note(f"{name}: {'; '.join(map(str, problems))}")
    return Answer(data, lambda: shown(where), 0 if whole else 2)


def _submit(session: Session, documents: Sequence[Document]) -> int:
    """Submit documents, print why any is refused, and seal what is new; gives how many the store holds."""
    from receipts.workflows.submit import submit

    stored, store = 0, session.opened(create=True)
    for outcome in submit(documents, store, session.rulebook):
        stored += outcome.stored
        if outcome.error is not None:
            output.note(str(outcome.error))
    if stored > 1:
        store.seal()
    return stored
