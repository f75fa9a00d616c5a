"""`jax.monitoring` events that a training script kept as JSON.

JAX hands events (``/jax/compilation_cache/cache_hits``) and durations (``/jax/core/compile/backend_compile_duration``
and others) to listeners and writes no file itself; scripts keep a list of ``{"event": …, "step": …}``, or counts by
name, flat or in phases. A backend compile is reported on a persistent-cache hit, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from receipts.ingest.evidence.json_bounds import JsonReader
from receipts.ingest.evidence.literal import counted
from receipts.ingest.evidence.reading import CompileSpan, Reading

MAX_NAMES: Final = 1_000
MAX_STEPS: Final = 100_000
_HEAD: Final = re.compile(rb"^\s*[\[{]")
_EVENT: Final = re.compile(rb'"/jax/(?:core/compile|compilation_cache|pjit|backend)\b')
_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
_HIT, _MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


@dataclass(slots=True)
class _Events:
    counts: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    # Compiles less hits of the persistent cache by step, as far as each step is known.
    built: Counter[int] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    phases: bool = False

    def add(self, name: str, count: int, late: bool, seconds: float = 0.0) -> None:
        if name not in self.counts and len(self.counts) >= MAX_NAMES:
            return
        self.counts[name] = self.counts.get(name, 0) + count
        if late:
            self.late[name] = self.late.get(name, 0) + count
        if name == _COMPILED:
            self.seconds += seconds

    @property
    def spans(self) -> list[CompileSpan]:
        """Compiles by step. Steps that are counted from 0 are known to be where something is built in step 0."""
        early = 0 if 0 in self.built else 1
        return [
            CompileSpan(count, max(step - early, 0), step + 1, self.names.get(step, ""))
            for step, count in sorted(self.built.items())
            if count > 0
        ]


class JaxMonitoring(JsonReader):
    """Compiles and persistent-cache hits by JAX's own events."""

    source = "jax-monitoring"
    what = "a list of events"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A JSON document of events by JAX's names."""
        return bool(_HEAD.match(head)) and bool(_EVENT.search(head)) and b"traceEvents" not in head

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Take events that were counted by name."""
        events = _Events()
        _counted(document, events)
        _describe(events, reading)

    def listed(self, reading: Reading, rows: list[Any]) -> None:
        """Count the events of a list."""
        events = _Events()
        _listed(rows, events)
        _describe(events, reading)


def _listed(rows: list[Any], events: _Events) -> None:
    for item in rows:
        name = item.get("event") or item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            continue
        step = item.get("step")
        spent = next((item[key] for key in ("duration_s", "duration", "seconds") if key in item), 0.0)
        # Words in the place of a number (`init`, `end`) are before the first step, and after the last.
        if isinstance(step, int) and not isinstance(step, bool) and len(events.built) < MAX_STEPS:
            events.built[step] += {_COMPILED: 1, _HIT: -1}.get(name, 0)
            if name == _COMPILED and isinstance(item.get("fun_name"), str):
                events.names[step] = f"{item['fun_name'][:200]} was compiled"
        events.add(name, 1, False, float(spent) if isinstance(spent, int | float) and abs(spent) < 1e12 else 0.0)


def _counted(table: Mapping[str, Any], events: _Events) -> None:
    for phase, name, count in _counts(table):
        late = "after" in phase
        events.phases = events.phases or late
        events.add(name, count, late)
    events.phases = events.phases or any("after" in phase for phase in table)


def _counts(table: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for key, value in table.items():
        inner = value.items() if isinstance(value, dict) else ((key, value),)
        for name, count in inner:
            if str(name).startswith("/jax/") and counted(count):
                yield (key if isinstance(value, dict) else ""), name, count


def _describe(events: _Events, reading: Reading) -> None:
    counts, late = events.counts, events.late
    reading.records = sum(counts.values())
    reading.counters = dict(counts)
    if not reading.records:
        reading.remark("missing", "no event of jax.monitoring is in it")
        return
    hits, compiled = counts.get(_HIT, 0), counts.get(_COMPILED)
    reading.see("framework", "jax", "kernels")
    # Events are counted whatever the log flags are, so here an absence is a zero.
    reading.complete = compiled is not None
    reading.compile.cache_hits = hits
    reading.compile.cache_misses = counts.get(_MISS, 0)
    if compiled is not None:
        reading.compile.compiles = max(compiled - hits, 0)
    if events.seconds and not hits:
        reading.compile.seconds = events.seconds
    if events.built:
        reading.compile.spans, reading.compile.steps = events.spans, max(events.built) + 1
    if events.phases and compiled is not None:
        reading.compile.after_warmup = max(late.get(_COMPILED, 0) - late.get(_HIT, 0), 0)


READERS = (JaxMonitoring,)
