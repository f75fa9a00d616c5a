"""One record of torchtitan as text: where its step, its rank and its figures stand, in every version's spelling."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reader import Spans

# Forks add the last step and the share: `step: 640/644 = 99.3789%`.
STEP: Final = re.compile(
    r"(?<!\w)(?:step:\s*|step=)(\d{1,12})(?!\w)(?:\s?/\s?\d{1,12}(?:\s?=\s?[\d.]{1,9}%)?)?\s*(?=[A-Za-z])",
    re.IGNORECASE,
)
RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,6})\]")
_CELL = re.compile(
    r"(?<![\w/])m?(loss|global_avg_loss|grad_norm|memory|peak_memory|tps|wps|throughput\(tps\)|tflops|mfu|mfu\(%\))"
    r"[:=]\s*([^\s`|]{1,40})",
    re.IGNORECASE,
)
_GIB = re.compile(r"([\d.]{1,12})GiB")
_EVALUATION = re.compile(r"valid(?:ate|ation)?\b|\bval\b|\beval", re.IGNORECASE)
_NAMES: Final = {
    "wps": "tps",
    "throughput(tps)": "tps",
    "global_avg_loss": "loss",
    "mfu(%)": "mfu",
    "peak_memory": "memory",
}


def evaluation(text: str, at: int) -> bool:
    """Whether the words before a ``step:`` make it one of an evaluation."""
    return _EVALUATION.search(text, max(0, at - 24), at) is not None


def cells(text: str) -> tuple[dict[str, float | None], str | None]:
    """Figures of a record by the field that they are put under, and its memory as it is written, in GiB."""
    values: dict[str, float | None] = {}
    memory = None
    for label, word in _CELL.findall(text):
        name = _NAMES.get(label.lower(), label.lower())
        if name == "loss":
            values.setdefault("loss", number(word))
        elif name == "grad_norm":
            values["grad_norm"] = number(word)
        elif name == "tps":
            values["tokens_per_second_per_chip"] = number(word)
        elif name == "tflops":
            values["tflops_per_second_per_chip"] = number(word)
        elif name == "mfu":
            values["mfu"] = _fraction(word.partition("%")[0])
        elif match := _GIB.match(word):
            memory = match[1]
    return values, memory


def spans(text: str) -> Spans:
    """Rank, step and figures of one whole record; none where it has several, or is one of an evaluation."""
    starts = list(STEP.finditer(text))
    if len(starts) != 1 or "alid" in text or evaluation(text, starts[0].start()):
        return {}
    found = {"step": starts[0].span(1)}
    ranks = list(RANK.finditer(text, 0, starts[0].start()))
    if ranks:
        found["rank"] = ranks[-1].span(1)
    for cell in _CELL.finditer(text, starts[0].end()):
        name = _NAMES.get(cell[1].lower(), cell[1].lower())
        word = cell[2].partition("%" if name == "mfu" else "GiB")[0]
        if name in found and name != "loss":
            return {}
        if number(word) is not None and (name != "memory" or "GiB" in cell[2]):
            found.setdefault(name, (cell.start(2), cell.start(2) + len(word)))
    return found if {"loss", "tps", "mfu"} <= found.keys() and len(ranks) < 2 else {}


def _fraction(percent: str) -> float | None:
    value = number(percent)
    return None if value is None else value / 100
