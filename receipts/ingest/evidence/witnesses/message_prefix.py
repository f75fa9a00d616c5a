"""What is before a message: whose rank it is, how many ranks said it, whether it is source text that is quoted."""

from __future__ import annotations

import re

_RANK = re.compile(
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
    match = _RANK.search(text, max(0, at - 300), at)
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
