"""What the importers share: where receipts go, and the words for where they went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from receipts.base import files

if TYPE_CHECKING:
    from receipts.cli.session import Session
    from receipts.receipt import Document

SHOWN = 12  # lines of one kind; --json has them all
_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print the result of every record as JSON."),
    click.option("--submit", "submitting", is_flag=True, help="Store the receipts."),
    click.option(
        "--out", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write receipts here."
    ),
)


def to_receipts(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say where receipts go."""
    for option in _OPTIONS:
        function = option(function)
    return function


class Went(NamedTuple):
    """Where receipts went, in words, and whether the store took all that it was given."""

    where: str
    whole: bool = True


def send(
    session: Session,
    documents: Sequence[Document],
    out: Path | None,
    submitting: bool,
    written: Mapping[str, bytes] | None = None,
) -> Went:
    """Write receipts as ``written`` names their files, else by their ids, and submit documents, where it is asked."""
    where = ""
    if out is not None:
        # By its id a file has the same name whenever it is written.
        named = {f"{item.id[:16]}.json": item.raw for item in documents} if written is None else written
        files.write_folder(out, named, over=True)
        where = f", written to {out}"
    if not submitting:
        return Went(where)
    stored = session.submit_all(documents)
    return Went(f"{where}, {stored} in the store", stored == len(documents))
