"""What the importers share: where receipts go, what is printed of them, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base import files
from receipts.cli import output

if TYPE_CHECKING:
    from receipts.base.errors import Problem
    from receipts.cli.output import Shown
    from receipts.cli.session import Session
    from receipts.receipt import Document

_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print the result of every record as JSON."),
    click.option("--submit", "submitting", is_flag=True, help="Store the receipts."),
    click.option(
        "--out", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write receipts here."
    ),
)


class Destination(NamedTuple):
    """Where a call wants its receipts: in a folder, in the store, as JSON."""

    out: Path | None
    submitting: bool
    as_json: bool


def to_receipts(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say where receipts go; it takes them as one ``to``."""

    @wraps(command)
    def call(*given: Any, out: Path | None, submitting: bool, as_json: bool, **options: Any) -> int:
        return command(*given, to=Destination(out, submitting, as_json), **options)

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
) -> int:
    """Write receipts as ``written`` names their files, else by their ids, submit them, and print the answer.

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
        stored = session.submit_all(documents)
        where, whole = f"{where}, {stored} in the store", stored == len(documents)
    for name, problems in refused:
        whole = False
        output.note(f"{name}: {'; '.join(map(str, problems))}")
    output.answer(to.as_json, data, lambda: shown(where))
    return 0 if whole else 2
