"""FLOPs formulas that declare themselves, and the arithmetic of MFU.

A formula answers with FLOPs a token (forward and backward), or with the receipt paths that it lacks; it never fills a
gap with a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from receipts.metrics.flops import formula, matmuls
from receipts.metrics.flops.formula import FlopsFormula, mfu, tflops_per_second_per_chip
from receipts.metrics.flops.geometry import Geometry, geometry_of

__all__ = ["FORMULAS", "Geometry", "eras", "geometry_of", "mfu", "tflops_per_second_per_chip"]

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
