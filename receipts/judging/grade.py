"""Grades of a launch: what its receipt's word rests on, and whether it is a sample of a metric.

Grades of evidence follow from what a receipt holds, and cannot be typed:

``typed``      a person wrote it, quoted it or edited it; so is every published or imported row
``recorded``   a program wrote it while it ran, or from the run's own logs, and it was not edited since
``evidenced``  and a reader read what witnesses the path from files whose digests it lists
``kept``       and those files are kept by the store

A grade of evidence does not say who vouches for the receipt: a signature does. The grade of a sample says what rules
found of the launch, and whether it gives the metric a steady value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from receipts import metrics
from receipts.axes.lane import Grade
from receipts.judging.verdict import Finding, Level, Question, Status, path_answer, undecided
from receipts.metrics.launch import Launch
from receipts.metrics.registry import Metric, Taint
from receipts.receipt.document import UNFAILED
from receipts.receipt.names import WITNESSED
from receipts.receipt.parse import intact, listed_digests

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.receipt import Parsed


GRADES: Final[tuple[Grade, ...]] = get_args(Grade)


class Graded(NamedTuple):
    """A grade, and what it lacks for the next one."""

    grade: Grade
    why: str


# What a store took in up to this day keeps the day that it states as its start.
LAST_BY_START: Final = date(2026, 11, 28)


def wanted_grade(parsed: Parsed, lane: Lane, taken_in: datetime | None = None) -> Grade:
    """The grade that a lane asks of a launch; of one that failed or was not measured, none.

    Nor of one that a store took in before the lane asked: whoever types a receipt types its start as well. ``taken_in``
    is now for a receipt that no store holds; None is later than any lane asks.
    """
    run, since = parsed.receipt.run, lane.grade_since
    day = (taken_in or datetime.max).date()
    if day <= LAST_BY_START:
        day = min(day, run.started.date())
    old = since is not None and day < since
    return lane.grade if run.outcome in UNFAILED and run.provenance == "measured" and not old else "typed"


_MEASURED_LEAVES: Final = ("measurement.", "memory.", "compile.compile_seconds")
# What later evidence shows better, and what a source printed beside its numbers.
_BESIDE: Final = tuple(f"measurement.{name}" for name in ("step_flags", "path_counters", "stated", "health"))


def renumbered(own: Parsed, earlier: Collection[Parsed], kept: Collection[str] = ()) -> str:
    """A measured number that an earlier receipt of a launch had otherwise, with both; empty if there is none.

    What is added changes no number. The parts of further ranks do, and files that a store keeps may be read again.
    """
    recorded, listed = own.receipt.run.recorded, listed_digests(own)
    for other in earlier:
        before = other.receipt.run.recorded
        if recorded is not None and before is not None and recorded.by == before.by:
            ranks = (set(item.journals or ()) for item in (recorded, before))
            more = recorded.by == "merge" and next(ranks) > next(ranks)
            if more or (recorded.by == "ingest" and listed and listed <= set(kept)):
                continue
        for path, value in other.stated.items():
            if path.startswith(_MEASURED_LEAVES) and not path.startswith(_BESIDE) and own.stated.get(path) != value:
                return f"{path} of {other.id[:12]}, which it replaces"
    return ""


def graded(own: Parsed, seen: Parsed, lane: Lane, kept: Collection[str] = (), replaced: str = "") -> Graded:
    """The grade of a receipt; ``seen`` is it with what its witnesses lend, ``kept`` the digests that a store keeps.

    ``replaced`` names a number that an earlier receipt of the launch had otherwise.
    """
    run = own.receipt.run
    if run.provenance != "measured":
        return Graded("typed", f"its numbers are {run.provenance}")
    state = intact(own)
    if state is None:
        return Graded("typed", "no program says that it wrote it")
    if not state:
        return Graded("typed", "it was edited after its program wrote it")
    if replaced:
        return Graded("typed", f"it changes {replaced}")
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


KEPT_STEPS: Final = ("steps", "unsteady")  # where a rate comes from that somebody's steps give


def sustained(launch: Launch) -> bool:
    """Whether a launch sustained its shape: measured training that ended well, and whose steps were kept.

    A template that somebody filled in, and a job that says ok, sustained nothing. Nor does what an offense spoils,
    which `unspoilt` tells. In SQL: `receipts.store.entries.sustained_rows`; a test holds that they agree.
    """
    run = launch.parsed.receipt.run
    ended_well = run.outcome == "ok" and run.kind == "training" and run.provenance == "measured"
    return ended_well and launch.shown(metrics.get("tokens_per_second")).source in KEPT_STEPS


_MEASURED: Final = ("step", "rate", "memory")


class SampleRank(IntEnum):
    """How well a launch represents its configuration, the best first. From `UNSTEADY` on it is not a sample."""

    CLEAN = 0
    OPEN = 1  # a question about it is open: its path is not witnessed, a fact is not stated
    UNSTEADY = 2  # no steady value of the metric, or one that was not measured
    INVALID = 3  # an offense spoils the metric, or it left its path
    FAILED = 4  # it did not end well


class SampleGrade(NamedTuple):
    """The rank of a launch, and why: codes of rules, or how it ended."""

    rank: SampleRank
    why: tuple[str, ...] = ()


def unspoilt(path: str, tainted: Collection[str], kind: Taint) -> bool:
    """Whether the offenses of a launch leave a kind of metric alone: it is on its path, and neither `all` nor that kind
    is tainted.

    What is spoilt is invalid for that metric wherever it is looked at. In SQL: `receipts.store.entries`.
    """
    return path != "left" and not concerns(tainted, kind)


def concerns(kinds: Collection[str], kind: Taint) -> bool:
    """Whether that kind of metric is among these, or all are."""
    return Taint.ALL in kinds or kind in kinds


def status_for(kind: Taint, path: str, tainted: Collection[str], undecided: Collection[str]) -> Status:
    """The status of a launch as far as one kind of metric goes: what concerns others alone makes no difference."""
    if not unspoilt(path, tainted, kind):
        return "invalid"
    return "open" if concerns(undecided, kind) else "valid"


def takes_away(outcome: str, kind: Taint) -> bool:
    """Whether a launch that ended so has no number of a kind: no rate if it failed, no peak if memory ran out.

    The peak of a launch that asked for more than there was is what it had, and not what it needed.
    """
    return outcome not in UNFAILED if kind in (Taint.RATE, Taint.MFU) else kind is Taint.MEMORY and outcome == "oom"


def sample_grade(
    launch: Launch, findings: Iterable[Finding], metric: Metric | None = None, sparing: Collection[str] = ()
) -> SampleGrade:
    """Whether a launch is a sample of a metric, by what rules found of it; without a metric, of its rate.

    ``sparing`` are the codes of rules whose offense does not spoil the metric.
    """
    every, outcome = tuple(findings), launch.parsed.receipt.run.outcome
    kind = Taint.RATE if metric is None else metric.taint
    errors = [item for item in every if item.level is Level.ERROR]
    ended = [outcome] if takes_away(outcome, kind) else []
    spoilt = [
        item.code
        for item in errors
        if (item.question is Question.PATH or item.code not in sparing)
        and not unspoilt(path_answer([item]), item.taints, kind)
    ]
    if ended:
        return _graded_sample(SampleRank.FAILED, [*spoilt, *ended])
    if spoilt:
        return _graded_sample(SampleRank.INVALID, spoilt)
    weak = [item for item in every if item.level is Level.OPEN and concerns(undecided([item]), kind)]
    unmeasured = [item.code for item in errors if item.question is Question.EFFECT and not item.taints]
    if metric is not None and metric.summary in _MEASURED and launch.read(metric).source not in ("steps", "memory"):
        codes = [item.code for item in weak if item.question is Question.EFFECT]
        unmeasured += codes or [f"no {metric.title} from {'memory rows' if metric.summary == 'memory' else 'steps'}"]
    if unmeasured:
        return _graded_sample(SampleRank.UNSTEADY, unmeasured)
    open_ = [*(item.code for item in weak), *([outcome] if outcome == "unknown" else ())]
    return _graded_sample(SampleRank.OPEN, open_) if open_ else SampleGrade(SampleRank.CLEAN)


def _graded_sample(rank: SampleRank, why: list[str]) -> SampleGrade:
    return SampleGrade(rank, tuple(dict.fromkeys(why)))
