"""The statements of one Markdown file, with their places, links and ignore comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from receipts.plugins.lint import cues
from receipts.plugins.lint.cues import Sentence, nearest
from receipts.plugins.lint.markdown import Text, TextBlock, blocks, definitions, read_inline
from receipts.plugins.lint.measurements import OUT_OF, rate_metric
from receipts.plugins.lint.prose import statements
from receipts.plugins.lint.quantity import in_order, quantities
from receipts.plugins.lint.ranking import UNRANKED, NumberOrder, RankedOrder
from receipts.plugins.lint.reading import reading, stated
from receipts.plugins.lint.relative import of_ratio
from receipts.plugins.lint.statement import NamedReceipt, Statement, StatementDraft
from receipts.plugins.lint.table import Head, in_row, read_head

_METRIC_OF = {"bytes": "peak_bytes", "time": "step_seconds", "bandwidth": "bandwidth"}
_UNIT_OF = {"percent": "%", "ratio": "×", "points": "points"}

# A link's text that is a figure of its own, and no `[1]` or `[run 12]`.
_FIGURE = re.compile(r"[\s~≈]*(?:\d{3,}|\d+[.,]\d+)[kKM]?(?:\s?(?:to|–|-)\s?[\d.,]+[kKM]?)?\s*")
_ITEM = re.compile(r"(?:^|[,;|·]\s)(?P<item>[^,;|·]+)")
# Between two numbers, of which the second is then the earlier one: `412 TFLOP/s, up from 390`.
_BEFORE = re.compile(
    r"\b(?:from|instead of|rather than|against|compared (?:to|with)|over|vs\.?|versus)\b", re.IGNORECASE
)
_DRAFTED = tuple(one.name for one in fields(StatementDraft))


@dataclass(frozen=True, slots=True)
class PageRemark:
    """Something wrong with the page's own notes to this command: an ignore without a reason, a link to no number."""

    file: str
    line: int
    column: int
    text: str
    do: str


@dataclass(frozen=True, slots=True)
class _Found:
    draft: StatementDraft
    text: Text
    link: NamedReceipt | None = None
    cell: int = 0
    order: NumberOrder = UNRANKED


def page(open_lines: Callable[[], Iterable[str]], file: str) -> Iterator[Statement | PageRemark]:
    """Statements and remarks of a file, in order. ``open_lines`` gives its lines, and is called twice.

    The first reading only looks for link definitions, which may be below the links.
    """
    named = definitions(open_lines())
    ranking = RankedOrder()
    for block in blocks(open_lines()):
        yield from _block(block, file, named, ranking)


def _block(
    block: TextBlock, file: str, named: dict[str, str], ranking: RankedOrder
) -> Iterator[Statement | PageRemark]:
    if block.kind == "row":
        readings, texts = _row(block, named)
    else:
        text = read_inline(block.raw, named)
        readings = [_Found(draft, text) for draft in statements(text.text, block.heading)]
        texts = [text]
    drafts = [(item.draft, item.cell) for item in readings]
    orders = ranking.orders(block, drafts, texts[0].text if texts else "")
    linked = [replace(item, order=order) for item, order in zip(readings, orders, strict=True)]
    for text in texts:
        for start, end, link in text.links:
            linked, remark = _linked(linked, text, start, end, link, block, file)
            if remark is not None:
                yield remark
    ignores, remarks = _ignores(block, texts, file)
    yield from remarks
    for item in linked:
        yield _placed(item, block, file, ignores)


@lru_cache(maxsize=8)
def _head(cells: tuple[str, ...], heading: str) -> Head:
    return read_head(cells, heading)


def _row(block: TextBlock, named: dict[str, str]) -> tuple[list[_Found], list[Text]]:
    texts = [read_inline(cell.raw, named, base=cell.column) for cell in block.cells]
    if not block.head:
        return [], texts
    head = _head(tuple(read_inline(cell, {}).text for cell in block.head), block.heading)
    return [
        _Found(draft, texts[index], cell=index) for index, draft in in_row(head, [text.text for text in texts])
    ], texts


def _linked(
    drafts: list[_Found], text: Text, start: int, end: int, link: NamedReceipt, block: TextBlock, file: str
) -> tuple[list[_Found], PageRemark | None]:
    """The statements with a link joined to those that it backs: those it encloses, else the one before it, or the
    whole row. A linked number that nothing marks as performance is taken for one: the link says so."""
    inside = [item for item in drafts if item.text is text and item.draft.start < end and item.draft.end > start]
    if inside:
        own = {id(item): _own(item, inside, link) for item in inside}
        held = [_held(item, own[id(item)], start, end) if id(item) in own else item for item in drafts]
        return _sorted([*held, *(_Found(draft, text, link) for draft in _listed(text.text, start, end, inside))]), None
    forced = _forced(text.text, start, end) or _beside(
        [item.draft for item in drafts if item.text is text], text, start, end
    )
    if forced is not None:
        return _sorted([*drafts, _Found(forced, text, link)]), None
    if _FIGURE.fullmatch(text.text, start, end):
        free = []
    elif block.kind == "row":
        free = [item for item in drafts if item.link is None]
    else:
        free = [item for item in drafts if item.link is None and item.draft.end <= start][-1:]
    if free:
        return [replace(item, link=link) if item in free else item for item in drafts], None
    line, column = block.place(text.source(start))
    return drafts, PageRemark(
        file, line, column, f"{link.target} backs no number", "put the number into the link's text"
    )


def _own(item: _Found, inside: list[_Found], link: NamedReceipt) -> NamedReceipt:
    """The link of a statement: of two readings of one metric, the first is the baseline's and the second the
    candidate's."""
    pair = len(inside) == len(link.receipts) == 2
    if pair and all(one.draft.kind == "reading" and one.draft.metric == item.draft.metric for one in inside):
        first, second = inside
        after = _BEFORE.search(item.text.text, first.draft.end, second.draft.start) is not None
        return replace(link, receipts=(link.receipts[inside.index(item) ^ after],))
    return link


def _sorted(drafts: list[_Found]) -> list[_Found]:
    return sorted(drafts, key=lambda item: item.text.source(item.draft.start))


def _listed(text: str, start: int, end: int, inside: list[_Found]) -> Iterator[StatementDraft]:
    """Sizes that are items of their own in a linked list of figures: `[98k tok/s, 41 % MFU, 71 GiB](…)`."""
    for item in _ITEM.finditer(text, start, end):
        quantity = next(quantities(item["item"]), None)
        free = all(one.draft.end <= item.start("item") or one.draft.start >= item.end("item") for one in inside)
        alone = quantity is not None and quantity.end == len(item["item"].strip())
        if free and quantity is not None and alone and quantity.dimension == "bytes":
            yield stated(quantity, "reading", "peak_bytes", quantity.unit, offset=item.start("item"))


def _held(item: _Found, link: NamedReceipt, start: int, end: int) -> _Found:
    """A statement with its link. Of two numbers of which the link of one receipt holds one, that one is held to it."""
    draft = item.draft
    own = [value for one in quantities(item.text.text[start:end]) for value in one.values]
    if len(link.receipts) == 1 and len(draft.values) == 2 and len(own) == 1:
        at = 1 if draft.start < start else 0
        values, halves = (draft.values[at],), (draft.halves[at],)
        narrow = (max(draft.start, start), min(draft.end, end))
        draft = replace(draft, start=narrow[0], end=narrow[1], kind="reading", values=values, halves=halves)
    return replace(item, draft=draft, link=link)


def _beside(drafts: list[StatementDraft], text: Text, start: int, end: int) -> StatementDraft | None:
    """A linked number without a unit as a statement of the metric of the number before it: `98.2k → [112.4k](…)`."""
    last = next((draft for draft in reversed(drafts) if draft.end <= start and draft.kind == "reading"), None)
    for quantity in quantities(text.text[start:end]):
        if last is None or quantity.dimension != "none" or not 0.2 < quantity.values[0] / (last.values[0] or 1.0) < 5:
            return None
        return stated(quantity, "reading", last.metric, last.unit, offset=start)
    return None


def _forced(text: str, start: int, end: int) -> StatementDraft | None:
    """The statement that a link makes of the number in its text; the words around the link say which way it goes."""
    for quantity in in_order(text):
        outside = quantity.start < start or quantity.end > end
        if quantity.dimension == "none" or outside or OUT_OF.search(text, start, quantity.start):
            continue
        away, closest = nearest(Sentence(text), start, end, cues.METRIC_CUE)
        near = cues.METRIC_CUE.search(text, start, end) or closest
        if quantity.dimension not in _UNIT_OF:
            metric = _METRIC_OF.get(quantity.dimension) or rate_metric(quantity)
            return reading(quantity, metric, text)
        metric = (near.lastgroup if near is not None else None) or "tokens_per_second"
        if nearest(Sentence(text), start, end, cues.OTHER_QUANTITY)[0] < away:
            metric = "other_quantity"
        unit = _UNIT_OF[quantity.dimension]
        if unit == "%" and metric in ("mfu", "utilisation") and not quantity.worded:
            return stated(quantity, "change" if quantity.joined == "change" else "reading", metric, unit)
        return of_ratio(text, quantity, "change" if unit == "points" else "ratio", metric, unit)
    return None


def _ignores(block: TextBlock, texts: list[Text], file: str) -> tuple[dict[int, str], list[PageRemark]]:
    """Reasons by line; line 0 speaks for the whole block. A comment without a reason ignores nothing."""
    marks = [(block.lines[0][1], 1, block.ignored)] if block.ignored is not None else []
    marks += [(*block.place(offset), reason) for text in texts for offset, reason in text.ignores]
    ignored: dict[int, str] = {}
    remarks = []
    for index, (line, column, reason) in enumerate(marks):
        if not re.search(r"\w", reason or ""):
            do = "say why: <!-- receipts: ignore quoted from the vendor's page -->"
            remarks.append(PageRemark(file, line, column, "an ignore comment without a reason", do))
            continue
        ignored[0 if index == 0 and block.ignored is not None else line] = reason or ""
    return ignored, remarks


def _placed(item: _Found, block: TextBlock, file: str, ignores: dict[int, str]) -> Statement:
    draft = item.draft
    line, column = block.place(item.text.source(draft.start))
    end_line, end_column = block.place(item.text.source(max(draft.start, draft.end - 1)) + 1)
    return Statement(
        **{name: getattr(draft, name) for name in _DRAFTED},
        file=file,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        text=item.text.text[draft.start : draft.end].strip(),
        link=item.link,
        ignored=ignores.get(line, ignores.get(0, "")),
        order=item.order.name,
        about=item.order.words,
    )
