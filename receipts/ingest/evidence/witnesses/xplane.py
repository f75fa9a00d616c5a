"""XSpace files of JAX's profiler (``HOST.xplane.pb``), whole where trace.json is cut at a million events.

Fields by tsl/profiler/protobuf/xplane.proto: XSpace.planes=1, hostnames=4; XPlane.name=2, lines=3, event_metadata=4,
stats=6; XStat.uint64_value=3, int64_value=4; XLine.name=2, events=4, display_name=11; XEvent.metadata_id=1,
duration_ps=3, num_occurrences=5; XEventMetadata.id=1, name=2, display_name=4. Names stand after the events that point
to them, so events are counted by number first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from receipts.ingest.evidence.witnesses.jax_profiler_events import Profile
from receipts.ingest.protobuf import BYTES, Message, Torn, Wire
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

MAX_KINDS: Final = 500_000
MAX_EVENTS: Final = 20_000_000
MAX_NAME: Final = 4_000
_TASK: Final = "Task Environment"  # the plane that says when the profile began and when it ended
_CLOCKS: Final = range(10**18, 10**19)  # nanoseconds since 1970, from 2001 on
_HEAD: Final = re.compile(
    rb"\A\n[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?"
    rb"\x12[\x01-\x7f](?:/host:|/device:|Task Env|#Chip)"
)
Counts = dict[tuple[str, int], tuple[int, int]]


class Xplane(FileReader):
    """Events of a JAX profile in protocol buffers."""

    source = "jax-profiler"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A first field that is a plane with a profiler's name."""
        return _HEAD.match(head) is not None

    def read(self, source: Source) -> list[Reading]:
        """One reading; the file is streamed, and a broken one is read as far as it goes."""
        reading = Reading(self.source)
        profile = Profile(reading)
        with source.open() as stream:
            wire = Wire(source, stream)
            try:
                for number, kind, value in wire.fields(None):
                    if number == 1 and kind == BYTES:
                        clocks = _plane(wire, wire.at + value, profile)
                        if clocks:
                            reading.between = min(clocks) / 1e9, max(clocks) / 1e9
                    elif number == 4 and kind == BYTES and not reading.host:
                        reading.host = wire.text(value, 200)
                    elif kind == BYTES:
                        wire.leap(value)
            except Torn as error:
                profile.cut = True
                reading.remark("broken", f"{error}; what stands before it was read")
        if profile.cut and not reading.remarks:
            reading.remark("missing", f"more than {MAX_EVENTS:,} events: the rest was not counted")
        profile.describe()
        return [reading]


def _plane(wire: Wire, stop: int, profile: Profile) -> list[int]:
    """Take in one plane; when the profile began and ended, in nanoseconds since 1970, of the plane that says so."""
    name, counts, clocks = "", Counts(), list[int]()
    names: dict[int, str] = {}
    try:
        for number, kind, value in wire.fields(stop):
            if kind != BYTES:
                continue
            if number == 2:
                name = wire.text(value, 200)
            elif number == 3:
                _line(wire, wire.at + value, counts, profile)
            elif number == 4 and len(names) < MAX_KINDS:
                names.update(_metadata(wire.message(value)))
            elif number == 6 and name == _TASK:
                statistic = wire.message(value)
                clocks += [time for field in (3, 4) for time in statistic.listed(field) if time in _CLOCKS]
            else:
                wire.leap(value)
    finally:
        for (line, identity), (count, spent) in counts.items():
            label = names.get(identity, "")
            # A TPU's metadata is the instruction's text, and its name begins it.
            short = label.split(" = ", 1)[0].lstrip("%")
            host = not name.startswith("/device:")
            detail = "" if host else label
            profile.add(name, line, label if host else short, detail, count, spent / 1e6)
    return clocks


def _line(wire: Wire, stop: int, counts: Counts, profile: Profile) -> None:
    name = ""
    mine: dict[int, tuple[int, int, int]] = {}
    for number, kind, value in wire.fields(stop):
        if kind != BYTES:
            continue
        if number == 2:
            name = wire.text(value, 200)
        elif number == 4 and profile.reading.records < MAX_EVENTS:
            identity, times, start, spent = _event(wire.message(value))
            if identity in mine or len(mine) < MAX_KINDS:
                before, total, end = mine.get(identity, (0, 0, -1))
                if start >= end or times > 1:
                    # What runs inside an event of its own name is the same call.
                    mine[identity] = before + times, total + spent, start + spent
        else:
            profile.cut = profile.cut or number == 4
            wire.leap(value)
    for identity, (times, spent, _) in mine.items():
        if (name, identity) in counts or len(counts) < MAX_KINDS:
            before, total = counts.get((name, identity), (0, 0))
            counts[name, identity] = before + times, total + spent


def _event(event: Message) -> tuple[int, int, int, int]:
    """Number of its metadata, how many events it represents, and start and duration in picoseconds."""
    identity, start, spent, times = (event.whole(number) for number in (1, 2, 3, 5))
    return identity or 0, max(1, min(times or 1, 1 << 31)), start or 0, max(0, spent or 0)


def _metadata(entry: Message) -> Iterator[tuple[int, str]]:
    """One entry of the map from a number to an event's name."""
    for kind in entry.inner(2):
        yield entry.whole(1) or kind.whole(1) or 0, kind.text(2, MAX_NAME)


READERS = (Xplane,)
