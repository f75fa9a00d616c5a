"""The shape of a launch, read from axes and never from labels, and the signature of what decides whether it fits.

Frontiers, ceilings, envelopes and claims compare shapes: a geometry, a layout and sizes. Sizes (chips, sequence length,
micro batch, depth) can be ordered, and stand in columns of their own; of the other two equal ones alone are one shape.
Names and families are shown, not compared.

The signature is one hash over what decides, before a launch runs, whether it fits. The same function signs a plan, a
recorded receipt and one that was read from logs; what none of them states is left out of it, and so is what only a run
shows. ``docs/preflight.md`` lists every leaf, and why the others are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.catalogue import compact_json, eight_bytes
from receipts.axes.effective import OFF, axis_of, canonical, effective, intended
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.lane import Lane, Target


# The axes that make a model and its machine, whatever its depth.
_MODEL: Final = ("pattern", "dimensions", "routing", "model.sparse_attention", "model.attention_kinds")
GEOMETRY: Final = frozenset({*_MODEL, "hardware.accelerator"})
LAYOUT: Final = "parallelism."
# What else decides whether a size fits: a shape that fits with full recompute does not repeat one without.
_HELD_BY: Final = frozenset({"recompute", "precision", "optimizer"})
# Constants of communication are tuned under a layout, and make no other.
_TUNED: Final = frozenset(f"parallelism.{name}" for name in ("bucket_bytes", "padding", "chunking", "prefetch"))
PATTERN: Final = "model.pattern"
DEPTH: Final = "model.depth"


class ShapeKey(NamedTuple):
    """Two digests of 8 bytes, signed: the model on its accelerator, and how the work was cut and held.

    A frontier row has one geometry; a ceiling, an envelope or a failure has one geometry and one layout. What is not
    stated is equal to itself alone. A shape is less than a configuration (`receipts.axes.configuration`): launches of
    one shape may differ in every other axis.
    """

    geometry: int
    layout: int

    def __str__(self) -> str:
        return "-".join(f"{part % 2**64:016x}" for part in self)


def shape_key(parsed: Parsed) -> ShapeKey:
    """The key of a receipt's shape, from its effective values."""
    return key_of(effective(parsed))


def key_of(values: Mapping[str, Any]) -> ShapeKey:
    """The key of a shape by its effective values."""
    geometry = {path: value for path, value in values.items() if path != DEPTH and axis_of(path) in GEOMETRY}
    layout = {
        path: value
        for path, value in values.items()
        if (path.startswith(LAYOUT) and path not in _TUNED) or axis_of(path) in _HELD_BY
    }
    return ShapeKey(eight_bytes(compact_json(geometry)), eight_bytes(compact_json(layout)))


def meets(parsed: Parsed, bounds: Mapping[str, Any]) -> bool:
    """Whether a launch ran at these values of leaves; a pattern is the stack that it makes at the launch's depth."""
    from receipts.receipt.patterns import shortest_tile

    values = effective(parsed)
    wanted, depth = dict(bounds), values.get(DEPTH)
    if PATTERN in wanted and isinstance(depth, int):
        wanted[PATTERN] = shortest_tile(wanted[PATTERN], depth)
    return bool(wanted) and all(values.get(path) == value for path, value in wanted.items())


def target_of(parsed: Parsed, lane: Lane) -> Target | None:
    """The lane's target at which a launch ran; None if it ran at none."""
    return next((target for target in lane.targets if meets(parsed, target.bounds)), None)


def substrate_of(parsed: Parsed, lane: Lane) -> Target | None:
    """The lane's ablation substrate at which a launch ran; None if it ran at none. A substrate is not a target."""
    return next((item for item in lane.substrates if meets(parsed, item.bounds)), None)


class Description(NamedTuple):
    """A shape as it is shown; nothing of it is compared. ``model`` has its axes in words, ``layout`` its degrees."""

    family: str | None
    name: str | None
    model: str
    layout: str


def described(stated: Mapping[str, Any]) -> Description:
    """What to call the shape of a receipt: its family as stated, else as pattern or experts show it."""
    from receipts.receipt.patterns import family_of

    paths = (PATTERN, DEPTH, "model.sparse_attention", "model.attention_kinds")
    pattern, depth, sparse, kinds = map(stated.get, paths)
    family = stated.get("model.family") or (family_of(pattern, stated.get("model.alphabet")) if pattern else None)
    axes = (
        f"{pattern or ''}{f' to depth {depth}' if pattern and depth else f'depth {depth}' if depth else ''}",
        f"sparse attention {sparse}" if canonical(sparse) not in (None, OFF) else "",
        f"attention {kinds}" if kinds else "",
        *(f"{stated[path]:,} {name}" for name, path in _WIDTHS if stated.get(path)),
    )
    # Sequence parallelism has no degree of its own, and is on.
    degrees = ((letter, stated.get(path)) for letter, path in _DEGREES)
    layout = " ".join(letter if value is True else f"{letter}{value}" for letter, value in degrees if value)
    named = family or ("moe" if stated.get("model.experts") else None)
    return Description(named, stated.get("model.name"), ", ".join(filter(None, axes)), layout)


def pressure(parsed: Parsed) -> str:
    """What presses on memory beside the layout, as far as it is stated: recompute and precision."""
    values = effective(parsed)
    stated = ((word, values.get(path)) for word, path in _PRESSES)
    words = ", ".join(f"{word} {value}" for word, value in stated if value is not None)
    return words or "recompute and precision not stated"


_PRESSES: Final = (("recompute", "numerics.recompute"), ("matmuls in", "numerics.compute_dtype"))
_WIDTHS: Final = (("wide", "model.hidden"), ("experts", "model.experts"))
_DEGREES: Final = (
    ("TP", "parallelism.tensor"),
    ("SP", "parallelism.sequence"),
    ("PP", "parallelism.pipeline"),
    ("VPP", "parallelism.virtual_pipeline"),
    ("CP", "parallelism.context"),
    ("EP", "parallelism.expert"),
    ("ETP", "parallelism.expert_tensor"),
    ("FSDP", "parallelism.shard"),
    ("DP", "parallelism.data"),
)


# Raised whenever another receipt would get another hash: `receipts db reindex` then writes every row anew.
SIGNATURE_VERSION: Final = 5
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
    return {"version": SIGNATURE_VERSION, **sections}


def sign(parsed: Parsed, lane: Lane) -> Signature:
    """The signature of a plan or receipt, and its place among launches that differ in pressure alone."""
    return signature_of(parts(parsed), lane.nonessential_features)


def signature_of(whole: Mapping[str, Any], nonessential: Collection[str]) -> Signature:
    """The signature of `parts`, under a lane with these non-essential features."""
    features = whole["features"]
    # The non-essential features that are stated, and whether each is on.
    extras = {
        path: str(features[path]).lower() not in _NOTHING and features[path] != OFF
        for name in nonessential
        if (path := f"features.{name}") in features
    }
    base = {**whole, "batch": {}, "features": {path: value for path, value in features.items() if path not in extras}}
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
