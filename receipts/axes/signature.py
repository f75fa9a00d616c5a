"""The signature of a launch: one hash over what decides, before it runs, whether it fits.

The same function signs a plan, a recorded receipt and one that was read from logs; what none of them states is left
out of it, and so is what only a run shows. ``docs/preflight.md`` lists every leaf, and why the others are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.effective import OFF, intended
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

# Raised whenever another receipt would get another hash: `receipts db reindex` then writes every row anew.
VERSION: Final = 5
MICRO_BATCH, SEQUENCE_LENGTH = "batch.micro_batch", "batch.sequence_length"
SHAPE: Final = ("hardware.accelerator", "hardware.chips", SEQUENCE_LENGTH, MICRO_BATCH, "model.depth")
_HARDWARE: Final = ("hardware.accelerator", "hardware.chips", "hardware.physical")
_BATCH: Final = (MICRO_BATCH, SEQUENCE_LENGTH)
# What moves no byte: the same launch with another learning rate fits or does not.
NO_MATTER: Final = frozenset({"numerics.learning_rate", "numerics.schedule", "compile.warmup_policy"})
_BY_SECTION: Final[Mapping[str, str]] = {
    "model": "model",
    "parallelism": "parallelism",
    "features": "features",
    "patches": "code",
    "numerics": "features",
    "compile": "features",
    "path": "features",
}
_NOTHING: Final = frozenset({"false", "0", "off", "none", "no", ""})


class Signature(NamedTuple):
    """What a launch is called before it is tried.

    It does not identify a configuration (`receipts.axes.configuration`): it is taken before the run, leaves out what
    moves no byte, and equals that of another launch where both leave the same unstated.

    ``signature`` is a SHA-256 in hex. ``base`` is 8 bytes, signed, of the same without the pressures that stand
    beside it: sequences at once, tokens a sequence, and the lane's non-essential features that are on.
    """

    signature: str
    base: int
    micro_batch: int | None
    sequence_length: int | None
    extras: tuple[str, ...]


def parts(parsed: Parsed) -> dict[str, Any]:
    """What the signature is taken over, by section: effective values, as they were decided before the run."""
    return parts_of(intended(parsed))


def parts_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same of effective values as they were decided before the run."""
    sections: dict[str, Any] = {name: {} for name in ("code", "hardware", "model", "parallelism", "batch", "features")}
    sections["code"].update(_code(values))
    for path, value in values.items():
        if path in _HARDWARE:
            sections["hardware"][path] = value
        elif path in _BATCH:
            sections["batch"][path] = value
        elif path not in NO_MATTER and (name := _BY_SECTION.get(path.partition(".")[0])) is not None:
            sections[name][path] = value
    return {"version": VERSION, **sections}


def sign(parsed: Parsed, lane: Lane) -> Signature:
    """The signature of a plan or receipt, and its place among launches that differ in pressure alone."""
    return signature_of(parts(parsed), lane.nonessential_features)


def signature_of(whole: Mapping[str, Any], nonessential: Collection[str]) -> Signature:
    """The signature of `parts`, under a lane with these non-essential features."""
    extras = dict(_extras(whole["features"], nonessential))
    base = {**whole, "batch": {}, "features": {k: v for k, v in whole["features"].items() if k not in extras}}
    # Which of them are stated stays in the base: what is unstated may be on.
    base["pressures"] = sorted([*whole["batch"], *extras])
    return Signature(
        signature=name_of(whole),
        base=int.from_bytes(_digest(base)[:8], "big", signed=True),
        micro_batch=whole["batch"].get(MICRO_BATCH),
        sequence_length=whole["batch"].get(SEQUENCE_LENGTH),
        extras=tuple(sorted(path.removeprefix("features.") for path, on in extras.items() if on)),
    )


def unstated(parsed: Parsed) -> tuple[str, ...]:
    """The parts of the shape that a plan or receipt does not state. Without all of them its hash names no launch."""
    return tuple(path for path in SHAPE if parsed.stated.get(path) is None)


def name_of(whole: Mapping[str, Any]) -> str:
    """The SHA-256 of `parts`, in hex."""
    return _digest(whole).hex()


def _digest(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _code(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A clean commit names its code, and is known before anything is imported; else the files that were imported."""
    commit, digest = values.get("code.commit"), values.get("code.imported_digest")
    if commit is not None and (values.get("code.dirty") is not True or digest is None):
        return {"commit": commit, "dirty": values.get("code.dirty") is True}
    return {"imported": digest} if digest is not None else {}


def _extras(features: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, bool]]:
    """The non-essential features that are stated, and whether each is on."""
    for name in names:
        path = f"features.{name}"
        if path in features:
            yield path, str(features[path]).lower() not in _NOTHING and features[path] != OFF
