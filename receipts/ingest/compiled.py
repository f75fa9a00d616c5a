"""What compiling did and cost, out of every reading that counts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from receipts.evidence import FileEvidence, Reading
from receipts.evidence.witnesses.compile_order import LATE as _LATE
from receipts.evidence.witnesses.compile_order import WARM_STEPS
from receipts.ingest.config import readings
from receipts.ingest.draft import Draft, Where

_LEAVES: Final = {
    "compiles": "compiles",
    "after_warmup": "compiles_after_warmup",
    "cache_hits": "cache_hits",
    "cache_misses": "cache_misses",
    "graph_breaks": "graph_breaks",
    "seconds": "compile_seconds",
    "argument_bytes": "argument_bytes",
    "output_bytes": "output_bytes",
    "temp_bytes": "temp_bytes",
}


def state_compile(draft: Draft, files: Sequence[FileEvidence]) -> None:
    """State counts, seconds, bytes and the program's digest.

    Reports of one run count on, and ranks compile side by side: the highest figure of a source stands, the first
    source that has one.
    """
    _two_reports(draft, files)
    for name, leaf in _LEAVES.items():
        best: dict[str, tuple[int | float, Where]] = {}
        for file, reading in readings(files):
            value: int | float | None = getattr(reading.compile, name)
            earlier = best.get(reading.source)
            if value is not None and (earlier is None or value > earlier[0]):
                best[reading.source] = (value, Where(file.name))
        path = f"compile.{leaf}"
        for source, (figure, where) in best.items():
            if draft.get(path) is None:
                draft.put(path, round(figure, 6), where, source)
            elif draft.get(path) != figure and leaf == "compiles":
                text = f"{where} counts {figure:,} compiles by {source}, and {draft.get(path):,} stand"
                draft.tell("note", text, where)
    _whole_graph(draft, files)
    _digests(draft, files)
    _cache(draft)


def _whole_graph(draft: Draft, files: Sequence[FileEvidence]) -> None:
    """Compiles after warm-up where no step is printed between them, of a step that was to be one whole graph.

    It is called once a micro step, and each of its programs took a call: more of them than the warm-up has calls were
    compiled after it. That there are fewer proves nothing.
    """
    if draft.get(_LATE) is not None or draft.get("compile.posture") != "whole_graph":
        return
    for file, reading in readings(files):
        steps = draft.get("measurement.window.start") or draft.get("measurement.window.warmup_steps") or WARM_STEPS
        late = (reading.compile.versions or 0) - steps * (draft.get("batch.accumulation") or 1)
        if late > 0:
            text = f"{reading.compile.versions} programs for one function, and {steps} steps of warm-up"
            draft.put(_LATE, late, Where(file.name), reading.source, text)
            return


def _two_reports(draft: Draft, files: Sequence[FileEvidence]) -> None:
    """Compiles after warm-up: what the later of two reports of one run counts more than the earlier one."""
    reports: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for file, reading in readings(files):
        if reading.compile.after_warmup is not None:
            return
        if reading.compile.compiles is not None and reading.steps_covered:
            reports[reading.source].append((reading.steps_covered, reading.compile.compiles, file.name))
    for source, found in reports.items():
        # Reports that cover the same steps (of ranks, or in two forms) say nothing of each other's warm-up.
        by_steps = {item[0]: item for item in sorted(found)}
        if len(by_steps) != 2:
            continue
        (steps, before, early), (end, after, late) = by_steps.values()
        if after >= before:
            text = f"{after} at step {end} ({late}) less {before} at step {steps} ({early})"
            draft.put(_LATE, after - before, Where(late), source, text)


def _digests(draft: Draft, files: Sequence[FileEvidence]) -> None:
    found: dict[str, tuple[Where, Reading]] = {}
    for file, reading in readings(files):
        if reading.compile.program_digest:
            found.setdefault(reading.compile.program_digest, (Where(file.name), reading))
    if len(found) == 1:
        ((digest, (where, reading)),) = found.items()
        draft.put("compile.program_digest", digest, where, reading.source)
    elif found:
        names = ", ".join(str(where) for where, _ in list(found.values())[:4])
        draft.tell("note", f"{len(found)} compiled programs ({names}): no one digest stands for the step")


def _cache(draft: Draft) -> None:
    """The cache's state, where hits and misses leave one reading."""
    hits, misses = draft.get("compile.cache_hits"), draft.get("compile.cache_misses")
    if draft.get("compile.cache_state") is not None or hits is None or misses is None:
        return
    if (hits == 0) != (misses == 0):
        said = draft.found["compile.cache_hits"]
        state = "warm" if hits else "cold"
        draft.put("compile.cache_state", state, said.where, said.source, f"{hits} hits, {misses} misses")
