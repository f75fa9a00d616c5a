"""What compiling did and cost, out of every reading that counts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from receipts.ingest.config import readings
from receipts.ingest.draft import Draft, Where
from receipts.ingest.evidence import FileEvidence, Reading
from receipts.ingest.warmup import state_warmup

_LEAVES: Final = {
    "compiles": "compiles",
    "cache_hits": "cache_hits",
    "cache_misses": "cache_misses",
    "graph_breaks": "graph_breaks",
    "seconds": "compile_seconds",
    "argument_bytes": "argument_bytes",
    "output_bytes": "output_bytes",
    "temp_bytes": "temp_bytes",
}


def state_compile(draft: Draft, files: Sequence[FileEvidence], stepping: bool) -> None:
    """State counts, seconds, bytes and the program's digest.

    Reports of one run count on, and ranks compile side by side: the highest figure of a source stands, the first
    source that has one.
    """
    state_warmup(draft, files, stepping)
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
    _digests(draft, files)
    _cache(draft)


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
