"""Where a page ranks lanes by MFU: in a column or a row of a table, in a numbered list, or in a sentence.

Lanes are those of the receipts that the numbers link to, and those that words name: by a framework, an accelerator or
its vendor, as the lanes declare them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from receipts.plugins.lint.markdown import TextBlock
from receipts.plugins.lint.prose import sentences
from receipts.plugins.lint.statement import Statement
from receipts.plugins.lint.table import column
from receipts.receipt.accelerators import ACCELERATORS

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

RANKED: Final = "mfu"
_LEADS: Final = r"best|worst|top|leads?|leading|wins?|won|winner|fastest|slowest|rank(?:s|ed|ing)?|champion"
_FIRST: Final = re.compile(rf"\b(?:{_LEADS})\b", re.IGNORECASE)
_BEATS: Final = re.compile(
    rf"\b(?:{_LEADS}|beats?|beaten|ahead\sof|behind|outperform\w*|trails?|loses?|than|versus|vs|compared\s(?:to|with)|against|"
    r"(?:better|worse|higher|lower|more efficient)|(?:only|just)(?=\s\d)|[\d.]+\s?[x×]\sthe)\b|[<>]",
    re.IGNORECASE,
)
_BOUNDARY: Final = re.compile(
    r"[;:()—,]|\s[–|•·]\s|\b(?:but|while|whereas|which|because|although|though|yet|so)\b", re.IGNORECASE
)


def ordered(items: list[Statement], block: TextBlock, number: int) -> list[Statement]:
    """The statements of a block; those on MFU name what ranks them, and the words that name their lane."""
    text = block.texts[0].text if block.texts else ""
    if block.kind == "row":
        across = column(text).metric == RANKED and not any(column(one).metric for one in block.head)
        with_statements = {item.cell for item in items}
        words = " | ".join(one.text for cell, one in enumerate(block.texts) if cell not in with_statements)
        return [
            replace(
                item,
                order=f"row {number}" if across else f"table {block.table}.{item.cell}",
                about=block.head[item.cell] if across else words,
            )
            if item.metric == RANKED
            else item
            for item in items
        ]
    if block.numbered:
        order = f"list {block.numbered}"
        return [replace(item, order=order, about=text) if item.metric == RANKED else item for item in items]
    return _ordered_in_sentences(items, text, number)


def _ordered_in_sentences(items: list[Statement], text: str, number: int) -> list[Statement]:
    """The statements of a paragraph. One that ranks MFU without a number is added, without values."""
    if "MFU" not in text and all(item.metric != RANKED for item in items):
        return items
    items, spans = list(items), list(sentences(text))
    holding = [
        [at for at, item in enumerate(items) if item.metric == RANKED and start <= item.start < end]
        for start, end in spans
    ]
    for index, (start, end) in enumerate(spans):
        last = max((items[at].end for at in holding[index]), default=start) - start
        words = _ranking_words(text[start:end], last)
        if not words:
            continue
        near = [index - 1] if index else []
        near += [index + 1] if _FIRST.search(words) and index + 1 < len(spans) else []
        beside = [one for one in near if holding[one] or re.search(r"\d\s?%", text[slice(*spans[one])])]
        order, about = f"text {number}.{index}", " ".join((words, *(text[slice(*spans[one])] for one in beside)))
        if not holding[index]:
            end = start + len(words.rstrip(" ."))
            items.append(Statement(start, end, "reading", RANKED, order=order, about=about))
        for one in (index, *beside):
            for at in holding[one]:
                items[at] = replace(items[at], order=items[at].order or order)
        for at in holding[index][:1]:
            items[at] = replace(items[at], order=order, about=about)
    return items


def _ranking_words(text: str, last: int) -> str:
    """The words of a sentence that rank MFU, to the end of the clause of its last number; empty if it ranks none."""
    ranks = [match.end() for match in _BEATS.finditer(text)]
    if not ranks or not (last or re.search(r"\bMFU\b", text)):
        return ""
    boundary = _BOUNDARY.search(text, max(last, *ranks))
    return text[: boundary.start() if boundary else len(text)]


class LaneWords:
    """Words that name lanes in prose: `H200` all that run on one, `Megatron` its own."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        by_word: dict[str, set[str]] = {}
        known = [lane for lane in lanes if lane.accelerators and lane.accelerators != ("cpu",)]
        frameworks = {lane.name: lane.frameworks[0].removesuffix("-core") for lane in known if lane.frameworks}
        parts = {part for word in frameworks.values() if "-" in word for part in word.split("-")}
        for lane in known:
            chips = [chip for chip in ACCELERATORS if chip.key in lane.accelerators]
            words = {word for chip in chips for word in (*chip.names, chip.key.partition("-")[0], chip.vendor)}
            # `torch` is also a part of `torch-xla`, and names no lane.
            for word in (lane.name, *words, *({frameworks.get(lane.name, lane.name)} - parts)):
                by_word.setdefault(word.lower(), set()).add(lane.name)
        words_first = sorted(by_word, key=len, reverse=True)
        written = "|".join(re.escape(word).replace(r"\-", r"[-_ /]?").replace(r"\ ", r"[-_ ]?") for word in words_first)
        self._pattern = re.compile(rf"(?<![\w-])(?:{written})(?![a-z0-9])", re.IGNORECASE)
        self._lanes = {re.sub(r"[-_ /]", "", word): frozenset(names) for word, names in by_word.items()}

    def lanes(self, text: str) -> dict[str, frozenset[str]]:
        """The words of a text that name lanes, as written, with the lanes that each may mean."""
        matches = self._pattern.finditer(text)
        return {match[0]: self._lanes[re.sub(r"[-_ /]", "", match[0].lower())] for match in matches}

    @staticmethod
    def apart(words: dict[str, frozenset[str]]) -> tuple[str, ...]:
        """Two words that have no lane in common; empty if there are none."""
        return next((pair for pair in combinations(words, 2) if not words[pair[0]] & words[pair[1]]), ())
