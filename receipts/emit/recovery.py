"""A run that could not write its own receipt, from its journal: every step up to the end, and how it ended.

A journal is read back whatever became of the process that wrote it: torn ends, holes, foreign bytes. The process's own
word wins: an exception, SIGTERM. Without one it was killed, and the kernel's own count of out-of-memory kills, on the
same boot, shows whether by that.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from binascii import crc32
from datetime import UTC, datetime

from receipts.emit import ending, identity, journal, run_record, termination
from receipts.emit.clock import perf_counter_ns
from receipts.emit.facts import RECORDER
from receipts.emit.run_record import RunRecord

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


MAX_JOURNAL_BYTES = 128 << 20  # four million steps; it is held whole
MAX_EVENT_BYTES = 1 << 20
MAX_JOURNAL_STEPS = 20_000_000


class NotAJournal(Exception):
    """The file is no journal, or its first frame is gone; the text says which and what to do."""


class Replay:
    """What a journal holds. ``words`` has two numbers a step, end and duration; ``torn`` says what was lost."""

    def __init__(self, head: dict[str, Any]) -> None:
        self.head = head
        self.digest = ""
        self.events: list[list[Any]] = []
        self.words = array("q")
        self.gauges = array("q", bytes(8 * journal.GAUGES))
        self.floats = array("d", bytes(8 * journal.GAUGES))
        self.torn: list[str] = []

    def __repr__(self) -> str:
        return f"Replay({len(self.events)} events, {len(self.words) // 2} steps)"


def read_journal(path: str) -> Replay:
    """Read a journal. Raises NotAJournal, and OSError where the file cannot be read."""
    size = os.path.getsize(path)
    if size > MAX_JOURNAL_BYTES:
        raise NotAJournal(f"it has {size} bytes; a journal has at most {MAX_JOURNAL_BYTES}")
    with open(path, "rb") as stream:
        data = stream.read(len(journal.MARK))
        if data != journal.MARK:
            raise NotAJournal("this is not a journal of the recorder; name the file that ends in .journal")
        data += stream.read(MAX_JOURNAL_BYTES)
    replayed: Replay | None = None
    torn: list[str] = []
    for kind, body, words in _whole_frames(memoryview(data), torn):
        if kind == b"H" and replayed is None:
            head = _parsed(body)
            if not isinstance(head, dict) or head.get("format") != journal.FORMAT:
                raise NotAJournal(f"it is not of format {journal.FORMAT}; read it with the version that wrote it")
            replayed = Replay(head)
        elif replayed is None:
            raise NotAJournal("its first frame is broken: nothing says which run it is of")
        elif kind == b"E":
            event = _parsed(body)
            if isinstance(event, list) and event and isinstance(event[0], str):
                replayed.events.append(event)
            else:
                torn.append("an event of the journal is not one, and was left out")
        elif kind == b"G":
            page = words[: 8 * journal.GAUGES].ljust(8 * journal.GAUGES, b"\0")
            replayed.gauges, replayed.floats = array("q", page), array("d", page)
        elif kind == b"S":
            steps, have = array("q", words[: len(words) // 16 * 16]), len(replayed.words) // 2
            if len(steps) > 1 and steps[0] != have:
                torn.append(f"steps from {have} to {steps[0]} are not in the journal")
            elif len(steps) > 1:
                # A step has ended once its duration is there; it is written last.
                ended = next((at for at in range(2, len(steps), 2) if not steps[at + 1]), len(steps))
                if have + ended // 2 - 1 <= MAX_JOURNAL_STEPS:
                    replayed.words.extend(steps[2:ended])
    if replayed is None:
        raise NotAJournal("its first frame is broken: nothing says which run it is of")
    replayed.torn, replayed.digest = torn, hashlib.sha256(data).hexdigest()
    return replayed


def _whole_frames(data: memoryview, torn: list[str]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Kind, body and words of every whole frame; behind a broken one, from the next that is whole."""
    at, size = 0, journal.HEAD.size
    while at + size <= len(data):
        mark, kind, _, length, check = journal.HEAD.unpack_from(data, at)
        stop = at + size + length
        if mark == journal.MARK and kind in (b"G", b"S") and at + size <= check <= stop <= len(data) + length:
            # A block that was announced just before the machine went down may be shorter than it says.
            yield kind, b"", bytes(data[check : min(stop, len(data))])
            at = stop
            continue
        if mark == journal.MARK and kind in (b"H", b"E") and length <= MAX_EVENT_BYTES and stop <= len(data):
            body = bytes(data[at + size : stop])
            if crc32(body) == check:
                yield kind, body, b""
                at = stop + 1
                continue
        if not any(data[at:]):
            return  # blocks that were reserved and not yet announced
        following = _next_frame(data, at + 1)
        lost = (following if following >= 0 else len(data)) - at
        torn.append(f"{lost} bytes at {at} of the journal are torn and were left out")
        if following < 0:
            return
        at = following
    if any(data[at:]):
        torn.append(f"{len(data) - at} bytes at {at} of the journal are torn and were left out")


def _next_frame(data: memoryview, at: int) -> int:
    """Where the next whole frame begins; -1 where none does."""
    raw = bytes(data[at:])
    place = raw.find(journal.MARK)
    while place >= 0 and place + journal.HEAD.size <= len(raw):
        _, kind, line, length, check = journal.HEAD.unpack_from(raw, place)
        start = place + journal.HEAD.size
        if line == b"\n" and kind == b"E" and length <= MAX_EVENT_BYTES and crc32(raw[start : start + length]) == check:
            return at + place
        if line == b"\n" and kind in (b"G", b"S") and at + start <= check <= at + start + length <= len(data):
            return at + place
        place = raw.find(journal.MARK, place + 1)
    return -1


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


HOST_OOM = "the kernel's out-of-memory killer ended a process of this control group while the run went on"
SILENT = (
    "the process ended without a word: killed (kill -9, a scheduler, the out-of-memory killer), or the machine went"
)


def recover(path: str) -> RunRecord:
    """The record of a journal. Raises NotAJournal, and OSError where the file cannot be read."""
    replayed = read_journal(path)
    head = replayed.head
    wanted = {"launch": str, "lane": str, "kind": str, "started": str, "host": str, "rank": int, "world": int}
    wanted |= {"begun_ns": int, "begun_wall_ns": int, "process": int, "out": str, "command": str}
    for name, kind in wanted.items():
        if not isinstance(head.get(name), kind):
            raise NotAJournal(f"its first frame says no {name}: it was not written by the recorder")
    if not 0 <= head["rank"] < head["world"] <= identity.MAX_WORLD:
        raise NotAJournal(f"its first frame says rank {head['rank']} of {head['world']}")
    record = RunRecord(head)
    record.journal = replayed.digest
    record.replay(replayed.events)
    record.blocks = [(replayed.words, len(replayed.words))]
    record.gauges = replayed.gauges
    record.losses.gauged(replayed.gauges, replayed.floats)
    record.norms.gauged(replayed.gauges, replayed.floats)
    ends = replayed.words[-2] if replayed.words else 0
    record.last_ns = max(ends, replayed.gauges[journal.BEGUN], replayed.gauges[journal.LAST], head["begun_ns"])
    for line in replayed.torn:
        record.facts.add_note(RECORDER, line)
    if not record.ended:
        _state_end(record, ends)
    return record


def running(record: RunRecord) -> bool:
    """Whether the process that writes this journal is still alive on this host."""
    head = record.head
    if record.ended or not head.get("process_start") or head.get("boot") != identity.boot_id():
        return False
    return bool(identity.process_start(int(head["process"])) == head["process_start"])


def stuck(record: RunRecord) -> run_record.Stall | None:
    """Of a process that still runs on this host: the step that it is stuck in; None where it may step on."""
    return run_record.stall_of(record, perf_counter_ns())


def blame(record: RunRecord, outcome: str, failure: dict[str, Any]) -> None:
    """Replace how the run ended by what others say of it: its log, a person. Step and phase stay."""
    kept: dict[str, Any] = {
        name: record.failure[name] for name in ("phase", "step", "rank", "operator") if name in record.failure
    }
    # A phase that the words tell goes before the one that the steps suggest.
    record.failure = {**kept, **{name: value for name, value in failure.items() if value not in (None, "", "unknown")}}
    record.outcome = outcome
    if outcome == "ok":
        record.failure = {}


def _state_end(record: RunRecord, ends: int) -> None:
    head, gauges = record.head, record.gauges
    wall = head["begun_wall_ns"] + record.last_ns - head["begun_ns"]
    try:
        moment = datetime.fromtimestamp(wall / 1e9, UTC)
    except (OverflowError, OSError, ValueError):
        raise NotAJournal("its clocks are broken: the end of the run is at no time") from None
    record.finished = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record.facts.add_note(RECORDER, "made from the journal: the process did not write its receipt")
    if record.outcome == "hang" and record.signal is not None and record.steps > record.failure.get("step", 0):
        record.outcome, record.failure = None, {}  # it went on after all
    if record.outcome is not None and record.failure:
        return
    inside = gauges[journal.BEGUN] > ends
    compiling = gauges[journal.OPEN_SPAN] == 1
    phase = ending.failure_phase(record.steps, record.warmup, begun=inside, compiling=compiling)
    where = {"step": record.steps, "phase": phase}
    if record.place.world > 1:
        where["rank"] = record.place.rank
    if record.signal is not None:
        record.outcome = "preempted"
        return
    kills = head.get("oom_kills")
    same = head.get("boot") and head.get("boot") == identity.boot_id() and os.path.exists("/proc")
    if isinstance(kills, dict) and same and termination.more_kills(kills) > 0:
        record.outcome, record.failure = "oom", {**where, "class": "host", "message": HOST_OOM}
    else:
        record.outcome, record.failure = "crash", {**where, "message": SILENT}
