"""Which MFU numbers of a page are put in one order: a column of a table, a numbered list, a comparison in prose.

Lanes of an order are those of the receipts that its numbers link to, and in prose also those that its words name: by a
framework, an accelerator or its vendor, as the lanes declare them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.plugins.lint.cues import BOUNDARY
from receipts.plugins.lint.prose import sentence_at
from receipts.receipt.accelerators import ACCELERATORS

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.plugins.lint.markdown import TextBlock
    from receipts.plugins.lint.statement import StatementDraft

RANKED: Final = "mfu"
_LEADS: Final = r"best|worst|top|leads?|leading|wins?|won|winner|fastest|slowest|rank(?:s|ed|ing)?|champion"
_FIRST: Final = re.compile(rf"\b(?:{_LEADS})\b", re.IGNORECASE)
_ORDER: Final = re.compile(
    rf"\b(?:{_LEADS}|beats?|beaten|ahead of|behind|better|worse|higher|lower|faster|slower|more efficient|"
    r"outperform\w*|than|versus|vs|compared (?:to|with)|against|trails?|loses?|only|just)\b|[<>]",
    re.IGNORECASE,
)
_BEATS: Final = re.compile(
    rf"\b(?:{_LEADS}|beats?|beaten|ahead of|behind|outperform\w*|trails?|loses?|"
    r"(?:better|worse|higher|lower|faster|slower|more efficient) than)\b",
    re.IGNORECASE,
)


class NumberOrder(NamedTuple):
    """The order that a number belongs to; empty for a number in none. ``words`` are those about an order in prose."""

    name: str = ""
    words: str = ""


UNRANKED: Final = NumberOrder()


class RankedOrder:
    """Names the order that each number belongs to, block after block of one file."""

    def __init__(self) -> None:
        self._orders = 0

    def orders(self, block: TextBlock, drafts: Sequence[tuple[StatementDraft, int]], text: str) -> list[NumberOrder]:
        """The order of each statement of a block: by its column (of a row), or by the words about it (in ``text``)."""
        if block.kind != "row" and not block.numbered:
            return self._in_prose([draft for draft, _ in drafts], text)
        table, listed = f"table {block.table}", f"list {block.numbered}"
        return [
            NumberOrder("" if draft.metric != RANKED else f"{table}.{cell}" if block.kind == "row" else listed)
            for draft, cell in drafts
        ]

    def _in_prose(self, drafts: Sequence[StatementDraft], text: str) -> list[NumberOrder]:
        orders = [UNRANKED] * len(drafts)
        places: list[int] = []
        for place, draft in enumerate(drafts):
            if draft.metric != RANKED:
                continue
            if not places or not _is_ordered(text, drafts[places[-1]], draft):
                self._orders += 1
                places = []
            else:
                orders[places[-1]] = orders[places[-1]]._replace(words="")  # the last number keeps them
            places.append(place)
            orders[place] = NumberOrder(f"text {self._orders}", _words(text, drafts[places[0]], draft))
        return orders


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
        self._lanes = {word: frozenset(names) for word, names in by_word.items()}
        words_first = sorted(self._lanes, key=len, reverse=True)
        written = "|".join(re.escape(word).replace(r"\-", r"[-_ /]?").replace(r"\ ", r"[-_ ]?") for word in words_first)
        self._pattern = re.compile(rf"(?<![\w-])(?:{written})(?![a-z0-9])", re.IGNORECASE)
        self._plain = {_plain(word): names for word, names in self._lanes.items()}

    def apart(self, text: str) -> tuple[str, ...]:
        """Two words of a text that no lane has in common, as written; empty where none are."""
        words = {
            match[0]: self._plain[re.sub(r"[-_ /]", "", match[0].lower())] for match in self._pattern.finditer(text)
        }
        return next((pair for pair in combinations(words, 2) if not words[pair[0]] & words[pair[1]]), ())


def _plain(word: str) -> str:
    return re.sub(r"[-_ /]", "", word)


def _words(text: str, first: StatementDraft, last: StatementDraft) -> str:
    """What is said of numbers in one order: to the end of the clause of the last, or of the word that ranks it.

    Empty where one number is alone and nothing says that it is above or below another.
    """
    start, end = sentence_at(text, first.start)[0], sentence_at(text, last.start)[1]
    ranks = [match.end() for match in _BEATS.finditer(text, start, end)]
    boundary = BOUNDARY.search(text, max([last.end, *ranks]), end)
    words = text[start : boundary.start() if boundary else end]
    return words if first is not last or last.kind == "ratio" or _ORDER.search(words) else ""


def _is_ordered(text: str, first: StatementDraft, second: StatementDraft) -> bool:
    """Whether words about two numbers compare them: between them, in the sentence of the second, or a superlative."""
    start, end = sentence_at(text, second.start)
    before, after = sentence_at(text, first.start)
    region = text[min(first.end, start) if start <= first.start else start : end] + " " + text[first.end : second.start]
    return bool(_ORDER.search(region) or _FIRST.search(text[before:after]))
