"""MaxText's step lines: cells by name, in any order, with whatever stands before, behind or between them.

``completed step: 3, seconds: 5.402, TFLOP/s/device: 141.542, Tokens/s/device: 9098.189, total_weights: 196608, loss:
11.379`` is the form of `metric_logger.py`; `train.py` of 2023 printed ``TFLOP/s`` for the same figure of one device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from receipts.ingest.evidence.numbers import number

FIELDS: Final = {
    "seconds": "step_seconds",
    "TFLOP/s/device": "tflops_per_second_per_chip",
    "TFLOP/s": "tflops_per_second_per_chip",
    "Tokens/s/device": "tokens_per_second_per_chip",
    "Tokens/s": "tokens_per_second_per_chip",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "raw_grad_norm": None,
    "total_weights": "total_weights",
}
# A line that was quoted without its first word still has the seconds behind the number; eval steps have neither.
_START = re.compile(
    r"completed (?P<profiler>profiler activation/deactivation )?step:\s*(?P<step>\d{1,15})\b"
    r"|(?<![\w/] )(?<!\w)step:\s*(?P<bare>\d{1,15}),\s*seconds:(?=.{0,200}?TFLOP/s)"
)
_CELL = re.compile(r"(?<![\w/])([A-Za-z_][A-Za-z_/]*):\s*([^\s,\"'`\]|]+)")
# The prefix or the words of the next line of a log, glued to a figure's decimals.
_GLUED = re.compile(r"(\.\d{3})(?:[IWEF]\d{4}$|[A-DF-Z(\[].*$)")
_RAY = re.compile(r"\(\S{1,80} pid=(\d{1,10})(?:, ip=([\d.:a-f]{1,45}))?\)")
# What ends a record, and what a piece of one is made of.
_END = re.compile(r"\bloss:\s*(?:-?\d{1,9}\.\d{3}|nan|inf)")
_PIECE = re.compile(r"[\w/.,: ]{1,200}")
_PREFIXED = re.compile(r"[IWEF]\d{4} |completed ")
# Characters before a record in which its worker and its phase are named.
_PREFIX: Final = 300


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step as one line prints it. ``profiler``: the figures were withheld; ``rampup``: the batch still grows."""

    step: int
    values: dict[str, float]
    total_weights: float | None = None
    profiler: bool = False
    rampup: bool = False
    worker: tuple[str, str] | None = None


def records(text: str) -> list[StepRecord]:
    """The records of a line: none, one, or several that were glued together."""
    starts = list(_START.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [_record(text, start, end) for start, end in zip(starts, ends, strict=False)]


def spans(text: str) -> dict[str, tuple[int, int]]:
    """Where step and figures stand on a line of one whole record that names no worker; nothing on any other line."""
    starts = list(_START.finditer(text))
    if len(starts) != 1 or not starts[0]["step"] or starts[0]["profiler"] or text.rstrip().endswith(","):
        return {}
    before = text[: starts[0].start()]
    if "(" in before or "[Ramp" in before or (before and not before.endswith(" ")):
        return {}
    found = {"step": starts[0].span("step")}
    for cell in _CELL.finditer(text, starts[0].end()):
        field = FIELDS.get(cell[1])
        if field and field not in found and number(cell[2]) is not None:
            found[field] = cell.span(2)
    return found


def goes_on(text: str) -> bool:
    """Whether the last record of a line lacks its end, the loss in three decimals, and may go on below."""
    return _END.search(text, text.rfind("step:")) is None


def continues(before: str, text: str) -> bool:
    """Whether a line is the next piece of a record that a terminal's width broke: it adds to its figures."""
    if _PIECE.fullmatch(text) is None or (not text[0].islower() and _PREFIXED.match(text)):
        return False
    had, has = records(before)[-1], records(before + text)[-1]
    return (has.values, has.total_weights) != (had.values, had.total_weights) and len(has.values) >= len(had.values)


def _record(text: str, start: re.Match[str], end: int) -> StepRecord:
    cells = _CELL.findall(text, start.end("step") if start["step"] else start.end("bare"), end)
    found: dict[str, float] = {}
    for name, word in cells:
        field = FIELDS.get(name)
        value = number(_GLUED.sub(r"\1", word).rstrip(".")) if field else None
        if field and value is not None and field not in found:
            found[field] = value
    weights = found.pop("total_weights", None)
    before = text[max(start.start() - _PREFIX, 0) : start.start()]
    step = int(start["step"] or start["bare"])
    profiler = start["profiler"] is not None
    return StepRecord(step, found, weights, profiler, "[Rampup" in before[-40:], _worker(before))


def _worker(before: str) -> tuple[str, str] | None:
    # Of several records on one line, the prefix that stands nearest is this one's.
    found = _RAY.findall(before) if "pid=" in before else []
    return found[-1] if found else None
