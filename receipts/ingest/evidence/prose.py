"""Pages that people write: what they say of memory is no evidence of a run, except in the blocks that they quote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from receipts.ingest.evidence.reading import Reading

_HEADING: Final = re.compile(r"#{1,5} \S|[=-]{4,}$")
# A heading, an entry of a list, a row of a table, a quotation, or a sentence.
_MARK: Final = re.compile(r"#{1,5} \S|[-*+] \S|\d{1,2}[.)] \S|\||> ")
_SENTENCE: Final = re.compile(r"[A-Z\"'(`*\[].{30,}[.:;,?!)`*]$|[a-z(`*\[\"].{40,}[a-z.,;:)`*]$")
_FENCE: Final = ("```", "~~~")
_FEWEST: Final = 5
_SHARE: Final = 0.6


def without_prose(text: str, readings: Iterable[Reading]) -> list[Reading]:
    """The readings of a text; of a page of prose, without memory and failures that it does not quote in a block."""
    kept = list(readings)
    # A log may begin with the program's own source, whose comments look like a page.
    if not any(item.memory or item.failures for item in kept) or any(len(item.steps) for item in kept):
        return kept
    lines = text.split("\n")
    quoted = _quoted(lines)
    if not _is_page(line for number, line in enumerate(lines, 1) if number not in quoted):
        return kept
    for reading in kept:
        memory = [row for row in reading.memory if row.place.line in quoted]
        failures = [item for item in reading.failures if item.place.line in quoted]
        if (len(memory), len(failures)) != (len(reading.memory), len(reading.failures)):
            reading.memory, reading.failures = memory, failures
            reading.remark("note", "this is a page of prose: its words on memory are no evidence of a run")
    return [item for item in kept if item.memory or item.failures or item.stated or item.seen or len(item.steps)]


def _quoted(lines: Iterable[str]) -> set[int]:
    """Numbers of the lines within fences, or indented as code is."""
    numbers: set[int] = set()
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
        elif fenced or line.startswith(("    ", "\t")):
            numbers.add(number)
    return numbers


def _is_page(lines: Iterable[str]) -> bool:
    """Whether most lines are marked up or are sentences, and some line is a heading."""
    texts = [line.strip() for line in lines if line.strip()]
    words = sum(bool(_MARK.match(text) or _SENTENCE.match(text)) for text in texts)
    return words >= max(_FEWEST, _SHARE * len(texts)) and any(_HEADING.match(text) for text in texts)
