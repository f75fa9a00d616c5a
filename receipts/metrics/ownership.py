"""What one rank owns of a model: heads, experts, layers and tokens over the degrees that divide them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from receipts.metrics.degrees import CONTEXT, EXPERT, EXPERT_TENSOR, PIPELINE, TENSOR

# What is divided, its leaf, and the degree that divides it.
_DIVIDED: Final = (
    ("attention head", "model.heads", TENSOR),
    ("kv head", "model.kv_heads", TENSOR),
    ("SSM head", "model.ssm_heads", TENSOR),
    ("expert", "model.experts", EXPERT),
    ("layer", "model.depth", PIPELINE),
    ("token", "batch.sequence_length", CONTEXT),
)
_ALL: Final = (TENSOR, EXPERT, EXPERT_TENSOR, PIPELINE, CONTEXT)


def owned(stated: Mapping[str, Any]) -> str:
    """What a rank owns, in words; empty where no degree above one is stated.

    Whole numbers are exact; a degree that does not divide its number leaves a fraction, which R107, R108 and R118
    judge. Layers are counted on an even pipeline.
    """
    return ", ".join(_parts(stated))


def _parts(stated: Mapping[str, Any]) -> Iterator[str]:
    if not any((stated.get(path) or 1) > 1 for path in _ALL):
        return
    for name, leaf, path in _DIVIDED:
        count, degree = stated.get(leaf), stated.get(path)
        if count and degree and degree > 1:
            yield f"{_plural(count / degree, name)} of {count:,}"
    tensor = stated.get(EXPERT_TENSOR)
    if stated.get("model.experts") and tensor is not None and tensor > 1:
        yield f"1/{tensor} of each expert's width"
    if stated.get("parallelism.sequence") and (stated.get(TENSOR) or 1) > 1:
        yield f"1/{stated[TENSOR]} of the tokens outside the tensor-parallel matrices"


def _plural(count: float, name: str) -> str:
    words = name if count == 1 else f"{name}s"
    number = f"{count:,.4g}" if count % 1 else f"{int(count):,}"
    return f"{number} {words}"
