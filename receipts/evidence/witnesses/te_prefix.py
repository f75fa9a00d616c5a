"""What stands before a message: whose rank it is, how many ranks said it, whether it is source text that is quoted."""

from __future__ import annotations

import re

_RANK = re.compile(
    r"\[(?:rank|Rank|RANK)[ :=]?(\d{1,6})\]|\[default(\d{1,6})\]:|\[\d+,(\d{1,6})\]<std|^\s*(\d{1,6}): "
    r"|\brank[ =:](\d{1,6})\b"
)
_REPEATED = re.compile(r"\[repeated (\d{1,7})x across cluster\]")
_ALONE = re.compile(r"\s*\[repeated (\d{1,7})x across cluster\]")
_CALL = re.compile(r"""(?:\(\s*[fr]?["']|`)$""")
_BARE = re.compile(r"""^\s*[fr]?["']$""")


def rank_of(prefix: str) -> int | None:
    """The rank that a launcher or logger puts before its lines: torchrun, srun -l, mpirun, `[rank3]`; None without."""
    match = _RANK.search(prefix[-300:])
    return int(next(group for group in match.groups() if group is not None)) if match else None


def repeated(line: str) -> int:
    """How many processes said this: Ray prints equal lines once, with ``[repeated 16x across cluster]``."""
    match = _REPEATED.search(line, max(0, len(line) - 200))
    return max(1, int(match[1])) if match else 1


def repeated_before(line: str) -> int | None:
    """What `repeated` says where the mark was wrapped into a line of its own; None where this line is another one."""
    match = _ALONE.match(line)
    return max(1, int(match[1])) if match else None


def is_source(prefix: str) -> bool:
    """Whether the message is quoted: a program's string in a traceback, ``logger.info("Running …``, or prose."""
    tail = prefix[-80:]
    return bool(_CALL.search(tail) or _BARE.search(tail))
