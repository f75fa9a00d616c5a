"""Claims of kind `arithmetic`: a named formula with its inputs, and the result that the sentence states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from receipts.base.units import BYTES, decimal_bytes, read_printed
from receipts.judging.claim_verdict import Assessment
from receipts.judging.claims import bound
from receipts.metrics.arithmetic import ARITHMETIC, ArithmeticFormula, input_value

if TYPE_CHECKING:
    from receipts.judging.claims.claim import Claim

# `32 KB`, `128K`: a letter of a thousand that programs also write for 1,024.
_LETTER = re.compile(r"(?<=[\d ])([KMGT])(?=B?\b)", re.IGNORECASE)


def problems(claim: Claim) -> Iterator[str]:
    """What is wrong with the formula of a claim, each as ``key: reason``."""
    if claim.kind != "arithmetic":
        for key in ("formula", "inputs"):
            if getattr(claim, key) is not None:
                yield f"{key}: it belongs to a claim of kind arithmetic"
        return
    for key in ("candidate", "metric", "axis", "mechanism"):
        if getattr(claim, key):
            yield f"{key}: a claim of kind arithmetic has none: it names a formula and its inputs"
    formula = ARITHMETIC.get(claim.formula or "")
    if formula is None:
        named = f"there is no formula {claim.formula!r}" if claim.formula else "a claim of kind arithmetic names one"
        yield f"formula: {named}; known: {', '.join(ARITHMETIC)}"
        return
    given = set(claim.inputs or {})
    missing = [name for name in formula.inputs if name not in given and name not in dict(formula.optional)]
    for name in missing:
        yield f"inputs: {formula.name} takes {name} ({formula.inputs[name]})"
    for name in sorted(given - set(formula.inputs)):
        yield f"inputs: {formula.name} takes no {name}; it takes {', '.join(formula.inputs)}"
    if not missing and given <= set(formula.inputs):
        yield from _unreadable(claim, formula)
    if claim.effect is not None:
        yield from _wrong_unit(claim.effect, formula)


def _unreadable(claim: Claim, formula: ArithmeticFormula) -> Iterator[str]:
    try:
        _value(claim, formula, binary=False)
    except ValueError as error:
        yield f"inputs: {error}"


def _wrong_unit(effect: str, formula: ArithmeticFormula) -> Iterator[str]:
    unit = bound.unit_of(effect)
    word = unit.split("/")[0].split(" ")[-1]
    if formula.dimension == "bytes":
        fits, wanted = word in BYTES, "bytes, such as 140 GB"
    elif formula.dimension == "fraction":
        fits, wanted = word in ("", "%"), "a share, such as 17.9 %"
    else:
        plain = re.fullmatch(r"[kKMGTB]?", word) is not None
        fits = plain or word.rstrip("s") in {item.rstrip("s") for item in formula.units}
        wanted = f"a number of {' or '.join(formula.units)}"
    if not fits:
        yield f"effect: {formula.name} is {wanted}, and not {unit or 'a bare number'!r}"


def assess(claim: Claim) -> Assessment:
    """The formula's result held against the stated one; K, M, G and T may be 1,000 or 1,024 of tokens and bytes.

    The claim holds if it does in one of the two readings, taken of the inputs and of the result alike. The
    inputs of a share are rates and degrees, whose K is 1,000.
    """
    formula = ARITHMETIC[claim.formula or ""]
    first: Assessment | None = None
    for binary in (False,) if formula.dimension == "fraction" else (False, True):
        value = _value(claim, formula, binary=binary)
        band = bound.read(_binary(claim.effect or "") if binary else claim.effect or "", share=True)
        text = f"{formula.name} = {formula.expression} = {_shown(value, formula)}, claimed {band.text}"
        if band.judge(value, value) == "holds":
            return Assessment("holds", text + (" (K, M and G of 1,024)" if binary else ""), value, value)
        first = first or Assessment("fails", text, value, value)
    assert first is not None
    return first


def _value(claim: Claim, formula: ArithmeticFormula, *, binary: bool) -> float:
    def read(text: str) -> float | None:
        printed = read_printed(_binary(text) if binary else text)
        return None if printed is None else printed.value

    inputs = claim.inputs or {}
    numbers = {}
    for name, given in inputs.items():
        try:
            numbers[name] = input_value(name, given, read)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return formula.value(**numbers)


def _binary(text: str) -> str:
    return _LETTER.sub(lambda letter: f"{letter[0].upper()}i", text)


def _shown(value: float, formula: ArithmeticFormula) -> str:
    if formula.dimension == "bytes":
        return decimal_bytes(value)
    if formula.dimension == "fraction":
        return f"{value:.4g} ({value:.2%})"
    return f"{value:,.6g} {formula.units[0]}"
