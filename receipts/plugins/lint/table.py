"""Performance statements in a table's row: what a column's head, and the row's first cell, make of a bare number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from receipts.plugins.lint import cues
from receipts.plugins.lint.measurements import rate_metric
from receipts.plugins.lint.prose import in_sentence
from receipts.plugins.lint.quantity import Quantity, quantities
from receipts.plugins.lint.statement import StatementDraft

_SPEC_HEAD = re.compile(
    r"\b(?:HBM\w*|VRAM|bandwidth|TDP|(?:BF16|FP8|FP16|dense|sparse|compute|theoretical) ?peak|"
    r"peak (?:TFLOP\w*|FLOP\w*|BF16|FP8|compute)|price|cost|release\w*|interconnect|NVLink|power|"
    r"process)\b",
    re.IGNORECASE,
)
_MACHINE_HEAD = re.compile(
    r"^\W*(?:accelerators?|GPUs?|chips?|devices?|cards?|hardware|machines?|TPUs?|systems?|SKU)\W*$", re.IGNORECASE
)
_SETTING_HEAD = re.compile(
    r"\b(?:flags?|hyper-?param\w*|settings?|options?|env\w*|variables?|knobs?|arguments?|"
    r"defaults?|keys?|fields?)\b",
    re.IGNORECASE,
)
_OTHER_HEAD = re.compile(
    r"\b(?:acc\w*|loss|val|ppl|perplexity|lr|learning|params?|parameters|tokens|layers|depth|"
    r"hidden|heads|size|disk|date|version|seed|score|batch|mbs|gbs|tp|pp|ep|dp|cp|"
    r"owner|done|progress|share of tokens|dropped|bpb|bits|norm|world|chips|gpus?|nodes|seq\w*|"
    r"context|experts?|price|cost|limit|budget|target|expected|spec|capacity|steps?)\b",
    re.IGNORECASE,
)
_RELATIVE_HEAD = re.compile(
    r"\b(?:speed-?ups?|vs\.?|versus|relative|effect|delta|change|gain|ratio|improvement|against|"
    r"compared|slow-?down|overhead|impact|difference)\b|Δ|×|\bx\b",
    re.IGNORECASE,
)
_METRIC_HEAD = (
    ("mfu", r"\b(?:MFU|flops? utili[sz]ation|of peak)\b"),
    ("utilisation", r"\b(?:HFU|utili[sz]ation|goodput|efficiency)\b"),
    ("tflops_per_second_per_chip", r"\b[TGP]FLOPS?\b|\b[TGP]FLOPs?/s"),
    (
        "tokens_per_second",
        r"tok(?:en)?s?\s?(?:/(?:gpu|chip|device)\s?)?(?:/|per |a )\s?s|\bthroughput\b|\btps\b|tok/s|"
        r"\b(?:samples|steps|its?|iters?|seqs?|images)/s|\bspeed\b(?!-?up)",
    ),
    ("compile_seconds", r"\bcompil\w*|\bcold start\b|\bstart-?up\b|\bwarm start\b"),
    (
        "step_seconds",
        r"\b(?:step|iter|iteration|epoch|wall|training|median|mean)[ -]?(?:time|clock|\(?m?s\b|ms|"
        r"duration|seconds)?s?\b(?=.*(?:time|ms|\bs\b|sec|clock|duration))|\bs/(?:it|step|iter)\b|"
        r"\bms/(?:it|step|iter)\b|\bms\b|\bstep time\b",
    ),
    (
        "latency_seconds",
        r"\blatency\b|\bp\d\d\b|\bkernel time\b|\b(?:ms|µs|us|μs|seconds|secs?|time|duration|"
        r"runtime)\b|\(s\)",
    ),
    (
        "peak_bytes",
        r"\bmemory\b|\bmem\b|\b[GM]i?B\b|\bpeak\b|\balloc\w*|\breserved\b|\bVRAM\b|\bHBM (?:used?|"
        r"peak|usage)\b",
    ),
)
_HEAD_METRIC = re.compile("|".join(f"(?P<{name}>{text})" for name, text in _METRIC_HEAD), re.IGNORECASE)
_NUMERIC_CELL = re.compile(
    r"^[\s*_~≈<>+±≤≥]*[+\-−–]?[\d.,]+(?:[ \u00a0\u2009\u202f]\d{3})*\s?(?:[kKM])?(?:\s?[%×x])?"
    r"[\s*_†‡¹²³]*(?:\([^()]*\))?(?:\s?(?:±|\+/-)\s?[\d.,]+)?[\s*_†‡]*$"
)
_OUTCOME_CELL = re.compile(
    r"^[\s*_~❌✅💥✗✓]*(?P<what>OOM\w*|out of memory|fits|does not fit|doesn't fit|no fit)\b", re.IGNORECASE
)
_WEAK_OUTCOME = re.compile(r"^[\s*_]*(?P<what>fits|does not fit|doesn't fit)\b", re.IGNORECASE)
_UNIT = re.compile(
    r"\b(?P<unit>ms|µs|us|μs|seconds?|secs?|s|min(?:utes)?|[kMGT]i?B|%)\b|(?P<percent>%)|"
    r"(?P<kilo>\bk\b|\bthousand)",
    re.IGNORECASE,
)
_ROW_PART = re.compile(
    r"\b(?:forward|backward|optimi[sz]er|step|communication|all-?reduce|all-?gather|compile|"
    r"compilation|data|attention|MoE|experts?|dispatch|combine|recompute|total|idle|bubble|kernel|"
    r"gemm|matmul|loss|embedding)\b",
    re.IGNORECASE,
)
# Rates of something else than tokens, which no receipt reads.
_COUNTED = re.compile(
    r"\b(?:(?P<samples_per_second>samples?|(?-i:S)|seqs?|sequences?|images?|examples?)|(?P<steps_per_second>steps?|its?|iters?|iterations?))"
    r"\s?(?:/|per\s)\s?s",
    re.IGNORECASE,
)
_PER_STEP = re.compile(r"\bs/(?:it|step|iter)\b|\bper (?:\w+ )?(?:step|iteration|iter)\b", re.IGNORECASE)
# The second of such a head's unit is no unit of its numbers.
_RATES = ("tokens_per_second", "tflops_per_second", "samples_per_second", "steps_per_second")
_FLOPS = re.compile(r"[GTP]FLOP", re.IGNORECASE)
_SPEED_HEAD = re.compile(r"speed|slow|faster|throughput", re.IGNORECASE)
# What a cell says of the same number in brackets: `59.8 GB (−3.7 %)`.
_ASIDE = re.compile(r"^(?P<first>[^()]*\d[^()]*?)\s*\((?P<rest>[+\-−–]\s?[\d.,]+\s?%)\)[\s*_]*$")
_SHARE = re.compile(r"^\W*(?:share|%|percent|fraction|part)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnHead:
    """A column as its head describes it: a metric with its unit, a relation (``relative``), a setting, or text."""

    head: str
    metric: str
    unit: str
    scale: float
    relative: bool
    other: bool


@dataclass(frozen=True)
class Head:
    """A table's head row, read once."""

    columns: tuple[ColumnHead, ...]
    settings: bool
    specification: bool
    topic: str

    @property
    def performance(self) -> bool:
        """Whether some column is about performance."""
        return any(column.metric or column.relative for column in self.columns)


def read_head(cells: Sequence[str], heading: str = "") -> Head:
    """What each column is about. ``heading`` is the title above the table."""
    text = " | ".join(cells)
    spec = sum(bool(_SPEC_HEAD.search(cell)) for cell in cells)
    columns = tuple(_column(cell) for cell in cells)
    measured = any(item.metric.startswith(("tokens_per_second", "step_seconds", "mfu")) for item in columns)
    machines = bool(cells) and bool(_MACHINE_HEAD.match(cells[0]))
    specification = not measured and spec >= (1 if machines else 2)
    settings = bool(cells) and bool(_SETTING_HEAD.search(cells[0]))
    return Head(columns, settings, specification, f"{heading} {text}")


@lru_cache(maxsize=1024)
def _column(head: str) -> ColumnHead:
    match = _HEAD_METRIC.search(head)
    metric = match.lastgroup or "" if match else ""
    if metric == "latency_seconds" and _PER_STEP.search(head):
        metric = "step_seconds"
    if re.search(r"\b(?:size|disk|limit|budget|dataset|checkpoint)\b", head, re.IGNORECASE):
        metric = ""
    if metric == "tokens_per_second" and re.search(r"gpu|chip|device|card", head, re.IGNORECASE):
        metric = "tokens_per_second_per_chip"
    counted = _COUNTED.search(head)
    if metric.startswith("tokens_per_second") and counted:
        metric = counted.lastgroup or ""
    relative = bool(_RELATIVE_HEAD.search(head))
    other = bool(_OTHER_HEAD.search(head)) and not metric
    unit = _UNIT.search(head)
    name = (unit["unit"] or unit["percent"] or "") if unit and not metric.startswith(_RATES) else ""
    flops = _FLOPS.search(head) if metric == "tflops_per_second_per_chip" else None
    name = f"{flops[0]}/s" if flops else name
    return ColumnHead(head, metric, name, 1e3 if re.search(r"\bk\s?tok|\(k\b|\bk\)", head) else 1.0, relative, other)


def in_row(head: Head, cells: Sequence[str]) -> Iterator[tuple[int, StatementDraft]]:
    """Statements of a row: the index of the cell, and the statement with offsets within the cell."""
    if head.specification:
        return
    label = cells[0] if cells else ""
    label_metric = (
        "" if head.columns and head.columns[0].metric and _NUMERIC_CELL.match(label) else _column(label).metric
    )
    label_other = bool(_OTHER_HEAD.search(label) or cues.OTHER.search(label)) and not label_metric
    for index, cell in enumerate(cells):
        column = head.columns[index] if index < len(head.columns) else ColumnHead("", "", "", 1.0, False, False)
        if not re.search(r"\d|\b(?:OOM|out of memory|fits?|twice|half|halv|doubl|tripl)", cell, re.IGNORECASE):
            continue
        for draft in _in_cell(head, column, index, cell, label, label_metric, label_other):
            yield index, draft


def _in_cell(
    head: Head, column: ColumnHead, index: int, cell: str, label: str, label_metric: str, label_other: bool
) -> Iterator[StatementDraft]:
    outcome = _OUTCOME_CELL.match(cell)
    if outcome and (
        head.performance
        or not _WEAK_OUTCOME.match(cell)
        or re.search(r"result|fit|status|outcome|verdict|memory", column.head, re.IGNORECASE)
    ):
        down = not outcome["what"].lower().startswith("fits")
        yield StatementDraft(
            outcome.start("what"), outcome.end("what"), "fit", "outcome", (), "", "down" if down else "up"
        )
        return
    if column.other and not column.relative:
        yield from (
            item
            for item in in_sentence(cell)
            if item.unit != "%"
            and item.kind != "ratio"
            and item.metric not in ("peak_bytes", "latency_seconds", "outcome")
        )
        return
    aside = _ASIDE.match(cell)
    bare = aside["first"] if aside else cell
    if _NUMERIC_CELL.match(bare) or _is_quantity(bare):
        draft = None
        if index > 0 or column.metric:
            draft = _number(head, column, bare, label, label_metric, label_other)
        if draft is not None:
            yield draft
            if aside and draft.kind == "reading" and draft.unit != "%":
                (share,) = quantities(aside["rest"])
                yield _draft(share, draft.metric, "%", 1.0, aside.start("rest"))
        return
    if head.settings:
        yield from (
            item
            for item in in_sentence(cell)
            if item.metric in ("tokens_per_second", "mfu", "tflops_per_second_per_chip") and item.kind == "reading"
        )
        return
    context = "" if column.other else f"{column.head} {label if index else ''}"
    yield from in_sentence(cell, context)


def _is_quantity(cell: str) -> bool:
    """Whether a cell is one number with its unit and nothing else."""
    bare = cell.strip().strip("*_~≈<> ")
    first = next(quantities(bare), None)
    return first is not None and first.start == 0 and first.end == len(bare) and first.dimension != "none"


def _number(
    head: Head, column: ColumnHead, cell: str, label: str, label_metric: str, label_other: bool
) -> StatementDraft | None:
    quantity = next(quantities(cell), None)
    if quantity is None:
        return None
    strong = quantity.dimension in ("rate", "flops", "period")
    if strong:
        return _draft(quantity, rate_metric(quantity), quantity.unit, 1.0)
    if head.settings or label_other:
        return None
    if column.relative and quantity.dimension in ("percent", "ratio", "none"):
        named = any(item.metric for item in head.columns)  # a row's name is a technique, and no metric
        metric = column.metric or ("" if named else label_metric) or _compared(head, column)
        if quantity.dimension == "none" and not (
            column.metric or re.search(r"speed|ratio|×", column.head, re.IGNORECASE)
        ):
            return None
        return replace(_draft(quantity, metric, "%" if quantity.dimension == "percent" else "×", 1.0), kind="ratio")
    if _SHARE.match(column.head) and quantity.dimension == "percent":
        timed = any(item.metric in ("step_seconds", "latency_seconds") for item in head.columns)
        return _draft(quantity, "step_seconds", "%", 1.0) if timed and _ROW_PART.search(label) else None
    metric = column.metric or label_metric
    if not metric:
        return None
    if quantity.dimension == "percent":
        if metric in ("mfu", "utilisation") or quantity.signed or column.relative:
            return _draft(quantity, metric, "%", 1.0)
        return _draft(quantity, metric, "%", 1.0) if column.metric else None
    if quantity.dimension == "ratio":
        return replace(_draft(quantity, metric, "×", 1.0), kind="ratio")
    if quantity.dimension == "points":
        return replace(_draft(quantity, metric, "points", 1.0), kind="change")
    if quantity.dimension == "none":
        unit = column.unit or _column(label).unit
        if metric == "latency_seconds" and not unit:
            return None
        unit = unit or {
            "mfu": "%",
            "utilisation": "%",
            "tokens_per_second": "tokens/s",
            "tflops_per_second_per_chip": "TFLOP/s",
        }.get(metric, "")
        return _draft(quantity, metric, unit, column.scale)
    return _draft(quantity, metric, quantity.unit, 1.0)


def _compared(head: Head, column: ColumnHead) -> str:
    """What a column without a metric compares: the speed that its head names, or else the table's first metric."""
    if _SPEED_HEAD.search(column.head):
        return "tokens_per_second"
    return next((item.metric for item in head.columns if item.metric), "tokens_per_second")


def _draft(quantity: Quantity, metric: str, unit: str, scale: float, offset: int = 0) -> StatementDraft:
    direction = ("down" if quantity.values[0] < 0 else "up") if quantity.signed else "none"
    return StatementDraft(
        quantity.start + offset,
        quantity.end + offset,
        "change" if quantity.joined == "change" else "ratio" if quantity.signed and unit == "%" else "reading",
        metric,
        tuple(value * scale for value in quantity.values),
        unit,
        direction,  # type: ignore[arg-type]
        tuple(half * scale for half in quantity.halves),
        quantity.bound,
    )
