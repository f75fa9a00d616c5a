"""The statements of one Markdown page, with their places, links and ignore comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from receipts.plugins.lint.arithmetic import chips_in
from receipts.plugins.lint.markdown import Text, TextBlock, blocks
from receipts.plugins.lint.prose import compares, sentences, statements
from receipts.plugins.lint.quantity import quantities, si
from receipts.plugins.lint.ranking import FIRST, RANKED, ranking_words
from receipts.plugins.lint.statement import UNNAMED, NamedReceipt, PageRemark, Statement, StatementDraft
from receipts.plugins.lint.table import column, in_row

_FIGURE: Final = re.compile(r"[\s~≈]*(?:\d{3,}|\d+[.,]\d+)[kKM]?\s*")  # no `[1]` or `[run 12]`
_FIT: Final = re.compile(
    r"(?P<no>\b(?:not|n['’]t)\s(?:even\s)?(?:fit|OOM)\b|\bcannot\sfit\b|\bno\s(?:longer\sfits?|OOM)\b)|(?P<fits>\bfits?\b)"
    r"|(?P<oom>\bOOM\w*\b|\bout[- ]of[- ]memory\b|\br[ua]n\w*\sout\sof\s\w+)",
    re.IGNORECASE,
)
_DRAFTED: Final = tuple(one.name for one in fields(StatementDraft))


@dataclass(frozen=True, slots=True)
class _Found:
    draft: StatementDraft
    cell: int = 0
    link: NamedReceipt | None = None
    order: str = ""
    about: str = ""


def page(text: str, file: str) -> Iterator[Statement | PageRemark]:
    """Statements and remarks of a page, in order."""
    denominators: dict[int, tuple[float, frozenset[str]]] = {}
    for number, block in enumerate(blocks(text)):
        texts = [one.text for one in block.texts]
        spans = [tuple((start, end) for start, end, _ in one.links) for one in block.texts]
        if block.kind == "row":
            drafts = (
                [_Found(draft, cell) for cell, draft in in_row(block.head, texts, block.heading, spans)]
                if block.head
                else []
            )
        else:
            drafts = [_Found(draft) for draft in statements(texts[0], spans[0])]
        for cell, one in enumerate(block.texts):
            for start, end, link in one.links:
                drafts, remark = _linked(drafts, block, cell, start, end, link)
                if remark is not None:
                    yield PageRemark(file, *one.place(start), *remark)
        ignores, remarks = _ignores(block, file)
        yield from remarks
        if block.kind == "row" and (clash := _denominators(drafts, block, denominators)):
            yield PageRemark(file, *block.texts[clash[0]].place(0), *clash[1:])
        for item in _ordered(drafts, block, number):
            yield _placed(item, block.texts[item.cell], file, ignores)


def _linked(
    drafts: list[_Found], block: TextBlock, cell: int, start: int, end: int, link: NamedReceipt
) -> tuple[list[_Found], tuple[str, str] | None]:
    """The statements, of which a link's are those that it encloses, else the one before it, or the whole row."""
    text = block.texts[cell].text
    inside = [item for item in drafts if item.cell == cell and item.draft.start < end and item.draft.end > start]
    if inside:
        return [replace(item, link=_own(item, inside, link)) if item in inside else item for item in drafts], None
    whole = StatementDraft(start, end, "reading", UNNAMED, (), "") if link.claim and end > start else None
    draft = _fit(text, start, end) or whole
    if draft is not None:
        return sorted([*drafts, _Found(draft, cell, link)], key=lambda item: (item.cell, item.draft.start)), None
    free = [] if _FIGURE.fullmatch(text, start, end) else [item for item in drafts if item.link is None]
    if block.kind != "row":
        free = [item for item in free if item.draft.end <= start][-1:]
    if free:
        return [replace(item, link=link) if item in free else item for item in drafts], None
    if len(link.receipts) == 2 and compares(text[start:end]):
        return [*drafts, _Found(StatementDraft(start, end, "reading", UNNAMED, (), ""), cell, link)], None
    return drafts, (f"{link.target} backs no number", "put the number with its unit into the link's text")


def _fit(text: str, start: int, end: int) -> StatementDraft | None:
    """What linked words say of a shape: that it fits, or runs out of memory; with its limit in bytes, or its number."""
    words = text[start:end]
    match = _FIT.search(words)
    if match is None:
        return None
    good = match["fits"] is not None or (match["no"] is not None and "oom" in match[0].lower())
    number = next((item for item in quantities(words) if item.dimension in ("bytes", "none")), None)
    metric, unit = ("peak_bytes", number.unit) if number and number.unit else ("outcome", "")
    values, halves = (number.values, number.halves) if number else ((), ())
    return StatementDraft(start, end, "fit", metric, values, unit, "up" if good else "down", halves)


def _own(item: _Found, inside: list[_Found], link: NamedReceipt) -> NamedReceipt:
    """The link of a statement: of two readings of one metric, the first is the baseline's."""
    pair = len(inside) == len(link.receipts) == 2
    if pair and all(one.draft.kind == "reading" and one.draft.metric == item.draft.metric for one in inside):
        return replace(link, receipts=(link.receipts[inside.index(item)],))
    return link


def _ignores(block: TextBlock, file: str) -> tuple[dict[int, str], list[PageRemark]]:
    """Reasons by line; line 0 speaks for the whole block. A comment without a reason ignores nothing."""
    marks = [(0, block.ignored[0], 1, block.ignored[1])] if block.ignored else []
    marks += [(line, line, column, reason) for text in block.texts for line, column, reason in text.ignores]
    do = "say why: <!-- receipts: ignore quoted from the vendor's page -->"
    bare = [
        PageRemark(file, line, column, "an ignore comment without a reason", do)
        for _, line, column, reason in marks
        if not re.search(r"\w", reason)
    ]
    return {key: reason for key, _, _, reason in marks if re.search(r"\w", reason)}, bare


def _denominators(
    drafts: list[_Found], block: TextBlock, known: dict[int, tuple[float, frozenset[str]]]
) -> tuple[int, str, str] | None:
    """What a row's FLOP/s and MFU imply as the peak, where an earlier row of its table implies another."""
    readings = {
        item.draft.metric: item for item in drafts if item.draft.kind == "reading" and len(item.draft.values) == 1
    }
    rate, share = readings.get("tflops_per_second_per_chip"), readings.get(RANKED)
    if rate is None or share is None or not rate.draft.values[0] or not share.draft.values[0]:
        return None
    peak = (
        rate.draft.values[0]
        * (si(rate.draft.unit) or 1e12)
        / 1e12
        / (share.draft.values[0] * (0.01 if share.draft.unit == "%" else 1.0))
    )
    chips = chips_in(" | ".join(text.text for text in block.texts))
    first, of = known.setdefault(block.table, (peak, chips))
    if of != chips or max(first, peak) < 1.2 * min(first, peak) or first < 0:
        return None
    known[block.table] = (-1.0, chips)  # once for each table
    words = f"MFU of one column has two denominators: {first:,.0f} and {peak:,.0f} TFLOP/s by the FLOP/s beside it"
    return share.cell, words, "name the peak of each MFU, or give FLOP/s alone"


def _ordered(drafts: list[_Found], block: TextBlock, number: int) -> list[_Found]:
    """The statements, of which those on MFU name what ranks them and the words that name their lane."""
    text = block.texts[0].text if block.texts else ""
    if block.kind == "row":
        words = " | ".join(
            one.text for index, one in enumerate(block.texts) if not any(item.cell == index for item in drafts)
        )
        across = column(text).metric == RANKED and not any(column(one).metric for one in block.head)
        orders = [
            (f"row {number}", block.head[item.cell]) if across else (f"table {block.table}.{item.cell}", words)
            for item in drafts
        ]
        return [
            replace(item, order=of[0], about=of[1]) if item.draft.metric == RANKED else item
            for item, of in zip(drafts, orders, strict=True)
        ]
    if block.numbered:
        return [
            replace(item, order=f"list {block.numbered}", about=text) if item.draft.metric == RANKED else item
            for item in drafts
        ]
    if "MFU" not in text and all(item.draft.metric != RANKED for item in drafts):
        return drafts
    ordered, spans = list(drafts), list(sentences(text))
    holding = [
        [at for at, item in enumerate(ordered) if item.draft.metric == RANKED and start <= item.draft.start < end]
        for start, end in spans
    ]
    extra: list[_Found] = []
    for index, (start, end) in enumerate(spans):
        last = max((ordered[at].draft.end for at in holding[index]), default=start) - start
        words = ranking_words(text[start:end], last)
        if not words:
            continue
        order, near = f"text {number}.{index}", [index - 1] if index else []
        near += [index + 1] if FIRST.search(words) and index + 1 < len(spans) else []
        beside = [one for one in near if holding[one] or re.search(r"\d\s?%", text[slice(*spans[one])])]
        about = " ".join((words, *(text[slice(*spans[one])] for one in beside)))
        members = [at for one in (index, *beside) for at in holding[one] if not ordered[at].order]
        for at in members:
            ordered[at] = replace(ordered[at], order=order)
        if holding[index]:
            ordered[holding[index][0]] = replace(ordered[holding[index][0]], order=order, about=about)
        else:
            draft = StatementDraft(start, start + len(words.rstrip(" .")), "reading", RANKED, (), "")
            extra.append(_Found(draft, order=order, about=about))
    return [*ordered, *extra]


def _placed(item: _Found, text: Text, file: str, ignores: dict[int, str]) -> Statement:
    draft = item.draft
    line, column = text.place(draft.start)
    end_line, end_column = text.place(max(draft.start, draft.end - 1))
    return Statement(
        **{name: getattr(draft, name) for name in _DRAFTED},
        file=file,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column + 1,
        text=text.text[draft.start : draft.end].strip(),
        link=item.link,
        ignored=ignores.get(line, ignores.get(0, "")),
        order=item.order,
        about=item.about,
    )
