"""What stands before a message: rank, host, time, repetition, quotation marks.

What is before a message: whose rank it is, how many ranks said it, whether it is source text that is quoted.

What launchers and loggers put before a line: ranks, hosts, times. Lines of several ranks lie mixed in one file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

RANK: Final = re.compile(
    r"\[(?:rank|Rank|RANK)[ :=]?(\d{1,6})\]|\[default(\d{1,6})\]:|\[\d+,(\d{1,6})\]<std|^\s*(\d{1,6}): "
    r"|\brank[ =:](\d{1,6})\b"
)
_REPEATED = re.compile(r"\[repeated (\d{1,7})x across cluster\]")
_ALONE = re.compile(r"\s*\[repeated (\d{1,7})x across cluster\]")
# A string of a program: an argument, a value, what is looked for.
_STRING = re.compile(r"""(?:(?:[(\[=:+]|\b(?:in|not|and|or|if|return|assert))\s*[fr]?["']|`)$""")
# The message of a record: `level=info msg="Running …`.
_FIELD = re.compile(r"""\b(?:msg|message|log)=["']$""")
_BARE = re.compile(r"""^\s*[fr]?["']$""")


def rank_of(text: str, at: int) -> int | None:
    """The rank that a launcher or logger puts before the message at ``at``: torchrun, srun -l, mpirun; None without."""
    match = RANK.search(text, max(0, at - 300), at)
    return int(next(group for group in match.groups() if group is not None)) if match else None


def repeated(line: str) -> int:
    """How many processes said this: Ray prints equal lines once, with ``[repeated 16x across cluster]``."""
    match = _REPEATED.search(line, max(0, len(line) - 200))
    return max(1, int(match[1])) if match else 1


def repeated_before(line: str) -> int | None:
    """What `repeated` says where the mark was wrapped into a line of its own; None where this line is another one."""
    match = _ALONE.match(line)
    return max(1, int(match[1])) if match else None


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether the message from ``start`` to ``end`` is a string of a program, or is in quotation marks in prose."""
    mark = text[start - 1 : start]
    closed = mark in ('"', "'") and text.find(mark, end, end + 200) >= 0
    return is_source(text, start) or (closed and not _FIELD.search(text[max(0, start - 20) : start]))


def is_source(text: str, at: int) -> bool:
    """Whether the message at ``at`` is quoted: a string of a program (``info("Running …``), or prose."""
    before = text[max(0, at - 80) : at]
    return not _FIELD.search(before) and bool(_STRING.search(before) or (at <= 80 and _BARE.search(before)))


# torch's excepthook, torchrun --tee, mpirun --tag-output, Ray, srun --label, pdsh: who says it.
_SPEAKER: Final = (
    r"\[rank\s?(?P<rank>\d{1,6})\]:?"
    r"|\[?[Rr]ank:? ?(?P<word>\d{1,6})\]?:"
    r"|\[default\d{1,4}\]:"
    r"|\[\d{1,4},(?P<mpi>\d{1,6})\]<std(?:out|err)>:"
    r"|\([\w.:-]{1,60} (?:rank=\d{1,6} )?pid=\d{1,9}(?:, ip=[\d.]{1,40})?\)"
    r"|(?P<srun>\d{1,6}):(?= )"
    r"|[a-z][\w.-]{0,60}\d:(?= )"
)
# Times, levels and source places: they differ from line to line of one speaker.
_TIME: Final = (
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?"
    r"|\[?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)\]?:?(?= )"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9}\s{1,8}\d{1,9} [\w./-]{1,200}:\d{1,6}\]"
    r"|[IWEF] (?=\w)"
    r"|\[?[\w./-]{1,120}\.(?:py|cc|cpp|h):\d{1,6}(?:\]|:(?= ))"
)
_ANY = re.compile(rf"\s{{0,16}}(?:(?P<speaker>{_SPEAKER})|{_TIME})")
_FRAME = re.compile(r'\s{0,80}File "(?P<file>[^"]{1,300})", line (?P<line>\d{1,9})(?:, in (?P<function>\S{1,120}))?')
# Frames of these lie below whatever asked for the memory.
_LIBRARY = re.compile(r"/torch/|/jax/|/jaxlib/|/torch_xla/|/transformer_engine/|/threading\.py|/runpy\.py|<frozen ")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A line without its prefix; ``speaker`` tells the ranks apart, ``rank`` is None where no global rank stands."""

    body: str
    speaker: str = ""
    rank: int | None = None


def spoken(text: str) -> Spoken:
    """Take the prefixes off a line."""
    at = 0
    speaker = ""
    rank: int | None = None
    for _ in range(6):
        match = _ANY.match(text, at)
        if match is None or match.end() == at:
            break
        at = match.end()
        if match["speaker"]:
            speaker += match["speaker"]
            digits = match["rank"] or match["word"] or match["mpi"] or match["srun"]
            rank = int(digits) if digits else rank
    return Spoken(text[at:], speaker, rank) if at else Spoken(text)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python traceback; ``library`` where it is the framework's own."""

    text: str
    library: bool


def frame(body: str) -> Frame | None:
    """The frame that a line of a traceback names, else None."""
    match = _FRAME.match(body)
    if match is None:
        return None
    place = f"{match['file'][-200:]}:{match['line']}"
    text = f"{place} in {match['function']}" if match["function"] else place
    return Frame(text, _LIBRARY.search(match["file"]) is not None)
