"""The receipt, version 1.1: one immutable JSON document about one launch."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from receipts.receipt.architecture import Model
from receipts.receipt.compilation import Compile
from receipts.receipt.inputs import Inputs
from receipts.receipt.layout import Batch, Parallelism
from receipts.receipt.leaf import Section, note, section
from receipts.receipt.machine import Code, Hardware, Platform
from receipts.receipt.maps import Evidence, Flags, Notes, OpenMap, Wheels
from receipts.receipt.measurement import Measurement
from receipts.receipt.memory import Failure, Memory
from receipts.receipt.numerics import Data, Numerics
from receipts.receipt.path import Path
from receipts.receipt.run import Run

VERSION = "1.1"


def _open_map(description: str, role: str = "axis") -> Any:
    """An open map: each of its keys is a leaf, and, where its role is axis, an axis of its own."""
    return Field(default=None, description=description, json_schema_extra={"receipts": {"role": role, "open": True}})


class Receipt(Section):
    """One launch: what ran, where, on what, what was intended, what was seen, what it measured.

    A missing value means *not stated*. Nothing is filled with a default. Unknown keys are refused, except in the
    open maps. Units stand in names. The document's id is the SHA-256 of its bytes as they came.
    """

    schema_version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+$")] = note(
        "Version of this schema, major.minor.", required=True
    )
    run: Run = Field(description="Which launch this is, when and where it ran, how it ended.")
    code: Code | None = section("The source that was imported.")
    inputs: Inputs | None = section("What the launch was started with.")
    hardware: Hardware | None = section("The machine.")
    platform: Platform | None = section("The software below the wheels.")
    wheels: Wheels | None = Field(
        default=None,
        description="Installed distributions: version with local tag, or an object with version and digest.",
        json_schema_extra={"receipts": {"role": "axis", "open": True, "axis": "wheels"}},
    )
    flags: Flags | None = _open_map(
        "Flags and environment, one key a flag and a sub-flag (`XLA_FLAGS.…`, `LIBTPU_INIT_ARGS.…`)."
    )
    patches: OpenMap | None = _open_map("Patches applied to the software, by name.")
    features: OpenMap | None = _open_map("Switches of the model and the training loop, by name.")
    model: Model | None = section("The architecture.")
    parallelism: Parallelism | None = section("Degrees and sharding.")
    batch: Batch | None = section("Shape of a step.")
    numerics: Numerics | None = section("Arithmetic and optimization.")
    compile: Compile | None = section("Compile posture and cost.")
    data: Data | None = section("What was trained on.")
    path: Path | None = section("Intended and witnessed path.")
    measurement: Measurement | None = section("What was measured.")
    memory: Memory | None = section("Bytes by chip and phase.")
    failure: Failure | None = section("Why it did not end well.")
    evidence: tuple[Evidence, ...] | None = section("Files that observations were read from.")
    notes: Notes | None = _open_map("Free text and attachments by URI.", role="note")
