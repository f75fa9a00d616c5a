"""What JAX's runtime reports of itself: monitoring events kept as JSON, and implicit transfers.

`jax.monitoring` events that a training script kept as JSON. JAX hands events (``/jax/compilation_cache/cache_hits``)
and durations (``/jax/core/compile/backend_compile_duration`` and others) to listeners and writes no file itself;
scripts keep a list of ``{"event": …, "step": …}``, or counts by name, flat or in phases. A backend compile is
reported on a persistent-cache hit, too.

JAX's transfer guard: `JAX_TRANSFER_GUARD=log` writes every implicit transfer, `disallow` raises on one. ``W1120
12:33:35.266411 21084 guard_lib.cc:140] device-to-device transfer: aval=…``, and the error ``Disallowed device-to-host
transfer: …``. On CPU a read of a value makes no line, so that none is seen proves nothing. Source:
jaxlib/guard_lib.cc; a real run of JAX 0.10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader, LineReader
from receipts.ingest.reading import CompileSpan, Reading
from receipts.ingest.steps import STEP_ANCHORS, step_of

MAX_NAMES: Final = 1_000
MAX_STEPS: Final = 100_000
_HEAD: Final = re.compile(rb"^\s*[\[{]")
_EVENT: Final = re.compile(rb'"/jax/(?:core/compile|compilation_cache|pjit|backend)\b')
_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
_HIT, _MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


class JaxMonitoring(JsonReader):
    """Compiles and persistent-cache hits by JAX's own events."""

    source = "jax-monitoring"
    what = "a list of events"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A JSON document of events by JAX's names."""
        return bool(_HEAD.match(head)) and bool(_EVENT.search(head)) and b"traceEvents" not in head

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Take events that were counted by name, flat or in phases, of which one is after the warm-up."""
        late = Counter[str]()
        for phase, name, count in _counts(document):
            if _add(reading, name, count) and "after" in phase:
                late[name] += count
        _describe(reading)
        if any("after" in phase for phase in document) and _COMPILED in reading.counters:
            reading.compile.after_warmup = max(late[_COMPILED] - late[_HIT], 0)

    def listed(self, reading: Reading, rows: list[Any]) -> None:
        """Count the events of a list."""
        # Compiles less hits of the persistent cache by step, as far as each step is known.
        built, names, seconds = Counter[int](), dict[int, str](), 0.0
        for item in rows:
            name = item.get("event") or item.get("name") if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            step = item.get("step")
            # Words in the place of a number (`init`, `end`) are before the first step, and after the last.
            if type(step) is int and len(built) < MAX_STEPS:
                built[step] += {_COMPILED: 1, _HIT: -1}.get(name, 0)
                if name == _COMPILED and isinstance(item.get("fun_name"), str):
                    names[step] = f"{item['fun_name'][:200]} was compiled"
            spent = next((item[key] for key in ("duration_s", "duration", "seconds") if key in item), 0.0)
            if _add(reading, name, 1) and name == _COMPILED and isinstance(spent, int | float) and abs(spent) < 1e12:
                seconds += float(spent)
        _describe(reading)
        if seconds and not reading.compile.cache_hits:
            reading.compile.seconds = seconds
        if built and reading.records:
            # Steps that are counted from 0 are known to be where something is built in step 0.
            early = 0 if 0 in built else 1
            reading.compile.spans = [
                CompileSpan(count, max(step - early, 0), step + 1, names.get(step, ""))
                for step, count in sorted(built.items())
                if count > 0
            ]
            reading.compile.steps = max(built) + 1


def _counts(table: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for key, value in table.items():
        inner = value.items() if isinstance(value, dict) else ((key, value),)
        for name, count in inner:
            if str(name).startswith("/jax/") and counted(count):
                yield (key if isinstance(value, dict) else ""), name, count


def _add(reading: Reading, name: str, count: int) -> bool:
    """Count events, if there is room for their name."""
    if name not in reading.counters and len(reading.counters) >= MAX_NAMES:
        return False
    reading.count(name, count)
    reading.records += count
    return True


def _describe(reading: Reading) -> None:
    if not reading.records:
        reading.remark("missing", "no event of jax.monitoring is in it")
        return
    hits, compiled = reading.counters.get(_HIT, 0), reading.counters.get(_COMPILED)
    reading.see("framework", "jax", "kernels")
    # Events are counted whatever the log flags are, so here an absence is a zero.
    reading.complete = compiled is not None
    reading.compile.cache_hits = hits
    reading.compile.cache_misses = reading.counters.get(_MISS, 0)
    if compiled is not None:
        reading.compile.compiles = max(compiled - hits, 0)


_TRANSFER: Final = re.compile(r"(Disallowed )?(host-to-device|device-to-host|device-to-device) transfer:")


class TransferGuard(LineReader):
    """Implicit transfers by direction; those to the host are reads of live arrays."""

    source = "transfer-guard"
    anchors = (
        b"host-to-device transfer:",
        b"device-to-host transfer:",
        b"device-to-device transfer:",
    )
    companions = STEP_ANCHORS

    def __init__(self) -> None:
        super().__init__()
        self.follows = False
        self._steps: set[int] = set()

    def line(self, text: str, number: int) -> bool:
        """Count one transfer, or note a step."""
        match = _TRANSFER.search(text)
        if match is None:
            if (step := step_of(text)) is not None and len(self._steps) < MAX_STEPS:
                self._steps.add(step)
            return False
        reading = self.reading
        reading.records += 1
        self.follows = True
        reading.count(match[2])
        if match[1]:
            reading.count(f"disallowed {match[2]}")
            reading.remark("note", text[match.start() :][:200], number)
        return False

    def finish(self) -> Reading | None:
        """Transfers to the host, where there were any: their absence is no evidence."""
        reading = self.reading
        if not reading.records:
            return None
        reading.host_transfers = reading.counters.get("device-to-host")
        reading.steps_covered = len(self._steps) or None
        if reading.host_transfers is None:
            reading.remark("missing", "no transfer to the host is logged, which some backends do not log")
        return reading


READERS = (JaxMonitoring, TransferGuard)
