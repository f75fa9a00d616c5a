"""Switches: settings that do nothing, or follow, because of what another setting is.

Each rule reads stated leaves alone. What a rule does not decide keeps the value that was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from receipts.receipt.names import dtype_of

OFF = "off"
_WIDE = frozenset({"bf16", "fp16", "fp32", "tf32"})
Value = Any
Stated = Mapping[str, Any]

# Switches that have no value of their own until another leaf acts: one stage has no schedule, and without MTP heads
# nothing is wired. Where that leaf turned on or off, they follow it; the number is the most at which it is off.
BROUGHT_BY: Mapping[str, tuple[str, int]] = {
    "parallelism.schedule": ("parallelism.pipeline", 1),
    "parallelism.stage_layout": ("parallelism.pipeline", 1),
    "model.mtp_wiring": ("model.mtp_depth", 0),
    "path.mtp_cross_entropy": ("model.mtp_depth", 0),
    "path.dispatch": ("model.experts", 1),
}
# Switches that a degree of one turns off. One that was typed alike on both sides follows its degree; one that was
# typed anew is a choice of its own, and counts.
FOLLOWS: Mapping[str, str] = {
    "parallelism.sequence": "parallelism.tensor",
    "parallelism.virtual_pipeline": "parallelism.pipeline",
    "parallelism.schedule": "parallelism.pipeline",
    "parallelism.stage_layout": "parallelism.pipeline",
    "path.overlap": "hardware.chips",
}

# Widths of blocks that keep a state: a pattern without such blocks has none.
OF_STATE: tuple[str, ...] = tuple(f"model.{name}" for name in ("ssm_state", "ssm_heads", "ssm_groups", "ssm_variant"))

OF_ROUTER: tuple[str, ...] = (
    "model.router_order",
    "numerics.router_dtype",
    "numerics.router_auxiliary_loss",
    "numerics.router_z_loss",
)

# Leaves whose effect another decides. Typed alike on both sides, they count under that one.
DECIDED: Mapping[str, str] = {
    **dict.fromkeys(("parallelism.expert", "parallelism.expert_tensor"), "model.experts"),
    **{f"model.{name}": "model.experts" for name in ("top_k", "capacity_factor", "expert_ffn", "shared_expert_ffn")},
    **dict.fromkeys(OF_STATE, "model.pattern"),
    "model.pattern": "model.depth",
    "model.attention_kinds": "model.pattern",
    "numerics.fp8_recipe": "numerics.compute_dtype",
    "numerics.fp8_scope": "numerics.compute_dtype",
    "compile.regions": "compile.posture",
}
# What was loaded, and the wheels that bring it.
LOADED: Mapping[str, tuple[str, ...]] = {
    "platform.libtpu": ("libtpu",),
    "platform.cudnn": ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "platform.nccl": ("nvidia-nccl-cu12", "nvidia-nccl-cu13"),
}
# Flags that make a program tell more and compute the same (docs/evidence.md says what each costs): no setting of an
# experiment, but a regime, which C104 shows where the sides differ in one.
_TELLING = re.compile(
    r"flags\.(?:NVTE_DEBUG(?:_LEVEL)?|NCCL_DEBUG\w*|TORCH_(?:LOGS|TRACE)\w*|TORCH_CPP_LOG_LEVEL|PT_XLA_DEBUG\w*|"
    r"JAX_LOG\w*|JAX_EXPLAIN_CACHE_MISSES|JAX_DUMP_IR\w*|JAX_TRANSFER_GUARD\w*|XLA_METRICS_FILE|"
    r"(?:XLA_FLAGS|LIBTPU_INIT_ARGS)\..*xla_dump_\w+|TF_CPP_MIN_LOG_LEVEL|TPU_(?:MIN|STDERR)_LOG_LEVEL)",
)
# A report on every call or step costs time in each: a trace of NCCL's calls, an input's dump for each execution.
_SLOWING = re.compile(
    r"flags\.NCCL_DEBUG=TRACE|flags\.NCCL_DEBUG_SUBSYS=.*(?:\^|ALL|COLL|CALL|PROXY).*|.*_snapshots=.*", re.I
)
_MESH_AXIS = re.compile(r"\s*([A-Za-z_]\w*)\s*[:=]\s*(\d{1,9})\s*")
_CUDA_OF_TORCH = re.compile(r"\+cu(\d+)(\d)\b")


def mesh_of(text: str) -> dict[str, int]:
    """Sizes of mesh axes by name: `data:2,fsdp:4`; empty if a part names none. An axis of 1 divides nothing."""
    axes = [_MESH_AXIS.fullmatch(part) for part in text.split(",")]
    return {axis[1]: int(axis[2]) for axis in axes if axis is not None} if all(axes) else {}


def same_version(loaded: Any, installed: Any) -> bool | None:
    """Whether two dotted versions agree as far as both go; None if one is in another form, such as a date."""
    one, other = (re.match(r"\d+(?:\.\d+)+", str(version or "")) for version in (loaded, installed))
    if one is None or other is None:
        return None
    return all(a == b for a, b in zip(one[0].split("."), other[0].split("."), strict=False))


def loaded_from(path: str, effective: Mapping[str, Any]) -> str | None:
    """The installed wheel that a library of the platform was loaded from, by the version of both; None if none fits."""
    versions = {name: effective.get(name) for name in (f"wheels.{wheel}" for wheel in LOADED.get(path, ()))}
    if path == "platform.cuda" and (tag := _CUDA_OF_TORCH.search(str(effective.get("wheels.torch") or ""))):
        versions = {"wheels.torch": f"{tag[1]}.{tag[2]}"}
    return next((name for name, version in versions.items() if same_version(effective.get(path), version)), None)


def only_tells(path: str, value: Any) -> bool:
    """Whether a flag makes a program tell more, at no cost to a step that compiles nothing."""
    return _TELLING.fullmatch(path) is not None and _SLOWING.fullmatch(f"{path}={value}") is None


def loaded_over(values: Mapping[str, Any]) -> dict[str, str]:
    """By installed wheel the version that was loaded in its place, where none of its library's wheels was loaded.

    What runs is what the loader found first on its path, whatever is installed beside it.
    """
    versions: dict[str, str] = {}
    for library, wheels in LOADED.items():
        loaded = values.get(library)
        fitting = {name: same_version(loaded, values.get(name)) for name in (f"wheels.{wheel}" for wheel in wheels)}
        if True not in fitting.values():
            versions |= {name: str(loaded) for name, fits in fitting.items() if fits is False}
    return versions


class Switch(NamedTuple):
    """A switch, and what it does where a rule on stated leaves holds."""

    path: str
    holds: Callable[[Stated], bool]
    value: Value = OFF


def _off_at_one(switch: str, degree: str) -> Switch:
    def holds(stated: Stated) -> bool:
        typed = stated.get(switch)
        # True equals 1, and means the opposite of one virtual stage.
        return stated.get(degree) == 1 or typed is False or typed == OFF or (typed == 1 and typed is not True)

    return Switch(switch, holds)


def _without(switch: str, count: str, value: Value = OFF) -> Switch:
    return Switch(switch, lambda stated: stated.get(count) == 0, value)


def _is_wide(stated: Stated) -> bool:
    # A type that the registry does not know may be an FP8 by another name: then the recipe counts as typed.
    return dtype_of(stated.get("numerics.compute_dtype")) in _WIDE


# What a switch does where another leaf decides it.
SWITCHES: tuple[Switch, ...] = (
    *(_off_at_one(switch, degree) for switch, degree in FOLLOWS.items()),
    _without("parallelism.expert", "model.experts", 1),
    _without("parallelism.expert_tensor", "model.experts", 1),
    _without("model.top_k", "model.experts", 0),
    _without("model.capacity_factor", "model.experts", 0),
    _without("model.expert_ffn", "model.experts", 0),
    _without("model.shared_expert_ffn", "model.experts", 0),
    _without("path.dispatch", "model.experts"),
    *(_without(leaf, "model.experts") for leaf in OF_ROUTER),
    _without("numerics.mtp_loss_weight", "model.mtp_depth"),
    _without("model.mtp_wiring", "model.mtp_depth"),
    _without("path.mtp_cross_entropy", "model.mtp_depth"),
    Switch("numerics.fp8_recipe", _is_wide),
    Switch("numerics.fp8_scope", _is_wide),
    Switch("compile.regions", lambda stated: stated.get("compile.posture") not in (None, "regional")),
    # Of kind `partial`, some of the model's own weights are trained.
    *(
        Switch(f"numerics.adapters.{leaf}", lambda stated: stated.get("numerics.adapters.kind") in (OFF, "partial"))
        for leaf in ("rank", "injected", "gradient_sync")
    ),
)


def brought(path: str, left: Mapping[str, Any], right: Mapping[str, Any], va: Any, vb: Any) -> bool:
    """Whether a switch is off on one side only because the leaf that brings it is, and that leaf changed."""
    if va == vb or OFF not in (va, vb):
        return False
    if path in OF_STATE and left.get("model.pattern") != right.get("model.pattern"):
        return True
    if path not in BROUGHT_BY:
        return False
    leaf, off_at = BROUGHT_BY[path]
    a, b = left.get(leaf), right.get(leaf)
    return a is not None and b is not None and min(a, b) <= off_at < max(a, b)


def with_wheel(path: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether a library differs because the wheel that it was loaded from does; equal wheels explain nothing."""
    names = loaded_from(path, left), loaded_from(path, right)
    return all(name is not None and left.get(name) != right.get(name) for name in names)
