"""What a log says at its end where no Python error ended the launch: a time-out of ranks, a scheduler, a signal.

Sources: `ProcessGroupNCCL.cpp` and Gloo of torch 2.x, slurmstepd of Slurm 23, the report of torchrun 2.x.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from receipts.ingest.evidence import FileEvidence
from receipts.ingest.evidence.registry import line_readers
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.stream import Source

_ENDS: Final = (
    ("hang", rb"watchdog caught collective operation timeout|timed out (?:after )?waiting \d+ ?ms for (?:recv|send)"),
    ("preempted", rb"\*\*\* (?:job|step) [^\n*]{1,80} cancelled at "),
    ("crash", rb"signal \d{1,2} \(sig(?:kill|segv|abrt|bus|fpe|ill)\) received by pid"),
)


class LastWords(NamedTuple):
    """``outcome`` of the launch, and the line that shows it."""

    outcome: str
    line: str


def last_words(file: FileEvidence) -> LastWords | None:
    """Which of them stands first at the end of a log, behind its last step; None in one that says that it ended well.

    Packed files are not looked at.
    """
    if any(reading.complete for reading in file.readings):
        return None
    tail = Source(file.path, file.name).tail
    matches = [(match, outcome) for outcome, words in _ENDS for match in re.finditer(words, tail, re.IGNORECASE)]
    for match, outcome in sorted(matches, key=lambda item: item[0].start()):
        if not prints_steps(file, tail[match.end() :]):
            begin = tail.rfind(b"\n", 0, match.start()) + 1
            line = tail[begin:].partition(b"\n")[0]
            return LastWords(outcome, line.decode("utf-8", "replace").strip()[:500])
    return None


def prints_steps(file: FileEvidence, text: bytes) -> bool:
    """Whether a part of a file holds steps of the kinds that the file has."""
    sources = {reading.source for reading in file.readings if len(reading.steps)}
    kinds = [kind for kind in line_readers() if kind.source in sources]
    return bool(kinds) and any(len(reading.steps) for reading in scan([text], kinds))
