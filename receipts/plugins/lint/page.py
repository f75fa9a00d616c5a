"""The statements of one Markdown page, with their places, links and ignore comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from receipts.plugins.lint.markdown import TextBlock, blocks
from receipts.plugins.lint.prose import compares, statements
from receipts.plugins.lint.quantity import quantities
from receipts.plugins.lint.ranking import ordered
from receipts.plugins.lint.statement import UNNAMED, NamedReceipt, PageRemark, Statement
from receipts.plugins.lint.table import in_row

_FIGURE: Final = re.compile(r"[\s~≈]*(?:\d{3,}|\d+[.,]\d+)[kKM]?\s*")  # no `[1]` or `[run 12]`
_FIT: Final = re.compile(
    r"(?P<no>\b(?:not|n['’]t)\s(?:even\s)?(?:fit|OOM)\b|\bcannot\sfit\b|\bno\s(?:longer\sfits?|OOM)\b)|(?P<fits>\bfits?\b)"
    r"|(?P<oom>\bOOM\w*\b|\bout[- ]of[- ]memory\b|\br[ua]n\w*\sout\sof\s\w+)",
    re.IGNORECASE,
)


def page(text: str, file: str) -> Iterator[Statement | PageRemark]:
    """Statements and remarks of a page, in order."""
    for number, block in enumerate(blocks(text)):
        texts = [one.text for one in block.texts]
        spans = [tuple((start, end) for start, end, _ in one.links) for one in block.texts]
        if block.kind == "row":
            items = in_row(block.head, texts, block.heading, spans) if block.head else []
        else:
            items = list(statements(texts[0], spans[0]))
        for cell, one in enumerate(block.texts):
            for start, end, link in one.links:
                linked = _linked(items, block, cell, start, end, link)
                items = linked or items
                if linked is None:
                    do = "put the number with its unit into the link's text"
                    yield PageRemark(file, *one.place(start), f"{link.target} backs no number", do)
        reasons: dict[int, str] = {}  # by line; line 0 speaks for the whole block
        marks = [(0, block.ignored[0], 1, block.ignored[1])] if block.ignored else []
        marks += [(line, line, column, reason) for text in block.texts for line, column, reason in text.ignores]
        for key, line, column, reason in marks:
            if re.search(r"\w", reason):
                reasons[key] = reason
            else:
                do = "say why: <!-- receipts: ignore quoted from the vendor's page -->"
                yield PageRemark(file, line, column, "an ignore comment without a reason", do)
        for item in ordered(items, block, number):
            within = block.texts[item.cell]
            line, column = within.place(item.start)
            end_line, end_column = within.place(max(item.start, item.end - 1))
            yield replace(
                item,
                file=file,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column + 1,
                text=within.text[item.start : item.end].strip(),
                ignored=reasons.get(line, reasons.get(0, "")),
            )


def _linked(
    items: list[Statement], block: TextBlock, cell: int, start: int, end: int, link: NamedReceipt
) -> list[Statement] | None:
    """The statements with a link at those that it encloses, else at the one before it or at the whole row's; None if
    it backs none.
    """
    text = block.texts[cell].text
    inside = [item for item in items if item.cell == cell and item.start < end and item.end > start]
    if inside:
        pair = len(inside) == len(link.receipts) == 2
        pair = pair and all((one.kind, one.metric) == ("reading", inside[0].metric) for one in inside)
        # Of two readings of one metric the first is the baseline's.
        links = [replace(link, receipts=(word,)) for word in link.receipts] if pair else [link] * len(inside)
        return [replace(item, link=links[inside.index(item)]) if item in inside else item for item in items]
    item = _fit(text, start, end)
    if item is None and link.claim and end > start:
        item = Statement(start, end, "reading", UNNAMED)
    if item is not None:
        return sorted([*items, replace(item, cell=cell, link=link)], key=lambda one: (one.cell, one.start))
    free = [] if _FIGURE.fullmatch(text, start, end) else [item for item in items if item.link is None]
    if block.kind != "row":
        free = [item for item in free if item.end <= start][-1:]
    if free:
        return [replace(item, link=link) if item in free else item for item in items]
    if len(link.receipts) == 2 and compares(text[start:end]):
        return [*items, Statement(start, end, "reading", UNNAMED, cell=cell, link=link)]
    return None


def _fit(text: str, start: int, end: int) -> Statement | None:
    """What linked words say of a shape: that it fits, or runs out of memory; with its limit in bytes, or its number."""
    words = text[start:end]
    match = _FIT.search(words)
    if match is None:
        return None
    good = match["fits"] is not None or (match["no"] is not None and "oom" in match[0].lower())
    number = next((item for item in quantities(words) if item.dimension in ("bytes", "none")), None)
    metric, unit = ("peak_bytes", number.unit) if number and number.unit else ("outcome", "")
    values, halves = (number.values, number.halves) if number else ((), ())
    return Statement(start, end, "fit", metric, values, unit, "up" if good else "down", halves)
