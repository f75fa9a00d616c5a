"""Names of metrics by the framework that writes them to TensorBoard and Weights & Biases.

The same word means other things elsewhere (`throughput` is TFLOP/s a GPU in Megatron-LM, tokens a second in others), so
a dialect is known by names that only it writes, and only then do its other names mean anything. The names are data:
``tracker`` in the vocabulary's tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from receipts.ingest.evidence.vocabulary import Label, table

_FOREIGN = re.compile(r"[^-/\w.]")
# The first that fits counts: nanotron has a name that Megatron-LM's is spelled as, and Megatron-Bridge writes
# Megatron-LM's names and more.
_TABLES: Final = (
    *("torchtitan", "nanotron", "megatron_bridge", "megatron", "nemo"),
    *("maxtext", "t5x", "hf_trainer", "olmo", "composer", "receipts"),
)


@dataclass(frozen=True, slots=True)
class Tag(Label):
    """What a name means: a field of a step, the divisor to its unit, or one over it where ``inverse``."""

    inverse: bool = False

    def value(self, raw: float) -> float | None:
        """The figure in the field's unit; None where one over zero would be."""
        if not self.inverse:
            return raw / self.divisor
        return self.divisor / raw if raw > 0 else None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One framework's names. One of ``signs`` shows it; the first of several names of one field counts.

    ``step`` are names under which it logs the training step beside its metrics; ``source`` is where they were read.
    ``mean``: a record averages over the steps since the last one.
    """

    framework: str
    source: str
    signs: tuple[str, ...]
    metrics: Mapping[str, Tag]
    memory: Mapping[str, Tag]
    validation: tuple[str, ...]
    step: tuple[str, ...]
    mean: bool


def _metric(entry: Any) -> Tag:
    if isinstance(entry, dict):
        return Tag(**entry)
    return Tag(entry) if isinstance(entry, str) else Tag(*entry)


def _dialect(name: str) -> Dialect:
    entry = table(name)["tracker"]
    signs, validation, step = (tuple(entry.get(key, ())) for key in ("signs", "validation", "step"))
    metrics, memory = (
        {label: _metric(item) for label, item in entry.get(key, {}).items()} for key in ("metrics", "memory")
    )
    mean = entry.get("mean", False)
    return Dialect(entry["framework"], entry["source"], signs, metrics, memory, validation, step, mean)


DIALECTS: Final = tuple(map(_dialect, _TABLES))


def cleaned(name: str) -> str:
    """The name as tensorboardX and older writers spell it: what is no word, dot, dash or stroke becomes ``_``."""
    return _FOREIGN.sub("_", name)


def dialect(names: set[str]) -> Dialect | None:
    """The framework whose own names are among these, in either spelling, or None."""
    spelled = {cleaned(name) for name in names}
    return next((item for item in DIALECTS if any(cleaned(sign) in spelled for sign in item.signs)), None)
