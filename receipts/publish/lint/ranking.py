"""Which MFU numbers of a page are put in one order: a column of a table, a numbered list, a comparison in prose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from receipts.publish.lint.prose import sentence_at

if TYPE_CHECKING:
    from receipts.publish.lint.blocks import TextBlock
    from receipts.publish.lint.statement import StatementDraft

RANKED: Final = "mfu"
_LEADS: Final = r"best|worst|top|leads?|leading|wins?|won|winner|fastest|slowest|rank(?:s|ed|ing)?|champion"
_FIRST: Final = re.compile(rf"\b(?:{_LEADS})\b", re.IGNORECASE)
_ORDER: Final = re.compile(
    rf"\b(?:{_LEADS}|beats?|beaten|ahead of|behind|better|worse|higher|lower|faster|slower|more efficient|"
    r"outperform\w*|than|versus|vs|compared (?:to|with)|against|trails?|loses?|only|just)\b|[<>]",
    re.IGNORECASE,
)


class RankedOrder:
    """Names the order that a number belongs to, block after block of one file; empty for a number in none."""

    def __init__(self) -> None:
        self._orders = 0

    def orders(self, block: TextBlock, drafts: Sequence[tuple[StatementDraft, int]], text: str) -> list[str]:
        """The order of each statement of a block: by its column (of a row), or by the words about it (in ``text``)."""
        if block.kind != "row" and not block.numbered:
            return self._in_prose([draft for draft, _ in drafts], text)
        table, listed = f"table {block.table}", f"list {block.numbered}"
        return [
            "" if draft.metric != RANKED else f"{table}.{cell}" if block.kind == "row" else listed
            for draft, cell in drafts
        ]

    def _in_prose(self, drafts: Sequence[StatementDraft], text: str) -> list[str]:
        names, last = [], None
        for draft in drafts:
            if draft.metric != RANKED:
                names.append("")
                continue
            if last is None or not _is_ordered(text, last, draft):
                self._orders += 1
            names.append(f"text {self._orders}")
            last = draft
        return names


def _is_ordered(text: str, first: StatementDraft, second: StatementDraft) -> bool:
    """Whether words about two numbers compare them: between them, in the sentence of the second, or a superlative."""
    start, end = sentence_at(text, second.start)
    before, after = sentence_at(text, first.start)
    region = text[min(first.end, start) if start <= first.start else start : end] + " " + text[first.end : second.start]
    return bool(_ORDER.search(region) or _FIRST.search(text[before:after]))
