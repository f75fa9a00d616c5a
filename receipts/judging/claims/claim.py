"""The claim: a sentence about performance, with the receipts that support it and what it says about them.

This model is the published contract: ``schema/claims-1.schema.json`` is generated from it, ``docs/claims.md`` is its
page. Immutable: a claim is never edited, it is superseded by another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

from receipts.axes import leaf_named
from receipts.base.errors import NotFound
from receipts.judging.claims import arithmetic
from receipts.judging.claims import bound as bounds
from receipts.judging.claims import mechanism as mechanisms
from receipts.judging.claims.bound import Bound
from receipts.judging.claims.mechanism import Mechanism
from receipts.metrics import METRICS

VERSION = "1.0"
Kind = Literal["speedup", "equivalence", "ceiling", "mfu", "memory", "does-not-fit", "arithmetic"]
METRIC: Mapping[str, str] = {
    "speedup": "tokens_per_second",
    "equivalence": "tokens_per_second",
    "mfu": "mfu",
    "memory": "peak_bytes",
    "ceiling": "tokens_per_second",
    "does-not-fit": "outcome",
}
# A time that is 25 % slower is a quarter longer; a rate is a quarter lower.
_SLOWER = re.compile(r"(%|\bper ?cent|\bpct)\s*slower\b", re.IGNORECASE)
PAIRED = ("speedup", "equivalence")
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
        problems = [*_effect_problems(self), *_whole_problems(self), *arithmetic.problems(self)]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def metric_name(self) -> str:
        """The metric asked for, or the one that the kind implies; of arithmetic the formula."""
        if self.kind == "arithmetic":
            return self.formula or ""
        return self.metric or METRIC[self.kind]

    @cached_property
    def bound(self) -> Bound | None:
        """The effect as a band; None where the claim names none."""
        if self.effect is None:
            return None
        metric = METRICS.get(self.metric_name)
        lower = metric is not None and metric.better == "lower"
        text = _SLOWER.sub(r"\1 more", self.effect) if lower else self.effect
        band = bounds.read(text, share=metric is None or metric.unit == "fraction")
        return replace(band, text=self.effect)

    def with_effect(self, effect: str) -> Claim:
        """The same claim with another effect. Raises ValidationError where its kind does not take that effect."""
        return Claim.model_validate({**self.model_dump(exclude_none=True), "effect": effect})

    @property
    def mechanism_named(self) -> Mechanism | None:
        """The mechanism that it credits."""
        return None if self.mechanism is None else mechanisms.get(self.mechanism)

    @property
    def compares(self) -> bool:
        """Whether it says something of a candidate against a baseline."""
        return self.kind in PAIRED or (self.kind == "memory" and bool(self.baseline))


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


def _whole_problems(claim: Claim) -> list[str]:
    problems = []
    if claim.kind in ALONE and claim.baseline:
        problems.append(f"baseline: a claim of kind {claim.kind} has none")
    if claim.supersedes == claim.id:
        problems.append("supersedes: it names itself")
    if claim.reason is not None and claim.supersedes is None:
        problems.append("reason: it says why a claim is superseded, and this one supersedes none")
    return problems


class ClaimsDocument(ClaimModel):
    """A file of claims, `claims.toml`."""

    schema_version: Literal["1.0"] = Field(description="Version of this form.")
    claim: tuple[Claim, ...] = Field(default=(), description="The claims, one table `[[claim]]` each.")
