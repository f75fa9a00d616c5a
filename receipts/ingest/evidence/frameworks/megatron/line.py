"""One Megatron iteration line: cells of any order between bars, as every version and fork since 2020 prints them.

Source: `training_log` in megatron/training/training.py, v1.0 to core 0.20, and its forks (Megatron-Bridge,
Megatron-DeepSpeed, argonne-lcf's ``key=value`` form, GPT-NeoX, AMD's pairs of a current and an average figure).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from receipts.ingest.evidence.numbers import number

# A record's head: `iteration       12/    1000 |`, or `iteration=      12/ 1000 |`; NeMo's stands behind an epoch.
HEAD: Final = re.compile(r"(?<!, )iteration *=? *(\d{1,15}) */ *(\d{1,15})")
DATE: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{1,6})?\] *$")
# A date that was taken out of a document keeps its form: [xxxx-xx-xx xx:xx:xx].
CLOCK: Final = re.compile(r"[\w?*]{2}:[\w?*]{2}:[\w?*]{2}")
RANK: Final = re.compile(r"\[(?:rank|default) ?(\d{1,7})\]:|^ *(\d{1,7}): ")
_FIGURE: Final = re.compile(r"[-+]?(?:\d[\d,]{0,40}\.?\d{0,40}(?:[eE][-+]?\d{1,4})?|nan|inf)", re.IGNORECASE)
_WHOLE: Final = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,12}(?:E[-+]\d{2,3})?)?|nan|inf", re.IGNORECASE)
_END: Final = "number of skipped iterations"

# Labels in small letters, with blanks for underscores and hyphens; a figure over the divisor is in SI units.
LABELS: Final[dict[str, tuple[str, float]]] = {
    "elapsed time per iteration (ms)": ("step_seconds", 1e3),
    "elapsed time per iteration ms": ("step_seconds", 1e3),
    "elapsed time per iteration (s)": ("step_seconds", 1.0),
    "elapsed time per iteration s": ("step_seconds", 1.0),
    "throughput per gpu (tflop/s/gpu)": ("tflops_per_second_per_chip", 1.0),
    "throughput per gpu (tflops/s/gpu)": ("tflops_per_second_per_chip", 1.0),
    "throughput (tflop/s/gpu)": ("tflops_per_second_per_chip", 1.0),
    "tflop/s/gpu": ("tflops_per_second_per_chip", 1.0),
    "tflops per gpu": ("tflops_per_second_per_chip", 1.0),
    "tflops/gpu": ("tflops_per_second_per_chip", 1.0),
    "tflops": ("tflops_per_second_per_chip", 1.0),
    "[lm] tflops": ("tflops_per_second_per_chip", 1.0),
    "[lm]tflops": ("tflops_per_second_per_chip", 1.0),
    "approx flops per gpu": ("tflops_per_second_per_chip", 1.0),
    "tokens per gpu per second (tgs)": ("tokens_per_second_per_chip", 1.0),
    "tokens per gpu per second(tgs)": ("tokens_per_second_per_chip", 1.0),
    "tokens per gpu per second tgs": ("tokens_per_second_per_chip", 1.0),
    "tokens per gpu per second": ("tokens_per_second_per_chip", 1.0),
    "tokens per gpu (tokens/s/gpu)": ("tokens_per_second_per_chip", 1.0),
    "tokens/s/gpu": ("tokens_per_second_per_chip", 1.0),
    "tokens/sec/gpu": ("tokens_per_second_per_chip", 1.0),
    "tgs": ("tokens_per_second_per_chip", 1.0),
    "tokens per second": ("tokens_per_second", 1.0),
    "tokens/sec": ("tokens_per_second", 1.0),
    "tokens/s": ("tokens_per_second", 1.0),
    "mfu": ("mfu", 1.0),
    "mfu (%)": ("mfu", 1e2),
    "global batch size": ("global_batch", 1.0),
    "grad norm": ("grad_norm", 1.0),
    "loss scale": ("loss_scale", 1.0),
    "number of skipped iterations": ("skipped", 1.0),
    "number of nan iterations": ("nans", 1.0),
    "actual seqlen": ("sequence_length", 1.0),
    "curriculum seqlen": ("sequence_length", 1.0),
}
# Forks call tokens a second by many names: `tokens/s/gpu inst/harmonic mean`, `tokens per second per gpu (tok/s/gpu)`.
_TOKENS: Final = re.compile(r"tok(?:en)?s?(?:/s| per s|.{0,40}\((?:tok|token|tokens)/s)")
_CHIP: Final = re.compile(r"\b(?:gpu|npu|device|chip|card)s?\b")
# GPT-NeoX scales its rate by thousands: `112.9TFLOPS`, `1.2PFLOPS`.
_FLOPS: Final = {"G": 1e3, "T": 1.0, "P": 1e-3}
# A rate of nothing is a placeholder: Megatron-Bridge prints 0.0 where it has no formula for the model.
_RATES: Final = (
    "step_seconds",
    "tflops_per_second_per_chip",
    "tokens_per_second_per_chip",
    "tokens_per_second",
    "mfu",
)
_AUXILIARY: Final = re.compile(r"\b(?:mtp|balanc|load|z loss|aux|scale|valid|test|eval|indexer|sop|kd|distill)")
# Cells that only forks of Megatron-DeepSpeed (and GPT-NeoX, which comes from one) print.
_DEEPSPEED: Final = frozenset(
    {
        "consumed tokens",
        "samples per second",
        "tflops",
        "[lm] tflops",
        "[lm]tflops",
        "[ds] tflops",
        "actual seqlen",
        "curriculum seqlen",
        "approx flops per gpu",
        "elapsed time per iteration (s)",
        "elapsed time per iteration ms",
    }
)


@dataclass(slots=True)
class Iteration:
    """One record. ``values`` are by the names of `LABELS`, and ``loss`` where a cell of a training loss was printed.

    ``ended`` is whether the cells that close every record were read, so that an absent cell was not printed; ``depths``
    whether losses of several depths of prediction were.
    """

    step: int
    values: dict[str, float] = field(default_factory=dict)
    ended: bool = False
    deepspeed: bool = False
    long_rate: bool = False
    depths: bool = False
    reinforcement: bool = False


def normal(label: str) -> str:
    """A label in small letters with single blanks: ``tokens_per_gpu_per_second_tgs``, ``lm-loss`` and others meet."""
    return " ".join(label.lower().replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=4096)
def known(label: str) -> tuple[str, float]:
    """What a label's figure is, and the divisor that makes it SI; an empty name where it is not kept."""
    if label not in LABELS and _TOKENS.match(label):
        return ("tokens_per_second_per_chip" if _CHIP.search(label) else "tokens_per_second"), 1.0
    return LABELS.get(label, ("", 1.0))


def records(text: str) -> list[tuple[int, str]]:
    """Every iteration record on a line with where its head starts: two may be glued together.

    A record reaches up to the next one's head; what stands before the first is no part of any.
    """
    heads = [match.start() for match in HEAD.finditer(text)]
    return [(start, text[start:stop]) for start, stop in zip(heads, [*heads[1:], len(text)], strict=False)]


def read(record: str) -> Iteration | None:
    """The figures of one record, which begins with its head; None where it is no record of training."""
    match = HEAD.match(record)
    if match is None:
        return None
    found = Iteration(int(match[1]))
    losses: dict[str, float] = {}
    cells = record[match.end() :].split("|")
    for index, cell in enumerate(cells[1:], 2):
        label, value = _cell(cell)
        if not value:
            continue
        _note(found, label, value, losses, cut=index == len(cells))
    loss = _primary(losses)
    if loss is not None:
        found.values["loss"] = loss
    found.deepspeed |= "lm-loss:" in record
    if found.values.get("loss_scale") == -1.0 and found.values.get("grad_norm") == 0.0:
        # DeepSpeed's engine keeps both to itself, and the fork prints these in their place.
        del found.values["grad_norm"]
        found.deepspeed = True
    for name in _RATES:
        if name in found.values and not 0.0 < found.values[name] < math.inf:
            del found.values[name]
    return found if "step_seconds" in found.values or len(found.values) > 1 else None


def whole(record: str) -> bool:
    """Whether a record reaches its closing cells, and the last cell has a value: no part is on the next line."""
    if _END not in normal(record[-600:]):
        return False
    last = record[record.rfind("|") + 1 :]
    return not last.strip() or bool(_cell(last)[1])


def joined(record: str, rest: str) -> str:
    """A record that was wrapped, with its next piece: broken at a column, within a word or a figure, or between words.

    A terminal breaks anywhere and keeps blanks; a text that was set anew lost the blank at the break.
    """
    together, apart = record + rest, f"{record} {rest.lstrip()}"
    head = HEAD.search(record)
    start = head.start() if head else 0
    counts = [len(found.values) if (found := read(text[start:])) else 0 for text in (together, apart)]
    return together if counts[0] >= counts[1] else apart


def spans(text: str) -> dict[str, tuple[int, int]]:
    """Where the figures stand on a line of one whole record, by the names of `LABELS`; nothing on any other line.

    A record whose figures are not all plain numbers has to be read.
    """
    parts = records(text)
    start, record = parts[0] if len(parts) == 1 else (0, "")
    found = read(record) if whole(record) else None
    head = HEAD.match(record)
    if found is None or head is None or not found.ended or "mfu" in found.values:
        return {}
    places = {"step": (start + head.start(1), start + head.end(1))}
    if start >= 3 and (rank := RANK.search(text, 0, start)):
        places["rank"] = rank.span(rank.lastindex or 0)
    cells = record[head.end() :].split("|")
    losses = _primary_labels(cells) if "loss" in found.values else ()
    at = start + head.end() + len(cells[0]) + 1
    for cell in cells[1:-1]:
        label, value = _cell(cell)
        name, over = known(label)
        name = name or ("loss" if label in losses else "")
        if name == "step_seconds" and over != 1.0:
            name = "milliseconds"
        if name != "loss_scale" and (name in found.values or name in {"milliseconds", "skipped", "nans"}):
            if not _WHOLE.fullmatch(value) or name in places:
                return {}
            place = at + cell.rindex(value)
            places[name] = place, place + len(value)
        at += len(cell) + 1
    return {} if cells[-1].strip() else places


def _note(found: Iteration, label: str, value: str, losses: dict[str, float], *, cut: bool) -> None:
    found.deepspeed |= label in _DEEPSPEED
    if label == "learning rate":
        found.long_rate = bool(re.match(r"\d\.\d{6}E", value))
    found.depths |= label.startswith("mtp ")
    found.reinforcement |= label.startswith(("rl ", "grpo", "rollout"))
    if cut and not _closed(label, value):
        return
    match = _FIGURE.match(value)
    figure = number(match[0]) if match else None
    if figure is None:
        return
    name, over = known(label)
    if name == "mfu" and "%" in value:
        over = 1e2
    elif label == "approx flops per gpu":
        over = _FLOPS.get(value.lstrip("0123456789. ")[:1], over)
    if name:
        found.values.setdefault(name, figure / over)
        found.ended |= name == "skipped"
    elif label.endswith("loss") and not _AUXILIARY.search(label):
        losses.setdefault(label, figure)


def _cell(cell: str) -> tuple[str, str]:
    at = _separator(cell)
    if at >= 0:
        return normal(cell[:at]), cell[at + 1 :].strip()
    # Before v1.0 nothing stood between a label and its figure but a blank.
    label, _, value = cell.strip().rpartition(" ")
    return (normal(label), value) if label and _FIGURE.fullmatch(value) else (normal(cell), "")


def _separator(cell: str) -> int:
    """Where the label of a cell ends: at its first colon or equals sign."""
    colon, equals = cell.find(":"), cell.find("=")
    return max(colon, equals) if colon < 0 or equals < 0 else min(colon, equals)


def _closed(label: str, value: str) -> bool:
    """Whether a last cell without a bar was printed to its end: the formats have a fixed number of decimals."""
    if label.startswith("number of") or label == "global batch size":
        return label.startswith("number of nan")
    if label.endswith("loss"):
        return bool(re.search(r"E[-+]\d\d\b|\.\d{5,6}\b", value))
    if label in {"grad norm", "samples per second"}:
        return bool(re.match(r"\d+\.\d{3}\b|nan|inf", value))
    return bool(re.match(r"\d+\.\d", value))


def _primary(losses: dict[str, float]) -> float | None:
    """The loss that is trained on, of the losses on the line: the language model's before any other."""
    for label in ("lm loss", "loss", "reduced train loss"):
        if label in losses:
            return losses[label]
    return next(iter(losses.values()), None)


def _primary_labels(cells: list[str]) -> tuple[str, ...]:
    labels = [_cell(cell)[0] for cell in cells]
    known = next((label for label in ("lm loss", "loss", "reduced train loss") if label in labels), None)
    if known is not None:
        return (known,)
    return tuple(label for label in labels if label.endswith("loss") and not _AUXILIARY.search(label))[:1]
