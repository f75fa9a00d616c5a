"""The entries of a printed Python dict, as raw text: nothing is evaluated, whatever stands there is only cut apart.

A printed dict holds what no parser of JSON or of literals takes: `<Version('2.4.2')>`, `<class 'torch.Tensor'>`,
`torch.bfloat16`, `tensor(5743, dtype=torch.int32)`, `Counter({'total': 3})`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_ENTRIES: Final = 2000
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}
_STEP = re.compile(r"""['"\\()\[\]{},:<>]""")
_REPR = re.compile(r"""<(?:[\w.]+\(\s*['"]([^'"]*)['"]\s*\)|class\s+['"]([^'"]*)['"])>""")


def ends_at(text: str, start: int = 0) -> int | None:
    """Where the bracket that opens at ``start`` is closed (the place after it), or None where it is not."""
    stack: list[str] = []
    for sign, at in _signs(text, start):
        if sign in _OPEN:
            stack.append(_OPEN[sign])
        elif stack and sign == stack[-1]:
            stack.pop()
            if not stack:
                return at + 1
    return None


def entries(text: str) -> dict[str, str]:
    """Keys and raw values of ``{'a': 1, …}``; of a dict that is cut off, those entries that are whole.

    Values keep their quotes and brackets, see `plain`. Text before the first brace is skipped.
    """
    found: dict[str, str] = {}
    begin = text.find("{")
    if begin < 0:
        return found
    at = begin + 1
    while len(found) < MAX_ENTRIES:
        colon = _next(text, at, ":")
        if colon is None:
            break
        stop = _next(text, colon + 1, ",}")
        if stop is None:
            break
        found[plain(text[at:colon])] = text[colon + 1 : stop].strip()
        if text[stop] == "}":
            break
        at = stop + 1
    return found


def plain(value: str) -> str:
    """A raw value without its quotes: ``'9.3.0'`` and ``<Version('9.3.0')>`` are both 9.3.0."""
    word = value.strip()
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    if match := _REPR.fullmatch(word):
        return match[1] if match[1] is not None else match[2]
    return word


def _next(text: str, start: int, signs: str) -> int | None:
    """The first of ``signs`` after ``start`` that stands in no bracket and in no quotes."""
    depth = 0
    for sign, at in _signs(text, start):
        if depth == 0 and sign in signs:
            return at
        if sign in _OPEN:
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0:
                return None
    return None


def _signs(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Brackets, commas and colons that stand in no quotes, each with its place."""
    quote = ""
    at = start
    while match := _STEP.search(text, at):
        sign, at = match[0], match.end()
        if sign == "\\":
            at += 1 if quote else 0
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            yield sign, match.start()
