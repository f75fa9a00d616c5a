"""Traces that a test writes by hand: spans of devices, and events as torch.profiler writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from receipts.ingest.spans import Activities, SpanTrace

US = 1000


def span_trace(*spans: tuple[Any, ...], marks: Iterable[tuple[int, int, int]] = (), host: Any = ()) -> SpanTrace:
    """A trace of one device. A span is its begin, end and name, then launch, stream, chain of names and kind, in ns."""
    trace, work = SpanTrace("torch.profiler"), Activities()
    for begin, end, name, *rest in spans:
        launched, lane, chain, kind = (*rest, *(-1, 7, (), "k")[len(rest) :])
        around = 0
        for item in chain:
            trace.chains.append((around, trace.names.number(item)))
            around = len(trace.chains) - 1
        work.add(begin, end, lane, trace.names.number(name), around, launched, kind)
    trace.devices["0"] = work
    trace.marks, trace.host = list(marks), list(host)
    return trace


class KinetoTrace:
    """The events of a torch.profiler trace, times in microseconds; ``base`` is added to each."""

    def __init__(self, base: float = 0, **head: Any) -> None:
        self.head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9}],
        } | head
        self.events: list[dict[str, Any]] = []
        self.base = base
        self._correlation = 0

    def event(self, name: str, category: str, begin: float, duration: float, thread: int = 1, **args: Any) -> None:
        """One event."""
        event = {"ph": "X", "cat": category, "name": name, "pid": 4242, "tid": thread, "ts": self.base + begin}
        self.events.append({**event, "dur": duration, "args": args})

    def op(self, name: str, begin: float, duration: float, thread: int = 1, **args: Any) -> None:
        """An operator of the host."""
        self.event(name, "cpu_op", begin, duration, thread, **args)

    def step(self, number: int, begin: float, duration: float) -> None:
        """The mark of a step."""
        self.event(f"ProfilerStep#{number}", "user_annotation", begin, duration)

    def kernel(
        self,
        name: str,
        launched: float,
        begin: float,
        duration: float,
        thread: int = 1,
        category: str = "kernel",
        **args: Any,
    ) -> None:
        """A kernel with the call that launched it."""
        self._correlation += 1
        values = {"correlation": self._correlation}
        self.event("cudaLaunchKernel", "cuda_runtime", launched, 1, thread, **values)
        self.event(name, category, begin, duration, 7, **{"device": 0, "stream": 7, **values, **args})

    def write(self, path: Path, *, cut: bool = False) -> Path:
        """Write it; ``cut`` without its end."""
        text = json.dumps({**self.head, "traceEvents": self.events, "traceName": "trace.json"})
        path.write_text(text[: len(text) * 19 // 20] if cut else text)
        return path
