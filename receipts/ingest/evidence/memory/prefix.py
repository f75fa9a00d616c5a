"""What launchers and loggers put before a line: ranks, hosts, times. Lines of several ranks lie mixed in one file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
