"""What a collector or a viewer puts before every line: a time, a stream, a pod, the number of the line.

A margin is the same on nearly all lines but for its times and for a number that only grows. A rank varies and does
not grow, so a margin ends before it. Readers find their records behind any margin; tables, dumps and blocks of several
lines need it gone. A margin is taken away only where the log then tells more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.unwrap import figures

_DAY: Final = (
    rb"\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d[-/]\d{2,4}|"
    rb"(?:[A-Z][a-z]{2},? {1,2})?(?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2})(?: \d{4})?"
)
_CLOCK: Final = rb"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: [AP]M)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?: \d{4}(?=\W))?"
_TIME: Final = re.compile(rb"(?:(?:" + _DAY + rb")[T ])?" + _CLOCK + rb"|\d{10}\.\d{1,9}")
_NUMBER: Final = rb"(?:(?!\d{1,9}:)[\w./-]{1,200}[:-])?[ \t]{0,12}(\d{1,9})"
_NUMBERED: Final = re.compile(_NUMBER + rb"[:\t|]")
_STREAM: Final = re.compile(rb"\bstd(?:out|err)\b")
# Characters after which a margin may end; a time and a number end one, too.
_ENDS: Final = b" \t|:>]\0\1\2"
_MARKS: Final = {0: rb"(?:" + _TIME.pattern + rb")", 1: _NUMBER, 2: _STREAM.pattern}
_DIGITS: Final = re.compile(rb"\d+")
_MARK: Final = re.compile(rb"[\0\1\2]")
# How a margin of words alone ends: other words are those of the records.
_CONSTANT: Final = (b" ", b"\t", b"]:", b">:")
_LONGEST: Final = 240
_SAMPLE: Final = 400
_FEWEST: Final = 2
_SHARE: Final = 0.9

Cut = Callable[[bytes], bytes]


def bare(text: bytes) -> Cut:
    """What takes the margin off whole lines like those of ``text``, if they then tell more; else nothing off."""
    kinds: dict[bytes, bytes] = {}
    for line in text.split(b"\n"):
        kinds.setdefault(_DIGITS.sub(b"0", line), line)
    # Thousands of steps show no more than one.
    sample = b"\n".join(kinds.values())
    cut = margin(sample)
    return cut if cut is not None and figures(scan([cut(sample)])) > figures(scan([sample])) else lambda piece: piece


def margin(text: bytes) -> Cut | None:
    """What takes the margin off whole lines; None where they have none."""
    heads = [line[:_LONGEST] for line in text.split(b"\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    counts = [match for match in map(_NUMBERED.match, heads) if match]
    if len(counts) == len(heads) and all(int(a[1]) < int(b[1]) for a, b in pairwise(counts)):
        heads = [b"\1" + head[match.end(1) :] for head, match in zip(heads, counts, strict=True)]
    heads = [_STREAM.sub(b"\2", _TIME.sub(b"\0", head)) for head in heads]
    common = _common(heads)
    while _DIGITS.search(common) and _varies(common, heads):
        common = _ended(common[: [match.start() for match in _DIGITS.finditer(common)][-1]])
    if not common.strip(b" \t>") or not (_MARK.search(common) or common.endswith(_CONSTANT)):
        return None
    words = b"".join(_MARKS.get(byte) or re.escape(bytes([byte])) for byte in common.rstrip(b" "))
    # Viewers cut blanks from the end of a line that holds nothing else.
    blanks = rb"(?: {%d}|(?=\r?$))" % (len(common) - len(common.rstrip(b" ")))
    pattern = re.compile(rb"^" + words + blanks, re.MULTILINE)
    return lambda piece: pattern.sub(b"", piece)


def _common(heads: Iterable[bytes]) -> bytes:
    """The beginning that nearly all have in common, up to the end of a word; those that differ in digits are one."""
    rest = list({_DIGITS.sub(b"0", head): head for head in heads}.values())
    least, at = max(_FEWEST, _SHARE * len(rest)), 0
    while True:
        following = Counter(head[at] for head in rest if len(head) > at)
        byte, count = following.most_common(1)[0] if following else (0, 0)
        if count < least:
            return _ended(rest[0][:at]) if rest else b""
        rest = [head for head in rest if len(head) > at and head[at] == byte]
        at += 1


def _ended(text: bytes) -> bytes:
    """A beginning as far as its last word ends."""
    return text[: max(text.rfind(_ENDS[at : at + 1]) for at in range(len(_ENDS))) + 1]


def _varies(common: bytes, heads: Iterable[bytes]) -> bool:
    """Whether some lines begin alike but for a number, such as a rank."""
    like = re.compile(rb"\d+".join(map(re.escape, _DIGITS.split(common))))
    return any(like.match(head) and not head.startswith(common) for head in heads)
