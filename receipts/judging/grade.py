"""Grades of evidence: what a receipt's word rests on. They follow from what it holds, and nobody types them.

``typed``      a person wrote it, quoted it or edited it; so is every published or imported row
``recorded``   a program wrote it while it ran, or from the run's own logs, and nobody edited it since
``evidenced``  and a reader read what witnesses the path from files whose digests it lists
``kept``       and those files are kept by the store

A grade says nothing of who vouches for it: that is a signature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from receipts.axes.lane import Grade
from receipts.receipt.parse import intact
from receipts.receipt.route import WITNESSED

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.receipt import Parsed

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)


class Graded(NamedTuple):
    """A grade, and what it lacks for the next one."""

    grade: Grade
    why: str


def wanted(parsed: Parsed, lane: Lane) -> Grade:
    """The grade that a lane asks of a launch; of one that failed, was not measured or is older, none."""
    run, since = parsed.receipt.run, lane.grade_since
    asked_for = run.outcome == "ok" and run.provenance == "measured" and (since is None or run.started.date() >= since)
    return lane.grade if asked_for else "typed"


def graded(own: Parsed, seen: Parsed, lane: Lane, kept: Collection[str] = ()) -> Graded:
    """The grade of a receipt; ``seen`` is it with what its witnesses lend, ``kept`` the digests that a store keeps."""
    run = own.receipt.run
    if run.provenance != "measured":
        return Graded("typed", f"its numbers are {run.provenance}")
    state = intact(own)
    if state is None:
        return Graded("typed", "no program says that it wrote it")
    if not state:
        return Graded("typed", "it was edited after its program wrote it")
    missing = [name for name in lane.witness if _witnessed(seen, name) is None]
    if missing:
        return Graded("recorded", f"nothing shows {', '.join(missing)}")
    by_job = unread(seen, lane)
    if lane.never_witnessed or by_job:
        sources = (run.recorded.sources if run.recorded is not None else None) or {}
        who = {sources.get(f"{WITNESSED}.{name}", "caller") == "caller" for name in by_job}
        by = "the job and probes" if len(who) > 1 else "probes" if who == {False} else "the job"
        return Graded("recorded", f"stated by {by}, and read from no file: {', '.join(by_job)}")
    gone = sorted({digest for digest, _ in _records(seen, lane) if digest not in kept})
    if gone:
        return Graded("evidenced", f"{len(gone)} of the files that show its path are not kept")
    return Graded("kept", "")


def unread(parsed: Parsed, lane: Lane) -> tuple[str, ...]:
    """Leaves of the witnessed path that the lane wants seen, and that no reader read from a listed file."""
    read = {path for _, path in _records(parsed, lane)}
    return tuple(
        name for name in lane.witness if _witnessed(parsed, name) is not None and f"{WITNESSED}.{name}" not in read
    )


def _records(parsed: Parsed, lane: Lane) -> Iterator[tuple[str, str]]:
    """Digest and leaf, for every leaf of the lane's path that a listed file showed to a reader."""
    wanted = {f"{WITNESSED}.{name}" for name in lane.witness}
    for entry in parsed.receipt.evidence or ():
        for path in entry.read or ():
            if entry.sha256 and path in wanted:
                yield entry.sha256, path


def _witnessed(parsed: Parsed, name: str) -> object:
    # From the model: an empty map of fallbacks is a statement, and has no leaf of its own.
    path = parsed.receipt.path
    return getattr(path.witnessed, name, None) if path is not None and path.witnessed is not None else None
