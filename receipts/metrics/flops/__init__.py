"""FLOPs formulas that declare themselves, and the arithmetic of MFU.

A formula answers with FLOPs a token (forward and backward), or with the receipt paths that it lacks; it never fills a
gap with a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from receipts.metrics.flops import hybrid, maxtext, megatron, parameters
from receipts.metrics.flops.formula import FlopsFormula
from receipts.metrics.flops.geometry import Geometry, geometry_of
from receipts.metrics.flops.utilization import mfu, tflops_per_second_per_chip

__all__ = ["FORMULAS", "Geometry", "eras", "geometry_of", "mfu", "tflops_per_second_per_chip"]

FORMULAS: Mapping[str, FlopsFormula] = MappingProxyType(
    {formula.id: formula for formula in (*parameters.FORMULAS, *megatron.FORMULAS, *hybrid.FORMULAS, *maxtext.FORMULAS)}
)


def eras(formula_id: str) -> tuple[FlopsFormula, ...]:
    """The formulas of the same framework, the one asked for first: a printed figure may be of another era."""
    formula = FORMULAS.get(formula_id)
    if formula is None:
        return ()
    others = (each for each in FORMULAS.values() if each.framework == formula.framework != "" and each is not formula)
    return (formula, *others)
