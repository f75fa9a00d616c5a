"""FLOPs formulas that declare themselves, and the arithmetic of MFU.

A formula answers with FLOPs a token (forward and backward), or with the receipt paths that it lacks; it never fills a
gap with a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from receipts.metrics.flops import formula, matmuls
from receipts.metrics.flops.formula import FlopsFormula, mfu, tflops_per_second_per_chip
from receipts.metrics.flops.geometry import Geometry, geometry_of

__all__ = [
    "FORMULAS",
    "Geometry",
    "WorkPerToken",
    "counts",
    "eras",
    "geometry_of",
    "mfu",
    "tflops_per_second_per_chip",
    "work_per_token",
]

FORMULAS: Mapping[str, FlopsFormula] = MappingProxyType(
    {
        formula.id: formula
        for formula in (
            *formula.PARAMETER_FORMULAS,
            *matmuls.MEGATRON_FORMULAS,
            *matmuls.HYBRID_FORMULAS,
            *matmuls.MAXTEXT_FORMULAS,
        )
    }
)


def eras(formula_id: str) -> tuple[FlopsFormula, ...]:
    """The formulas of the same framework, the one asked for first: a printed figure may be of another era."""
    formula = FORMULAS.get(formula_id)
    if formula is None:
        return ()
    others = (each for each in FORMULAS.values() if each.framework == formula.framework != "" and each is not formula)
    return (formula, *others)


NEAR: Final = 0.02  # of a formula: a padded vocabulary, biases, norms
MAX_FORMULA_RATIO: Final = 1.25  # times the largest of all formulas: versions of one count are closer
_OWN: Final = ("6n_active", "6n")  # the engine's own, in this order
_OF_ALL: Final = ("6n", "palm", "maxtext_2023_11", "torchtitan_2024")  # of experts that no token visits, too


class WorkPerToken(NamedTuple):
    """FLOPs a token, and the formula that names them."""

    formula: str
    flops: float


def counts(geometry: Geometry) -> dict[str, float]:
    """FLOPs a token by every formula that counts what a token of this model visits."""
    known = {name: flops for name, item in FORMULAS.items() if (flops := item.function(geometry).flops)}
    visited = {name: flops for name, flops in known.items() if geometry.is_dense or name not in _OF_ALL}
    return visited or known


def work_per_token(flops: float, formula: str | None, geometry: Geometry) -> WorkPerToken | None:
    """FLOPs a token that somebody stated, under the formula that makes them; those of the engine's own formula where
    none does, and None if nothing counts this model. Nobody's word alone makes a numerator.
    """
    if formula is not None and formula in FORMULAS:
        return WorkPerToken(formula, flops)
    known = counts(geometry)
    named = [name for name, value in known.items() if abs(flops / value - 1) <= NEAR]
    named += [name for name in _OWN if name in known]
    if not named:
        return None
    return WorkPerToken(named[0], flops if abs(flops / known[named[0]] - 1) <= NEAR else known[named[0]])
