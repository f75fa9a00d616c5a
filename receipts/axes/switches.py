"""Switches: settings that do nothing, or follow, because of what another setting is.

Each rule reads stated leaves alone. What a rule does not decide keeps the value that was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from receipts.receipt.dtypes import dtype_of

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


def _off_at_one(switch: str, degree: str) -> Callable[[Stated], tuple[str, Value] | None]:
    def rule(stated: Stated) -> tuple[str, Value] | None:
        typed = stated.get(switch)
        # True equals 1, and means the opposite of one virtual stage.
        off = typed is False or typed == OFF or (typed == 1 and typed is not True)
        return (switch, OFF) if stated.get(degree) == 1 or off else None

    return rule


def _without(switch: str, count: str, value: Value = OFF) -> Callable[[Stated], tuple[str, Value] | None]:
    def rule(stated: Stated) -> tuple[str, Value] | None:
        return (switch, value) if stated.get(count) == 0 else None

    return rule


def _fp8(switch: str) -> Callable[[Stated], tuple[str, Value] | None]:
    def rule(stated: Stated) -> tuple[str, Value] | None:
        # A type that the registry does not know may be an FP8 by another name: then the recipe counts as typed.
        return (switch, OFF) if dtype_of(stated.get("numerics.compute_dtype")) in _WIDE else None

    return rule


def _without_adapters(switch: str) -> Callable[[Stated], tuple[str, Value] | None]:
    def rule(stated: Stated) -> tuple[str, Value] | None:
        return (switch, OFF) if stated.get("numerics.adapters.kind") == OFF else None

    return rule


def _eager_regions(stated: Stated) -> tuple[str, Value] | None:
    whole = stated.get("compile.posture") not in (None, "regional")
    return ("compile.regions", OFF) if whole else None


# What a switch does where another leaf decides it. Each rule names the switch and reads stated leaves alone.
SWITCHES: tuple[Callable[[Stated], tuple[str, Value] | None], ...] = (
    *(_off_at_one(switch, degree) for switch, degree in FOLLOWS.items()),
    _without("parallelism.expert", "model.experts", 1),
    _without("parallelism.expert_tensor", "model.experts", 1),
    _without("model.top_k", "model.experts", 0),
    _without("model.capacity_factor", "model.experts", 0),
    _without("model.expert_ffn", "model.experts", 0),
    _without("model.shared_expert_ffn", "model.experts", 0),
    _without("path.dispatch", "model.experts"),
    _without("model.mtp_wiring", "model.mtp_depth"),
    _without("path.mtp_cross_entropy", "model.mtp_depth"),
    _fp8("numerics.fp8_recipe"),
    _fp8("numerics.fp8_scope"),
    _eager_regions,
    *(_without_adapters(f"numerics.adapters.{leaf}") for leaf in ("rank", "injected", "gradient_sync")),
)
