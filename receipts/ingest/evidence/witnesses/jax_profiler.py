"""Traces of JAX's profiler: ``plugins/profile/…/HOST.trace.json.gz``, in the Chrome format.

torch's traces share the format and are distinguished by content. Their clock begins with the trace, and no host and no
process is in them: the .xplane.pb beside them holds time and host.
Source: tsl/profiler/convert/trace_events_to_json.cc.
"""

from __future__ import annotations

from typing import Any, Final

import ijson

from receipts.ingest.evidence.witnesses.jax_profiler_events import MAX_EVENTS, Profile
from receipts.ingest.evidence.witnesses.torch_trace_timeline import event_arguments
from receipts.ingest.reader import FileReader, JsonStream
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

MAX_THREADS: Final = 100_000
MAX_NAME: Final = 300
MAX_DETAIL: Final = 1_000
_OWN: Final = (b'"highres-ticks"', b'"/host:CPU"', b'"/device:TPU', b'"/device:GPU', b'"/host:metadata"')
_TORCH: Final = (b'"schemaVersion"', b'"deviceProperties"', b'"baseTimeNanoseconds"', b"aten::")
_DETAILS: Final = ("long_name", "tf_op", "hlo_op", "name")


class JaxProfiler(FileReader):
    """Events of a JAX profile in JSON."""

    source = "jax-profiler"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A Chrome trace with XLA's planes, and nothing of torch's."""
        return (
            head.lstrip()[:1] == b"{"
            and b'"traceEvents"' in head
            and any(mark in head for mark in _OWN)
            and not any(mark in head for mark in _TORCH)
        )

    def read(self, source: Source) -> list[Reading]:
        """One reading; events are streamed, and a broken file is read as far as it goes."""
        reading = Reading(self.source)
        profile = Profile(reading)
        planes: dict[Any, str] = {}
        lines: dict[Any, str] = {}
        ends: dict[Any, float] = {}
        with source.open() as stream:
            try:
                for event in ijson.items(JsonStream(stream, source), "traceEvents.item", use_float=True):
                    if isinstance(event, dict):
                        _take(event, profile, planes, lines, ends)
            except (ijson.JSONError, ValueError, OverflowError) as error:
                profile.cut = True
                reading.remark("broken", f"the trace ends in the middle or is no JSON: {error!s:.100}")
        profile.cut = profile.cut or bool(source.broken)
        if reading.records >= MAX_EVENTS:
            reading.remark("missing", f"{reading.records:,} events: such files are cut at a million, others are lost")
        profile.describe()
        reading.lasts = max(0.0, profile.last - profile.first) * 1e-6
        return [reading]


def _take(
    event: dict[str, Any], profile: Profile, planes: dict[Any, str], lines: dict[Any, str], ends: dict[Any, float]
) -> None:
    phase, name = event.get("ph"), event.get("name")
    process, thread = event.get("pid"), event.get("tid")
    if not isinstance(name, str) or isinstance(process, list | dict) or isinstance(thread, list | dict):
        return
    args = event_arguments(event)
    if phase == "M":
        label = str(args.get("name", ""))[:MAX_NAME]
        if name == "process_name" and len(planes) < MAX_THREADS:
            planes[process] = label
        elif name == "thread_name" and len(lines) < MAX_THREADS:
            lines[process, thread] = label
    elif phase == "X":
        spent, start = _number(event.get("dur")), _number(event.get("ts"))
        profile.first, profile.last = min(profile.first, start), max(profile.last, start + spent)
        if name.startswith("PjitFunction("):
            # One call may be told by two events, one inside the other.
            if start < ends.get((thread, name), -1.0) or len(ends) >= MAX_THREADS:
                return
            ends[thread, name] = start + spent
        if name.startswith("$"):
            profile.frame(thread, name, start, start + spent)
        profile.add(
            planes.get(process, ""),
            lines.get((process, thread), ""),
            name[:MAX_NAME],
            " ".join(str(args[key])[:MAX_DETAIL] for key in _DETAILS if key in args),
            duration=spent,
        )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e18 else 0.0


READERS = (JaxProfiler,)
