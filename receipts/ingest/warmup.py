"""What compiling did and cost, where the warm-up ends, and how many compiles came after it.

A stated window decides; else what a file counts in phases of its own, or the reports of one run before and after; else
the first two steps, which the receipt holds as `measurement.window.stated` = ``default``. Two, because a clean run
compiles at the step that makes the optimizer's state, and at the next where an array came back with another sharding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import CompileSpan, Report
from receipts.ingest.resolve import readings


def state_compile(draft: ReceiptDraft, files: Sequence[FileEvidence], stepping: bool) -> None:
    """State where the warm-up ends, the compiles after it, and in which state the cache was."""
    state_warmup(draft, files, stepping)
    # The cache's state, where hits and misses leave one reading.
    hits, misses = draft.get("compile.cache_hits"), draft.get("compile.cache_misses")
    if draft.get("compile.cache_state") is not None or hits is None or misses is None:
        return
    if (hits == 0) != (misses == 0):
        claim = draft.leaves["compile.cache_hits"]
        state = "warm" if hits else "cold"
        draft.put("compile.cache_state", state, claim.where, claim.source, f"{hits} hits, {misses} misses")


DEFAULT: Final = 2
# A default is a guess: a compile this close behind it is not shown to be late. R201 says the same of slow steps.
MARGIN: Final = 5
SOURCE: Final = "warm-up"
AFTER: Final = "compile.compiles_after_warmup"
WINDOW: Final = "measurement.window"
# Steps from which on compiles in most of them are a storm, wherever the warm-up ends.
_STORM_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How many steps the warm-up has; ``basis`` is ``stated``, ``reported`` or ``default``."""

    steps: int
    basis: str


@dataclass(frozen=True, slots=True)
class Late:
    """Compiles after the warm-up by one source: at least ``proven``, at most ``possible``."""

    proven: int
    possible: int
    where: Where
    source: str
    text: str = ""

    @property
    def settled(self) -> bool:
        """Whether the source shows that there were some, or that there were none."""
        return self.proven > 0 or self.possible == 0


def state_warmup(draft: ReceiptDraft, files: Sequence[FileEvidence], stepping: bool) -> None:
    """State the warm-up where nobody did, and the compiles after it. ``stepping``: the launch's steps are known."""
    reports = reports_of(files)
    warm = _warm_up(draft, reports.values())
    own = [
        Late(late, late, Where(file.name), reading.source, "by its own phases")
        for file, reading in readings(files)
        if (late := reading.compile.after_warmup) is not None
    ]
    if own and warm.basis == "default":
        _state(draft, own)
        return
    placed = []
    for file, reading in readings(files):
        if (spans := reading.compile.spans) is not None:
            distinct = {span.after for span in spans if span.before is None or span.before == span.after + 1}
            # One in most of the steps, up to the last ones: no warm-up that goes on.
            steps = reading.compile.steps or 0
            storm = 2 * len(distinct) > steps and max(distinct, default=0) >= steps - 2
            placed.append(_bounds(spans, warm, storm, Where(file.name), reading.source))
    if draft.get("compile.posture") == "whole_graph":
        # Where no step is printed between them: one whole graph is called once a micro step, and each of its programs
        # took a call of its own.
        calls = draft.get("batch.accumulation") or 1
        sure = (warm.steps + (MARGIN if warm.basis == "default" else 0)) * calls
        for file, reading in readings(files):
            count = reading.compile.versions
            if count is not None and reading.compile.spans is None:
                proven = count - warm.steps * calls if count > sure else 0
                where, text = Where(file.name), f"{count} programs of one function"
                placed.append(Late(proven, max(count, 1), where, reading.source, text))
    placed += [_reported(source, counted, warm) for source, counted in reports.items()]
    if warm.basis != "stated" and (stepping or placed):
        text = f"{warm.steps} steps, {warm.basis}"
        draft.put(f"{WINDOW}.warmup_steps", warm.steps, Where("ingest"), SOURCE, text)
        if warm.basis == "default":
            draft.put(f"{WINDOW}.stated", "default", Where("ingest"), SOURCE)
    # Phases whose length nobody tells say what is late only where nothing else does, and then that nothing was.
    _state(draft, placed if any(late.settled for late in placed) else placed + [late for late in own if late.settled])


def _warm_up(draft: ReceiptDraft, reports: Iterable[Sequence[tuple[Report, Where]]]) -> WarmUp:
    start, steps = draft.get(f"{WINDOW}.start"), draft.get(f"{WINDOW}.warmup_steps")
    if start is not None or steps is not None:
        # A window from the first position of a list whose warm-up ran before it.
        return WarmUp(start or steps or 0, "stated")
    for counted in reports:
        early = next((report.steps for report, _ in counted[:-1] if report.steps >= DEFAULT), None)
        if early is not None and (early > DEFAULT or len(counted) == 2):
            return WarmUp(early, "reported")
    return WarmUp(DEFAULT, "default")


def reports_of(files: Sequence[FileEvidence]) -> dict[str, list[tuple[Report, Where]]]:
    """Reports of each source in the order of their steps; those of the same steps (of ranks, in two forms) are one."""
    by_source: defaultdict[str, dict[int, tuple[Report, Where]]] = defaultdict(dict)
    for file, reading in readings(files):
        for report in reading.reports:
            known = by_source[reading.source].get(report.steps)
            if known is None or known[0].compiles < report.compiles:
                by_source[reading.source][report.steps] = report, Where(file.name)
    return {source: [by_steps[steps] for steps in sorted(by_steps)] for source, by_steps in by_source.items()}


def _bounds(spans: Iterable[CompileSpan], warm: WarmUp, storm: bool, where: Where, source: str, text: str = "") -> Late:
    spans = list(spans)
    sure = warm.steps + (MARGIN if warm.basis == "default" and not storm else 0)
    late = sum(span.count for span in spans if span.after >= warm.steps)
    possible = sum(span.count for span in spans if span.before is None or span.before > warm.steps)
    return Late(late if any(span.after >= sure for span in spans) else 0, possible, where, source, text)


def _reported(source: str, counted: Sequence[tuple[Report, Where]], warm: WarmUp) -> Late:
    """Late compiles by what each report counts more than the one before it."""
    last, where = counted[-1]
    if len(counted) == 1 or any(b.compiles < a.compiles for (a, _), (b, _) in pairwise(counted)):
        storm = last.steps >= _STORM_STEPS and 2 * last.compiles > last.steps
        return Late(max(last.compiles - warm.steps * last.programs, 0) if storm else 0, last.compiles, where, source)
    spans = [CompileSpan(counted[0][0].compiles, 0, counted[0][0].steps)]
    for (before, _), (after, _) in pairwise(counted):
        count, steps = after.compiles - before.compiles, after.steps - before.steps
        end = after.steps if after is not last else None
        # A value that is read once training has ended may compile, and the last report is taken after it; what is
        # read in every step is none of those.
        reads = max((after.reads or 0) - (before.reads or 0), 0) % steps
        reads = 0 if end or 2 * count > steps else min(count, reads)
        spans += [CompileSpan(count - reads, before.steps, end), CompileSpan(reads)]
    first, early = counted[0]
    text = f"{last.compiles} at step {last.steps} ({where}), {first.compiles} at step {first.steps} ({early})"
    return _bounds([span for span in spans if span.count], warm, False, where, source, text)


def _state(draft: ReceiptDraft, sources: Sequence[Late]) -> None:
    settled = [late for late in sources if late.settled]
    some = next((late for late in settled if late.proven), None)
    none = next((late for late in settled if not late.proven), None)
    if some is not None and none is not None:
        what = f"{none.where} shows none by {none.source}, and {some.where} {some.proven} by {some.source}"
        draft.contradict(AFTER, what)
    elif (late := some or none) is not None:
        draft.put(AFTER, late.proven, late.where, late.source, late.text)
    elif sources:
        late = max(sources, key=lambda item: item.possible)
        text = f"{late.possible} compiles may lie after the warm-up: state window.start, or log each step"
        draft.tell("missing", text, late.where)
