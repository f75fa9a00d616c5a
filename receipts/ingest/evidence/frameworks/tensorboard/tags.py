"""Names of metrics by the framework that writes them to TensorBoard and Weights & Biases.

The same word means other things elsewhere (`throughput` is TFLOP/s a GPU in Megatron-LM, tokens a second in others), so
a dialect is known by names that only it writes, and only then do its other names mean anything. The names are data:
``tracker`` in the vocabulary's tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from receipts.ingest.record_reader import SIZES
from receipts.ingest.steps import FIELDS
from receipts.ingest.vocabulary import Label, labels, table, tables

RATE: Final = "steps_per_second"
_KEPT: Final = frozenset((*FIELDS, *SIZES, RATE))
_FOREIGN = re.compile(r"[^-/\w.]")
# The first that fits counts: nanotron has a name that Megatron-LM's is spelled as, and Megatron-Bridge writes
# Megatron-LM's names and more.
_TABLES: Final = (
    *("torchtitan", "nanotron", "megatron_bridge", "megatron", "nemo"),
    *("maxtext", "t5x", "levanter", "hf_trainer", "olmo", "composer", "receipts"),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One framework's names. One of ``signs`` shows it; the first of several names of one field counts.

    ``step`` are names under which it logs the training step beside its metrics; ``source`` is where they were read.
    ``mean``: a record averages over the steps since the last one.
    """

    framework: str
    source: str
    signs: tuple[str, ...]
    metrics: Mapping[str, Label]
    validation: tuple[str, ...]
    step: tuple[str, ...]
    mean: bool


def figure(label: Label, raw: float) -> float | None:
    """A figure in its field's unit; of steps a second the seconds of a step, None where there are none."""
    if label.field != RATE:
        return raw / label.divisor
    return label.divisor / raw if raw > 0 else None


def _dialect(name: str) -> Dialect:
    entry = table(name)["tracker"]
    signs, validation, step = (tuple(entry.get(key, ())) for key in ("signs", "validation", "step"))
    metrics = {
        label: known
        for label, known in labels(entry.get("metrics", table(name).get("line"))).items()
        if known.field in _KEPT
    }
    return Dialect(entry["framework"], entry["source"], signs, metrics, validation, step, entry.get("mean", False))


DIALECTS: Final = tuple(map(_dialect, filter(tables().__contains__, _TABLES)))


def cleaned(name: str) -> str:
    """The name as tensorboardX and older writers spell it: what is no word, dot, dash or stroke becomes ``_``."""
    return _FOREIGN.sub("_", name)


def dialect(names: set[str]) -> Dialect | None:
    """The framework whose own names are among these, in either spelling, or None."""
    spelled = {cleaned(name) for name in names}
    return next((item for item in DIALECTS if any(cleaned(sign) in spelled for sign in item.signs)), None)
