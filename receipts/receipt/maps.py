"""The open maps (``features``, ``flags``, ``patches``, ``wheels``, ``notes``) and the ``evidence`` list.

An open map may carry ``complete: true``: the whole set was captured, so an absent key is the stated value *unset*.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from receipts.receipt.leaf import Digest, Name, Section, Text, axis, note, observed

COMPLETE = "complete"
Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=10_000)]


class Wheel(Section):
    """An installed distribution."""

    version: Name = axis("Full version with its local tag.", of="wheels", required=True)
    digest: Name | None = observed("Digest of the installed files.")
    editable: bool | None = observed("Whether a source checkout shadows the wheel.")


class Flag(Section):
    """A flag whose time of setting is known."""

    value: Scalar = axis("Value.", required=True)
    before_runtime: bool | None = observed("Whether it was set before the runtime was imported.")


def _captured(entries: dict[str, Any]) -> dict[str, Any]:
    """``complete`` says whether the whole set was captured, and nothing else may stand there."""
    if not isinstance(entries.get(COMPLETE, True), bool):
        raise PydanticCustomError("complete_type", "its `complete` must be true or false")
    return entries


def _versions(entries: dict[str, Any]) -> dict[str, Any]:
    for key, entry in entries.items():
        if key != COMPLETE and isinstance(entry, bool):
            raise PydanticCustomError(
                "wheel_type", "{key} must be a version, or an object with its version", {"key": key}
            )
    return entries


Wheels = Annotated[
    dict[Key, bool | Name | Wheel], Field(max_length=2000), AfterValidator(_captured), AfterValidator(_versions)
]
Flags = Annotated[dict[Key, Scalar | Flag], Field(max_length=2000), AfterValidator(_captured)]
OpenMap = Annotated[dict[Key, Scalar], Field(max_length=2000), AfterValidator(_captured)]
Observed = Annotated[dict[Key, Scalar], Field(max_length=2000)]
Notes = Annotated[dict[Key, Scalar | tuple[Text, ...]], Field(max_length=200)]


class Evidence(Section):
    """A parsed observation, with the place and digest of the file that it came from."""

    kind: Name = note("What the file is: te-debug, torch-profile, hlo, metrics, ….", required=True)
    producer: Name | None = note("Program that wrote the file.")
    version: Name | None = note("Version of the producer.")
    uri: Text | None = note("Location of the file.")
    sha256: Digest | None = note("SHA-256 of the file.")
    level: Annotated[str, StringConstraints(pattern=r"^(intent|backend|kernels)$")] | None = note(
        "Its level: `intent` (requested), `backend` (the selection was logged), `kernels` (they ran)."
    )
    observed: Observed | None = observed("What was read from it.")
    read: dict[Key, Text] | None = note(
        "The reader's record: each leaf that it read from the file, with the place there (a line, a record)."
    )
