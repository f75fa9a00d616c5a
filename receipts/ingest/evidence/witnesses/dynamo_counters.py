"""`torch._dynamo.utils.counters`: as a program prints the dict, or writes it as JSON.

Counts are of compilation, not of execution: a graph break is counted once, however often it is run through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from receipts.ingest.literals import counted, literal
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import UNNAMED_FUNCTION, Reading

_GROUPS: Final = ("frames", "stats", "aot_autograd", "inductor", "graph_break", "unimplemented", "aten_mm_info")
_CLAIM = re.compile(rb'\s*\{\s*"(?:frames|stats|aot_autograd|inductor|graph_break|unimplemented)"\s*:\s*\{')
_COUNTER = re.compile(r"\bCounter\((?=\{)")
_LIMIT: Final = ("recompile limit exceeded", "cache size limit exceeded", "recompile_limit reached")


def read_counters(reading: Reading, text: str, line: int) -> None:
    """Read a printed `defaultdict(<class 'collections.Counter'>, {…})` from its outer brace on."""
    counters = literal(_COUNTER.sub("(", text))
    groups = counters.items() if isinstance(counters, dict) else ()
    take_counters(reading, {name: _counts(group[0]) for name, group in groups if type(group) is list and group}, line)


def take_counters(reading: Reading, groups: Mapping[str, Mapping[str, int]], line: int = 0) -> None:
    """State what the groups of counters say. Nothing is said of groups that were never counted."""
    if not any(name in groups for name in _GROUPS):
        return
    reading.records += 1
    frames, stats, inductor = groups.get("frames", {}), groups.get("stats", {}), groups.get("inductor", {})
    for name, value in (
        ("frames_total", frames.get("total")),
        ("frames_ok", frames.get("ok")),
        ("unique_graphs", stats.get("unique_graphs")),
        ("fxgraph_cache_hit", inductor.get("fxgraph_cache_hit")),
        ("fxgraph_cache_miss", inductor.get("fxgraph_cache_miss")),
        ("cudagraph_skips", inductor.get("cudagraph_skips")),
    ):
        if value is not None:
            reading.counters[name] = value
    breaks = sum(groups.get("graph_break", {}).values())
    if stats or frames:
        reading.compile.compiles = stats.get("unique_graphs", reading.compile.compiles)
        reading.compile.graph_breaks = breaks
    reading.compile.cache_hits = inductor.get("fxgraph_cache_hit", reading.compile.cache_hits)
    reading.compile.cache_misses = inductor.get("fxgraph_cache_miss", reading.compile.cache_misses)
    for reason, count in groups.get("graph_break", {}).items():
        summary, _, rest = reason.partition("Explanation: ")
        reading.blame("compile.graph_breaks", (rest or summary).partition("\n")[0].strip()[:300], count)
    if breaks:
        reading.counters["graph_breaks"] = breaks
        reading.see("posture", "regional", "backend", line)
    _limits(reading, {**groups.get("graph_break", {}), **groups.get("unimplemented", {})}, line)


def _limits(reading: Reading, reasons: Mapping[str, int], line: int) -> None:
    hit = sum(count for name, count in reasons.items() if any(word in name.lower() for word in _LIMIT))
    if hit:
        reading.counters["recompile_limit"] = hit
        reading.fallbacks = (reading.fallbacks or {}) | {UNNAMED_FUNCTION: hit}
        reading.remark("note", "a recompile limit was reached: the function runs uncompiled from there on", line)


class DynamoCountersReader(JsonReader):
    """The counters as a JSON document."""

    source: ClassVar[str] = "dynamo"
    what: ClassVar[str] = "a table of counters"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return _CLAIM.match(head) is not None

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        take_counters(reading, {str(name): _counts(group) for name, group in document.items()})
        reading.complete = reading.records > 0


def _counts(group: Any) -> dict[str, int]:
    if not isinstance(group, dict):
        return {}
    return {str(key): value for key, value in group.items() if counted(value)}


READERS = (DynamoCountersReader,)
