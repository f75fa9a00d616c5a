"""The statements of one Markdown page, with their places, links and ignore comments.

In a table a column's head, or else the row's first cell, says what a bare number is. A page ranks lanes by MFU in a
column or a row of a table, in a numbered list, or in a sentence; lanes are those of the receipts that the numbers link
to, and those that words name: by a framework, an accelerator or its vendor, as the lanes declare them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from receipts import metrics
from receipts.plugins.lint.arithmetic import beyond_hardware, disagreement
from receipts.plugins.lint.markdown import TextBlock, blocks
from receipts.plugins.lint.prose import compares, in_sentence, rate_metric, reading, sentences, stated, statements
from receipts.plugins.lint.statement import (
    UNIT,
    UNNAMED,
    Direction,
    NamedReceipt,
    PageRemark,
    Quantity,
    Statement,
    quantities,
)

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


_NO_METRIC: Final = re.compile(
    r"\b(?:(?:BF16|FP8|FP16|dense|sparse|compute|theoretical)\s?peak|peak\s(?:T?FLOP\w*|BF16|FP8|compute)|bandwidth|TDP|price|cost|params?|"
    r"parameters|size|disk|limit|budget|dataset|checkpoint|target|expected|spec\w*|capacity|loss|acc\w*|val\w*|ppl|lr|score)\b|/\s?(?:\$|W)",
    re.IGNORECASE,
)
_MACHINE: Final = re.compile(
    r"\W*(?:accelerators?|GPUs?|chips?|devices?|cards?|hardware|machines?|TPUs?|systems?)\W*$", re.IGNORECASE
)
_SPECIFIED: Final = re.compile(r"\b(?:HBM|TDP|bandwidth|price|NVLink|(?:\w+\s)?peak|peak\s\w+)\b", re.IGNORECASE)
_RELATIVE: Final = re.compile(
    r"\b(?:speed-?ups?|vs\.?|versus|relative|effect|delta|change|gain|ratio|improvement|against|compared|slow-?down|overhead|difference)\b|Δ|×",
    re.IGNORECASE,
)
# What a title says of its column, the first that it names; of `other` no receipt has a figure.
_TITLES: Final = {
    "mfu": r"\bMFU\b|flops?\sutili[sz]ation|\bof\speak\b",
    "other": r"\bHFU\b|utili[sz]ation|goodput|\befficiency\b"
    r"|\b(?:samples?|(?-i:S)|seqs?|sequences?|images?|examples?|steps?|its?|iters?|iterations?)\s?(?:/|per\s)\s?s",
    "tflops_per_second_per_chip": r"[TGP]FLOPS?\b|[TGP]FLOPs?/s",
    "tokens_per_second": r"\btok(?:en)?s?\s?(?:/(?:gpu|chip|device)\s?)?(?:/|per\s|a\s)\s?s|\bthroughput\b"
    r"|\b(?:tps|wps|tgs)\b",
    "compile_seconds": r"\bcompil\w*[- ](?:times?|overhead|\(m?s\))|^\W*compil(?:e|ation)\W*$|\bcold\sstart\b",
    "step_seconds": r"\b(?:step|iter\w*)[-_ ]?(?:times?|duration|seconds|\(m?s\)|ms\b)|\b(?:m?s|sec)/(?:it|step|iter)"
    r"|\bper\s(?:\w+\s)?(?:step|iter\w*)\b.*\(m?s\)|^\s*step\s*$",
    "another time": r"\b(?:training|train|wall|total|epoch|run)[-_ ]?(?:clock|times?|\()|\blatency\b|\bp\d\d\b"
    r"|\bkernel\stime\b|\((?:ms|µs|s)\)|^\s*(?:ms|seconds|time)\s*$",
    "peak_bytes": r"\bmem(?:ory)?\b|\b[GM]i?B\b|\bpeak\b|\balloc\w*|\breserved\b|\bVRAM\b"
    r"|\bHBM\s(?:used?|peak|usage)\b",
}
_METRICS: Final = {name: re.compile(text, re.IGNORECASE) for name, text in _TITLES.items()}
_EACH: Final = re.compile(r"\b(?:gpu|chip|device|card)\b|\btgs\b", re.IGNORECASE)
_UNIT: Final = re.compile(
    r"\b(?P<unit>ms|µs|us|seconds?|secs?|s|min(?:utes)?|[kMGT]i?B)\b|(?P<flops>[GTP])FLOP|(?P<percent>%)", re.IGNORECASE
)
_NUMERIC: Final = re.compile(rf"(?:[\s()\[\]~≈<>±+/:,→⇒*_†‡¹²³%\d.\-−–kKMGx×]|\b(?:vs|to)\b|{UNIT})*", re.IGNORECASE)
_DEFAULT: Final = {"mfu": "%", "tokens_per_second": "tokens/s", "tflops_per_second_per_chip": "TFLOP/s"}


class Column(NamedTuple):
    """What a head, or the first cell of a row, says of its numbers: their metric and unit, or that they compare."""

    metric: str = ""
    unit: str = ""
    scale: float = 1.0
    relative: bool = False


@lru_cache(maxsize=1024)
def column_of(head: str) -> Column:
    """A column or row as its title describes it."""
    relative = bool(_RELATIVE.search(head)) and not re.search(r"\(\w+/", head)
    named = (name for name, words in _METRICS.items() if words.search(head))
    metric = "" if _NO_METRIC.search(head) else next(named, "")
    if metric == "tokens_per_second" and _EACH.search(head):
        metric = "tokens_per_second_per_chip"
    unit = _UNIT.search(head) if not metric.endswith("_per_second") and "tokens" not in metric else None
    name = (f"{unit['flops']}FLOP/s" if unit["flops"] else unit[0]) if unit else _DEFAULT.get(metric, "")
    return Column(metric, name, 1e3 if re.search(r"\bk\s?tok|\(k\b|\bk\)", head) else 1.0, relative)


def in_row(
    head: Sequence[str], cells: Sequence[str], title: str, links: Sequence[tuple[tuple[int, int], ...]]
) -> list[Statement]:
    """Statements of a row; ``title`` is above the table."""
    if _MACHINE.match(head[0]) and any(_SPECIFIED.search(one) for one in head):
        return []  # what a machine has, and no one measured
    columns = [column_of(one) for one in head]
    named = [one.metric for one in columns if one.metric and not one.relative]
    label = column_of(cells[0]) if cells and not named else Column()
    items: list[Statement] = []
    for index, cell in enumerate(cells):
        at = columns[index] if index < len(columns) else Column()
        if not _NUMERIC.fullmatch(cell):
            items += [replace(item, cell=index) for item in in_sentence(cell, links[index])]
            continue
        if (index == 0 and not at.metric) or (index < len(head) and _NO_METRIC.search(head[index])):
            continue
        metric = at.metric or label.metric
        if at.relative and not at.metric:
            speed = re.search(r"speed|throughput", head[index], re.IGNORECASE)
            metric = "tokens_per_second" if speed else label.metric or (named[0] if len(set(named)) == 1 else "")
        own = Column(metric, at.unit or label.unit or _DEFAULT.get(metric, ""), at.scale, at.relative)
        first = len(items)
        for quantity in quantities(cell):
            if len(items) == first:
                item = _number(cell, quantity, own, title)
            elif quantity.dimension == "percent" and quantity.signed and cell[: quantity.start].endswith("("):
                item = stated(quantity, "ratio", items[first].metric, "%", _sign(quantity))  # `59.8 GB (−3.7 %)`
            else:
                item = None
            items += [replace(item, cell=index)] if item else []
    return beyond_hardware(_checked(items), " | ".join((*cells, title)))


def _sign(quantity: Quantity) -> Direction:
    return "none" if not quantity.signed else "down" if quantity.values[0] < 0 else "up"


def _number(cell: str, quantity: Quantity, at: Column, title: str) -> Statement | None:
    """A number by its own unit, else by what its column says of it."""
    metric, dimension = at.metric, quantity.dimension
    if dimension in ("rate", "flops", "period"):
        metric = rate_metric(quantity)
        return reading(cell, quantity, metric, quantity.unit) if metric else None
    if dimension == "time" and not metric:  # seconds under the names of two contestants: the title says of what
        metric = column_of(title).metric
    if metric not in metrics.METRICS:
        return None
    if at.relative and (dimension in ("percent", "ratio") or (dimension == "none" and not at.unit.strip("%"))):
        share = dimension == "percent" or (at.unit == "%" and dimension == "none")
        return stated(quantity, "ratio", metric, "%" if share else "×", _sign(quantity))
    if dimension == "points":
        return stated(quantity, "change", metric, "points", "down" if quantity.values[0] < 0 else "up")
    if dimension == "percent" and metric == "mfu" and not quantity.signed:
        return reading(cell, quantity, metric, "%")
    if dimension == "ratio" or (dimension == "percent" and quantity.signed):
        return stated(quantity, "ratio", metric, "%" if dimension == "percent" else "×", _sign(quantity))
    if dimension == "none" and (at.unit or not metric.endswith(("_seconds", "_bytes"))):
        values, halves = (tuple(value * at.scale for value in part) for part in (quantity.values, quantity.halves))
        return reading(cell, replace(quantity, values=values, halves=halves, unit=at.unit), metric, at.unit)
    fits = (dimension == "bytes" and metric == "peak_bytes") or (dimension == "time" and metric.endswith("_seconds"))
    return reading(cell, quantity, metric, quantity.unit) if fits else None


def _checked(items: list[Statement]) -> list[Statement]:
    """The statements of a row, of which a change beside its two numbers says where they give another."""
    checked = list(items)
    for place, item in enumerate(items):
        if item.kind != "ratio":
            continue
        pair = [one for one in items if one.cell == item.cell and one.kind == "change"]
        before = [one for one in items if one.cell < item.cell and (one.metric, one.kind) == (item.metric, "reading")]
        pair = pair or (before if len(before) == 2 and place == len(items) - 1 else [])
        if pair and (wrong := disagreement(pair[0].intervals[0], pair[-1].intervals[-1], item)):
            checked[place] = replace(item, contradiction=wrong)
    return checked


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
        across = column_of(text).metric == RANKED and not any(column_of(one).metric for one in block.head)
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
    if "MFU" not in text and all(item.metric != RANKED for item in items):
        return items
    # A sentence that ranks MFU without a number is added, without values.
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
