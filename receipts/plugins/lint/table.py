"""Statements in a table's row: what a column's head, or else the row's first cell, makes of a bare number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from receipts import metrics
from receipts.plugins.lint.arithmetic import beyond_hardware, disagreement
from receipts.plugins.lint.prose import in_sentence, rate_metric, reading, stated
from receipts.plugins.lint.quantity import UNIT, Quantity, quantities
from receipts.plugins.lint.statement import Direction, Statement

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
def column(head: str) -> Column:
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
    columns = [column(one) for one in head]
    named = [one.metric for one in columns if one.metric and not one.relative]
    label = column(cells[0]) if cells and not named else Column()
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
        metric = column(title).metric
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
