"""Bodies of requests, as the model that reads one and OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from receipts.base.errors import InputError, Problem

Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
# A word that names stored receipts, or a document.
Named = Text | Annotated[dict[Literal["document"], str], Field(min_length=1)]
B = TypeVar("B", bound="Sent")
MOST = 1000  # words and documents of a side


class Sent(BaseModel):
    """What a request sends as JSON; no other keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls: type[B], raw: bytes) -> B:
        """The body. Raises InputError with every problem."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            every = error.errors(include_url=False, include_context=False, include_input=False)
            # What follows the place in a list is the branch of a union.
            problems = [Problem(".".join(map(str, item["loc"][:2])) or "$", item["msg"]) for item in every]
            raise InputError("the body", problems) from None


class Sides(Sent):
    """Both sides of a comparison, and launches that show the path of one."""

    a: Annotated[list[Named], Field(min_length=1, max_length=MOST)]
    b: Annotated[list[Named], Field(min_length=1, max_length=MOST)]
    witness: Annotated[list[Named], Field(max_length=MOST)] = []


class Pinned(Sent):
    """The receipt that a pin points at, and why."""

    receipt: Text
    note: Text | None = None


class Decided(Sent):
    """What is decided about a receipt, and why."""

    receipt: Text
    decision: Literal["ship", "hold", "drop"]
    reason: Text
