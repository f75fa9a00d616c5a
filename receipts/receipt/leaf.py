"""How a leaf of the receipt says what it is: every field declares its role, and its axis, here and nowhere else.

A *role* tells what a comparison does with the leaf; see ``schema/receipt-1.md`` for the generated list.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import CoreSchema
from pydantic_core.core_schema import float_schema, int_schema, str_schema

SINCE = "1.0"
# How a leaf meets itself: what its declaration says beside `x-receipts` of the published schema.
POLICIES = ("ranks", "files", "group")
AGREE = "agree"  # several values count only if all of them are equal


class Role(StrEnum):
    """What a leaf is to a comparison."""

    AXIS = "axis"  # an experimenter can change it: counted
    INPUT = "input"  # what the launch was started with: compared by `receipts.axes.inputs`
    REPLICATE = "replicate"  # differs between launches of one configuration by intent: never counted
    BLOCK = "block"  # where a launch happened to run: never counted, judged by C111 alone
    DERIVED = "derived"  # follows from axes: shown, never counted
    REGIME = "regime"  # how it was measured: metrics say which regimes they depend on
    WORK = "work"  # how much was done: metrics say which must be equal
    OBSERVATION = "observation"  # what was seen
    OUTCOME = "outcome"  # how the launch ended
    NOTE = "note"  # for people, and for links between receipts


class Section(BaseModel):
    """Base of every part of the receipt: frozen, strict, unknown keys and non-finite numbers refused.

    Modules of sections leave annotations what they are: put off, they would be text that pydantic compiles each start.
    """

    # Built when first used: a validator is then made once for the whole receipt, and not once more for every section.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


def _plain(schema: CoreSchema) -> GetPydanticSchema:
    """A type by the schema that it comes to, which pydantic need not work out anew for every field that has it."""
    return GetPydanticSchema(lambda _source, _handler: schema)


Text = Annotated[str, _plain(str_schema(min_length=1, max_length=10_000))]
Name = Annotated[str, _plain(str_schema(min_length=1, max_length=500))]
Digest = Annotated[str, _plain(str_schema(pattern=r"^[0-9a-f]{64}$"))]
Count = Annotated[int, _plain(int_schema(ge=0, le=2**62))]
Positive = Annotated[int, _plain(int_schema(ge=1, le=2**62))]
Bytes = Annotated[int, _plain(int_schema(ge=0, le=2**62))]
Seconds = Annotated[float, _plain(float_schema(ge=0))]
Share = Annotated[float, _plain(float_schema(ge=0, le=1))]
Amount = Annotated[float, _plain(float_schema(ge=0))]


def _leaf(role: Role, description: str, *, required: bool = False, alias: str | None = None, **extra: Any) -> Any:
    declared = {"role": role.value, "axis": extra.pop("of", None), **extra}
    return Field(
        default=... if required else None,
        alias=alias,
        description=description,
        json_schema_extra={"receipts": {key: value for key, value in declared.items() if value is not None}},
    )


# Each takes the description, and by name: `unit`, `required`, `alias` (the key in the document where Python keeps the
# word for itself), `since`, `of` (the axis of which a leaf is one member; alone, it is an axis itself), `follows`
# (how a derived value does, in words), `ranks` and `files` (how one value comes out of those of several ranks, and of
# several files that ingest reads), and `group` (leaves that come from one place or not at all, as a value and its
# source text do: the first of them that is stated chooses it).
axis = partial(_leaf, Role.AXIS, since=SINCE)
given = partial(_leaf, Role.INPUT, since="1.1")
replicate = partial(_leaf, Role.REPLICATE)
block = partial(_leaf, Role.BLOCK)
derived = partial(_leaf, Role.DERIVED)
regime = partial(_leaf, Role.REGIME)
work = partial(_leaf, Role.WORK)
observed = partial(_leaf, Role.OBSERVATION)
ending = partial(_leaf, Role.OUTCOME)
note = partial(_leaf, Role.NOTE)


def section(description: str) -> Any:
    """A part of the receipt that has leaves of its own."""
    return Field(default=None, description=description)
