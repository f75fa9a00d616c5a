"""Claims of kind `arithmetic`: a named formula with its inputs, and the result that the sentence states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from receipts.base.units import BYTES, decimal_bytes
from receipts.judging.claim_verdict import Assessment
from receipts.judging.claims import bound
from receipts.metrics.arithmetic import ARITHMETIC, DECIMAL, ArithmeticFormula, input_value, is_bytes

if TYPE_CHECKING:
    from receipts.judging.claims.claim import Claim

# `32 KB`, `128K`: a letter of a thousand that programs also write for 1,024.
_LETTER = re.compile(r"(?<=[\d ])([KMGT])(?=B?\b)", re.IGNORECASE)
# Of which counts the letters are of 1,024.
_READINGS = ((), ("tokens",), ("bytes",), ("tokens", "bytes"))
# Of bytes a `B` alone is a byte, and no billion.
_BYTE = re.compile(r"(?<=[\d ])B\b")


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
        _value(claim, formula)
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
    """The formula's result held against the stated one; K, M, G and T may be 1,000 or 1,024 of tokens and of bytes.

    The claim holds if it does in one of the readings: people write `128K` of 131,072 tokens and `42.9 GB` of 10⁹ bytes.
    A letter means the same of all counts, and of all bytes. The inputs of a share are rates and degrees, whose K is
    1,000.
    """
    formula = ARITHMETIC[claim.formula or ""]
    first: Assessment | None = None
    for binary in ((),) if formula.dimension == "fraction" else _READINGS:
        value = _value(claim, formula, binary)
        band = bound.read(_effect(claim.effect or "", formula, binary), share=True)
        text = f"{formula.name} = {formula.expression} = {_shown(value, formula)}, claimed {band.text}"
        if band.judge(value, value) == "holds":
            return Assessment(
                "holds", text + (f" (K, M and G of {binary} are of 1,024)" if binary else ""), value, value
            )
        first = first or Assessment("fails", text, value, value)
    assert first is not None
    return first


def _value(claim: Claim, formula: ArithmeticFormula, binary: Sequence[str] = ()) -> float:
    numbers = {}
    for name, given in (claim.inputs or {}).items():
        of_1024 = name not in DECIMAL and ("bytes" if is_bytes(name) else "tokens") in binary
        text = _binary(given) if isinstance(given, str) and of_1024 else given
        try:
            numbers[name] = input_value(name, text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return formula.value(**numbers)


def _effect(text: str, formula: ArithmeticFormula, binary: Sequence[str]) -> str:
    """The stated result, with the letters of a thousand as they are to be read."""
    if formula.dimension == "bytes":
        text = _BYTE.sub("bytes", text)
    return _binary(text) if ("bytes" if formula.dimension == "bytes" else "tokens") in binary else text


def _binary(text: str) -> str:
    return _LETTER.sub(lambda letter: f"{letter[0].upper()}i", text)


def _shown(value: float, formula: ArithmeticFormula) -> str:
    if formula.dimension == "bytes":
        return decimal_bytes(value)
    if formula.dimension == "fraction":
        return f"{value:.4g} ({value:.2%})"
    return f"{value:,.6g} {formula.units[0]}"
