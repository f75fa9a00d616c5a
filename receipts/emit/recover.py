"""A run that could not write its own receipt, from its journal: every step up to the end, and how it ended.

What the process itself said wins: an exception, SIGTERM. Where it said nothing it was killed, and the kernel's own
count of out-of-memory kills, on the same boot, tells whether by that.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from time import perf_counter_ns

from receipts.emit import cgroup, failures, journal, place, replay, stall
from receipts.emit.facts import RECORDER
from receipts.emit.record import RunRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST_OOM = "the kernel's out-of-memory killer ended a process of this control group while the run went on"
SILENT = (
    "the process ended without a word: killed (kill -9, a scheduler, the out-of-memory killer), or the machine went"
)


def recover(path: str) -> RunRecord:
    """The record of a journal. Raises `replay.NotAJournal`, and OSError where the file cannot be read."""
    replayed = replay.read(path)
    head = _checked(replayed.head)
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
        _end(record, ends)
    return record


def running(record: RunRecord) -> bool:
    """Whether the process that writes this journal is still alive on this host."""
    head = record.head
    if record.ended or not head.get("process_start") or head.get("boot") != place.boot_id():
        return False
    return bool(place.process_start(int(head["process"])) == head["process_start"])


def stuck(record: RunRecord) -> stall.Stall | None:
    """Of a process that still runs on this host: the step that it is stuck in; None where it may step on."""
    return stall.of(record, perf_counter_ns())


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


def _checked(head: dict[str, Any]) -> dict[str, Any]:
    wanted = {"launch": str, "lane": str, "kind": str, "started": str, "host": str, "rank": int, "world": int}
    wanted |= {"begun_ns": int, "begun_wall_ns": int, "process": int, "out": str, "command": str}
    for name, kind in wanted.items():
        if not isinstance(head.get(name), kind):
            raise replay.NotAJournal(f"its first frame says no {name}: it was not written by the recorder")
    if not 0 <= head["rank"] < head["world"] <= place.LARGEST_WORLD:
        raise replay.NotAJournal(f"its first frame says rank {head['rank']} of {head['world']}")
    return head


def _end(record: RunRecord, ends: int) -> None:
    head, gauges = record.head, record.gauges
    wall = head["begun_wall_ns"] + record.last_ns - head["begun_ns"]
    record.finished = _iso(wall)
    record.facts.add_note(RECORDER, "made from the journal: the process did not write its receipt")
    if record.outcome == "hang" and record.signal is not None and record.steps > record.failure.get("step", 0):
        record.outcome, record.failure = None, {}  # it went on after all
    if record.outcome is not None and record.failure:
        return
    inside = gauges[journal.BEGUN] > ends
    where = {
        "step": record.steps,
        "phase": failures.phase(record.steps, record.warmup, begun=inside, compiling=gauges[journal.OPEN_SPAN] == 1),
    }
    if record.place.world > 1:
        where["rank"] = record.place.rank
    if record.signal is not None:
        record.outcome = "preempted"
        return
    kills = head.get("oom_kills")
    same = head.get("boot") and head.get("boot") == place.boot_id() and os.path.exists("/proc")
    if isinstance(kills, dict) and same and cgroup.more_kills(kills) > 0:
        record.outcome, record.failure = "oom", {**where, "class": "host", "message": HOST_OOM}
    else:
        record.outcome, record.failure = "crash", {**where, "message": SILENT}


def _iso(nanoseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, OSError, ValueError):
        raise replay.NotAJournal("its clocks are broken: the end of the run is at no time") from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
