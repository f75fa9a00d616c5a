"""The claim: a sentence about performance, with the receipts that support it; its schema, and the file that it is in.

This model is the published contract: ``schema/claims-1.schema.json`` is generated from it, ``docs/claims.md`` is its
page. Immutable: a claim is never edited, it is superseded by another. A claim of kind `arithmetic` names a formula with
its inputs, and the result that the sentence states. Of a ``claims.toml`` every problem is reported, each with its path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from receipts.axes import leaf_named
from receipts.base.errors import InputError, NotFound, Problem
from receipts.base.files import read_small
from receipts.base.units import BYTES, decimal_bytes
from receipts.base.untrusted_text import parse_toml
from receipts.judging import bound as bounds
from receipts.judging import mechanism as mechanisms
from receipts.judging.bound import Bound, difference
from receipts.judging.mechanism import Mechanism
from receipts.judging.verdict import Assessment
from receipts.metrics import METRICS
from receipts.metrics.arithmetic import ARITHMETIC, DECIMAL, ArithmeticFormula, input_value, is_bytes
from receipts.receipt.problems import problems as described_problems

CLAIMS_VERSION = "1.0"
Kind = Literal["speedup", "equivalence", "ceiling", "mfu", "memory", "does-not-fit", "arithmetic"]
METRIC_OF_KIND: Mapping[str, str] = {
    "speedup": "tokens_per_second",
    "equivalence": "tokens_per_second",
    "mfu": "mfu",
    "memory": "peak_bytes",
    "ceiling": "tokens_per_second",
    "does-not-fit": "outcome",
}
# A time that is 25 % slower is a quarter longer; a rate is a quarter lower.
_SLOWER = re.compile(r"(%|\bper ?cent|\bpct)\s*slower\b", re.IGNORECASE)
ALONE = ("ceiling", "mfu", "does-not-fit", "arithmetic")

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=500)]


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Words = Annotated[tuple[Word, ...], BeforeValidator(_listed, json_schema_input_type=Word | list[Word])]


class ClaimModel(BaseModel):
    """Base of every part: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Shape(ClaimModel):
    """A shape at which a claim is to hold. What is left out is not bounded."""

    pattern: Word | None = Field(default=None, description="Block pattern, as the stack is built from it.")
    chips: int | None = Field(default=None, ge=1, description="Chips.")
    sequence_length: int | None = Field(default=None, ge=1, description="Tokens a sequence.")
    micro_batch: int | None = Field(default=None, ge=1, description="Sequences a chip holds at once.")
    global_batch: int | None = Field(default=None, ge=1, description="Sequences a step.")
    depth: int | None = Field(default=None, ge=1, description="Blocks.")

    @property
    def bounds(self) -> Mapping[str, int | str]:
        """Leaf paths with the value that each must have."""
        paths = {"pattern": "model.pattern", "chips": "hardware.chips", "depth": "model.depth"}
        stated = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {paths.get(name, f"batch.{name}"): value for name, value in stated if value is not None}

    def __str__(self) -> str:
        amounts = {path: f"{value:,}" if isinstance(value, int) else value for path, value in self.bounds.items()}
        return ", ".join(f"{path.rpartition('.')[2].replace('_', ' ')} {amount}" for path, amount in amounts.items())


class Claim(ClaimModel):
    """One claim. `baseline` and `candidate` name receipts; several words, or a label, name a group of launches."""

    id: Identifier = Field(description="Name of the claim, unique in its file and in a store.")
    text: Text = Field(description="The sentence as it is published.")
    kind: Kind = Field(description="What sort of claim it is.")
    baseline: Words = Field(default=(), description="Receipts it compares with: ids, prefixes, labels, @pins, files.")
    candidate: Words = Field(default=(), description="Receipts that it speaks of.")
    axis: Word | None = Field(default=None, description="The one axis that it credits, or a leaf of it.")
    metric: Word | None = Field(default=None, description="Metric; left out, the one that its kind implies.")
    effect: Word | None = Field(default=None, description=f"What it says of the number: {bounds.EXAMPLES}.")
    formula: Word | None = Field(default=None, description="Formula of a claim of kind arithmetic.")
    inputs: Mapping[Word, int | float | Word] | None = Field(
        default=None, description="Numbers that the formula takes, by name; text where one has a unit: 70B, 128K, bf16."
    )
    target: Shape | Word | None = Field(
        default=None, description="Shape at which it is to hold, or the name of one of the lane's targets."
    )
    mechanism: Word | None = Field(default=None, description="What it credits the effect to.")
    study: Word | None = Field(default=None, description="Lockstep study whose axes count as one.")
    waive: Mapping[Word, Text] | None = Field(default=None, description="Axes waived, each with its reason.")
    quoted_in: Words = Field(default=(), description="Documents that quote it, by path or URL.")
    supersedes: Identifier | None = Field(default=None, description="Id of the claim that it replaces.")
    reason: Text | None = Field(default=None, description="Why it replaces that claim.")

    # Field by field, so that one wrong name does not hide another.
    @field_validator("metric")
    @classmethod
    def _known_metric(cls, name: str | None) -> str | None:
        if name is not None and name not in METRICS:
            raise ValueError(f"there is no metric {name!r}; known: {', '.join(METRICS)}")
        return name

    @field_validator("axis")
    @classmethod
    def _known_axis(cls, name: str | None) -> str | None:
        try:
            return None if name is None else leaf_named(name)  # one of the members of an axis, which change one by one
        except NotFound as error:
            raise ValueError(str(error)) from None

    @field_validator("mechanism")
    @classmethod
    def _known_mechanism(cls, name: str | None) -> str | None:
        if name is not None and mechanisms.get(name) is None:
            raise ValueError(f"there is no mechanism {name!r}; known: {', '.join(mechanisms.MECHANISMS)}")
        return name

    @field_validator("effect")
    @classmethod
    def _readable_effect(cls, text: str | None) -> str | None:
        if text is not None:
            bounds.read(text, share=True)
        return text

    @model_validator(mode="after")
    def _hangs_together(self) -> Claim:
        problems = _effect_problems(self)
        if self.kind in ALONE and self.baseline:
            problems.append(f"baseline: a claim of kind {self.kind} has none")
        if self.supersedes == self.id:
            problems.append("supersedes: it names itself")
        if self.reason is not None and self.supersedes is None:
            problems.append("reason: it says why a claim is superseded, and this one supersedes none")
        problems += arithmetic_problems(self)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def metric_name(self) -> str:
        """The metric asked for, or the one that the kind implies; of arithmetic the formula."""
        if self.kind == "arithmetic":
            return self.formula or ""
        return self.metric or METRIC_OF_KIND[self.kind]

    @cached_property
    def bound(self) -> Bound | None:
        """The effect as a band; None if the claim names none."""
        if self.effect is None:
            return None
        metric = METRICS.get(self.metric_name)
        lower = metric is not None and metric.better == "lower"
        text = _SLOWER.sub(r"\1 more", self.effect) if lower else self.effect
        band = bounds.read(text, share=metric is None or metric.unit == "fraction")
        return replace(band, text=self.effect)

    def with_effect(self, effect: str) -> Claim:
        """The same claim with another effect. Raises ValidationError if its kind does not take that effect."""
        return Claim.model_validate({**self.model_dump(exclude_none=True), "effect": effect})

    @property
    def mechanism_named(self) -> Mechanism | None:
        """The mechanism that it credits."""
        return None if self.mechanism is None else mechanisms.get(self.mechanism)

    @property
    def compares(self) -> bool:
        """Whether it says something of a candidate against a baseline."""
        return self.kind in ("speedup", "equivalence") or (self.kind == "memory" and bool(self.baseline))


def _effect_problems(claim: Claim) -> list[str]:
    if claim.effect is None:
        needed = claim.kind not in ("ceiling", "does-not-fit")
        return [f"effect: a claim of kind {claim.kind} says how much: {bounds.EXAMPLES}"] if needed else []
    if claim.kind == "does-not-fit":
        return ["effect: what does not fit has none; leave it out"]
    try:
        bound = claim.bound
    except bounds.NotABound as error:
        return [f"effect: {error}"]
    assert bound is not None
    if claim.kind == "arithmetic":
        return []
    if claim.kind == "equivalence" and not bound.low <= 1.0 <= bound.high:
        return ['effect: equivalence is a band around one: "within ±1 %"']
    if claim.compares and bound.of == "value":
        return [f"effect: against a baseline it is a factor or a percentage: {bounds.EXAMPLES}"]
    if not claim.compares and bound.of != "value":
        return ["effect: without a baseline it is a value with its unit, such as 115 GiB, 29.2 % or 112,152 tok/s"]
    return []


class ClaimsDocument(ClaimModel):
    """A file of claims, `claims.toml`."""

    schema_version: Literal["1.0"] = Field(description="Version of this form.")
    claim: tuple[Claim, ...] = Field(default=(), description="The claims, one table `[[claim]]` each.")


MAX_CLAIMS_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """A file of claims. `folder` is where the files that it names lie; None if it names none, as in a store."""

    source: str
    folder: Path | None
    claims: tuple[Claim, ...]
    raw: bytes = b""  # the document, where it is one


def read_claims_file(path: str | Path) -> ClaimFile:
    """Read a ``claims.toml``. Raises InputError with every problem, each with its path."""
    place = Path(path)
    try:
        raw = read_small(place, MAX_CLAIMS_BYTES)
    except OSError as error:
        raise InputError(str(path), [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None
    return ClaimFile(str(path), place.parent, parse_claims(raw, str(path)), raw)


def parse_claims(raw: bytes, source: str) -> tuple[Claim, ...]:
    """The claims of a TOML document. Raises InputError."""
    if len(raw) > MAX_CLAIMS_BYTES:
        raise InputError(source, [Problem("", f"it has more than {MAX_CLAIMS_BYTES // 2**20} MiB", "divide it")])
    try:
        tree = parse_toml(raw)
    except ValueError as error:
        raise InputError(source, [Problem("", f"this is not TOML: {error}")]) from None
    version = tree.get("schema_version")
    if isinstance(version, str) and version != CLAIMS_VERSION:
        do = (
            f"this program reads {CLAIMS_VERSION}; upgrade frontier-receipts"
            if version > CLAIMS_VERSION
            else f"write {CLAIMS_VERSION}"
        )
        raise InputError(source, [Problem("schema_version", f"there is no version {version}", do)])
    try:
        document = ClaimsDocument.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        raise InputError(source, _problems_of(error, tree)) from None
    wrong: list[Problem] = []
    first: dict[str, int] = {}
    for index, claim in enumerate(document.claim):
        if (earlier := first.setdefault(claim.id, index)) != index:
            what = f"{claim.id} is claim[{earlier}] too"
            wrong.append(Problem(f"claim[{index}].id", what, "give it another id"))
    for index, claim in enumerate(document.claim):
        if claim.effect is not None and (why := difference(claim.effect)) is not None:
            wrong.append(Problem(f"claim[{index}].effect", *why.split("; ", 1)))
    if wrong:
        raise InputError(source, wrong)
    return document.claim


def claim_from_json(text: str, source: str) -> Claim:
    """One claim, as a store keeps it. Raises InputError."""
    try:
        return Claim.model_validate_json(text)
    except ValidationError as error:
        raise InputError(source, _problems_of(error, json.loads(text))) from None


def claim_to_json(claim: Claim) -> str:
    """A claim as a store keeps it: what it states and nothing else."""
    return json.dumps(claim.model_dump(mode="json", exclude_none=True, exclude_defaults=True), ensure_ascii=False)


def _problems_of(error: ValidationError, tree: Any) -> Iterator[Problem]:
    """Problems of a claim as a whole name the key first: one problem a key, without the advice for receipts."""
    for problem in described_problems(error, tree):
        if problem.what.startswith("value error, "):
            for part in problem.what.removeprefix("value error, ").split("\n"):
                key, separator, reason = part.partition(": ")
                known = separator and key in Claim.model_fields
                yield Problem(f"{problem.at}.{key}" if known else problem.at, reason if known else part)
        elif problem.what == "there is no such key":
            yield Problem(problem.at, problem.what, f"the keys of a claim are {', '.join(Claim.model_fields)}")
        else:
            yield problem


# `32 KB`, `128K`: a letter of a thousand that programs also write for 1,024.
_LETTER = re.compile(r"(?<=[\d ])([KMGT])(?=B?\b)", re.IGNORECASE)
# Of which counts the letters are of 1,024.
_READINGS = ((), ("tokens",), ("bytes",), ("tokens", "bytes"))
# Of bytes a `B` alone is a byte, and no billion.
_BYTE = re.compile(r"(?<=[\d ])B\b")


def arithmetic_problems(claim: Claim) -> Iterator[str]:
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
        try:
            _arithmetic_value(claim, formula)
        except ValueError as error:
            yield f"inputs: {error}"
    if claim.effect is None:
        return
    unit = bounds.unit_of(claim.effect)
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


def assess_arithmetic(claim: Claim) -> Assessment:
    """The formula's result held against the stated one; K, M, G and T may be 1,000 or 1,024 of tokens and of bytes.

    The claim holds if it does in one of the readings: people write `128K` of 131,072 tokens and `42.9 GB` of 10⁹ bytes.
    A letter means the same of all counts, and of all bytes. The inputs of a share are rates and degrees, whose K is
    1,000.
    """
    formula = ARITHMETIC[claim.formula or ""]
    first: Assessment | None = None
    count, stated = "tokens", claim.effect or ""
    if formula.dimension == "bytes":
        count, stated = "bytes", _BYTE.sub("bytes", stated)
    for binary in ((),) if formula.dimension == "fraction" else _READINGS:
        value = _arithmetic_value(claim, formula, binary)
        band = bounds.read(_binary(stated) if count in binary else stated, share=True)
        text = f"{formula.name} = {formula.expression} = {_shown_result(value, formula)}, claimed {band.text}"
        if band.judge(value, value) == "holds":
            return Assessment(
                "holds", text + (f" (K, M and G of {binary} are of 1,024)" if binary else ""), value, value
            )
        first = first or Assessment("fails", text, value, value)
    assert first is not None
    return first


def _arithmetic_value(claim: Claim, formula: ArithmeticFormula, binary: Sequence[str] = ()) -> float:
    numbers = {}
    for name, given in (claim.inputs or {}).items():
        of_1024 = name not in DECIMAL and ("bytes" if is_bytes(name) else "tokens") in binary
        text = _binary(given) if isinstance(given, str) and of_1024 else given
        try:
            numbers[name] = input_value(name, text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return formula.value(**numbers)


def _binary(text: str) -> str:
    return _LETTER.sub(lambda letter: f"{letter[0].upper()}i", text)


def _shown_result(value: float, formula: ArithmeticFormula) -> str:
    if formula.dimension == "bytes":
        return decimal_bytes(value)
    if formula.dimension == "fraction":
        return f"{value:.4g} ({value:.2%})"
    return f"{value:,.6g} {formula.units[0]}"
