"""FLOPs formulas that declare themselves, and the arithmetic of MFU.

A formula answers with FLOPs a token (forward and backward), or with the receipt paths that it lacks; it never fills a
gap with a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from receipts.base.errors import NotFound
from receipts.metrics.flops import maxtext, megatron, parameters
from receipts.metrics.flops.formula import FlopsFormula, FlopsPerToken
from receipts.metrics.flops.geometry import Geometry, geometry_of
from receipts.metrics.flops.utilization import (
    flops_per_token_from_mfu,
    flops_per_token_from_tflops,
    mfu,
    peak_from_mfu,
    tflops_per_second_per_chip,
    tokens_per_second_from_mfu,
)

__all__ = [
    "FORMULAS",
    "Formula",
    "Geometry",
    "Result",
    "eras",
    "flops_per_token",
    "flops_per_token_from_mfu",
    "flops_per_token_from_tflops",
    "geometry_of",
    "mfu",
    "peak_from_mfu",
    "tflops_per_second_per_chip",
    "tokens_per_second_from_mfu",
]

FORMULAS: Mapping[str, FlopsFormula] = MappingProxyType(
    {formula.id: formula for formula in (*parameters.FORMULAS, *megatron.FORMULAS, *maxtext.FORMULAS)}
)


def flops_per_token(formula_id: str, geometry: Geometry) -> FlopsPerToken:
    """FLOPs a token by a formula; raises NotFound where no formula has that id."""
    formula = FORMULAS.get(formula_id)
    if formula is None:
        raise NotFound(f"no FLOPs formula is called {formula_id!r}; known: {', '.join(FORMULAS)}")
    return formula.function(geometry)


def eras(formula_id: str) -> tuple[FlopsFormula, ...]:
    """The formulas of the same framework, the one asked for first: a printed figure may be of another era."""
    asked = FORMULAS.get(formula_id)
    if asked is None:
        return ()
    others = (each for each in FORMULAS.values() if each.framework == asked.framework != "" and each is not asked)
    return (asked, *others)
