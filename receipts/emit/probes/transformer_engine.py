"""Transformer Engine: its version, the modules that exist, their FP8 recipe, and the attention backend that it chose.

Sources: `transformer_engine/pytorch` 1.11 to 2.20: `_attention_backends` holds the last selection, each module's
`fp8_meta["recipe"]` what it quantises by. NVTE_* flags are read by the probe of the environment.
"""

from __future__ import annotations

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "transformer_engine"
_ATTENTION = (
    "transformer_engine.pytorch.attention.dot_product_attention.dot_product_attention",
    "transformer_engine.pytorch.attention",
)
_BASES = ("transformer_engine.pytorch.module.base", "TransformerEngineBaseModule")
_DOT = (
    ("transformer_engine.pytorch.attention.dot_product_attention.dot_product_attention", "DotProductAttention"),
    ("transformer_engine.pytorch.attention", "DotProductAttention"),
)
# Recipes by the receipt's names.
RECIPES = {
    "DelayedScaling": "delayed",
    "Float8CurrentScaling": "tensorwise",
    "MXFP8BlockScaling": "mxfp8",
    "Float8BlockScaling": "blockwise",
    "NVFP4BlockScaling": "nvfp4",
    "CustomRecipe": "custom",
}


def at_end(stated: ProbeOutput) -> None:
    """State the attention backend of the last selection, and note which modules there are and how they quantise."""
    if imported.module("transformer_engine") is not None:
        imported.read_each(stated, _attention, _modules)


def _version() -> str | None:
    version = imported.part("transformer_engine", "__version__")
    return None if version is None else str(version)


def _attention(stated: ProbeOutput) -> None:
    tables = (imported.part(name, "_attention_backends") for name in _ATTENTION)
    table: dict[str, Any] = next((table for table in tables if isinstance(table, dict)), {})
    if not table.get("attention_params"):
        return
    name, detail = selected(table)
    if name is None:
        return
    stated.put("path.witnessed.attention", name)
    stated.evidence(
        "te-selection",
        level="backend",
        producer="transformer_engine",
        version=_version(),
        observed={"selected": detail, "selection": "the last one made in this process"},
    )


def selected(table: dict[str, Any]) -> tuple[str | None, str]:
    """The receipt's name of what a table of selection holds, and Transformer Engine's own words."""
    if table.get("use_fused_attention"):
        # A member of an enumeration, of Python's or of the extension's, by its own name.
        member = table.get("fused_attention_backend")
        backend = str(getattr(member, "name", member)).rpartition(".")[2]
        eight = "fp8" in backend.lower()
        return ("te_fused_fp8" if eight else "te_fused"), f"FusedAttention ({backend})"
    if table.get("use_flash_attention"):
        version = str(table.get("flash_attention_backend") or "")
        return "te_flash", f"FlashAttention ({version})" if version else "FlashAttention"
    if table.get("use_unfused_attention"):
        return "te_unfused", "UnfusedDotProductAttention"
    return None, ""


def _modules(stated: ProbeOutput) -> None:
    bases = tuple(
        base for base in (imported.part(*_BASES), *(imported.part(*item) for item in _DOT)) if base is not None
    )
    counts: dict[str, int] = {}
    recipes: dict[str, int] = {}
    eight = 0
    for module in _instances(bases):
        name = type(module).__name__
        counts[name] = counts.get(name, 0) + 1
        own = vars(module)
        if own.get("fp8_initialized"):
            eight += 1
            recipe = type((own.get("fp8_meta") or {}).get("recipe")).__name__
            recipes[recipe] = recipes.get(recipe, 0) + 1
    if not counts:
        return
    known = [RECIPES[name] for name in recipes if name in RECIPES]
    if len(recipes) == 1 and known:
        stated.put("numerics.fp8_recipe", known[0])
    elif recipes:
        stated.note(f"modules quantise by several recipes: {', '.join(sorted(recipes))}")
    observed: dict[str, bool | int | float | str] = {f"modules.{name}": counts[name] for name in sorted(counts)}
    observed["modules_with_fp8"] = eight
    stated.evidence("te-modules", level="intent", producer="transformer_engine", version=_version(), observed=observed)


def _instances(bases: tuple[Any, ...]) -> list[Any]:
    """Objects of some classes, by their types alone: to ask an object may wake what only stands in for one."""
    import gc

    if not bases:
        return []
    wanted: dict[type, bool] = {}
    instances = []
    for item in gc.get_objects():
        kind = type(item)
        hit = wanted.get(kind)
        if hit is None:
            hit = wanted[kind] = any(base in kind.__mro__ for base in bases)
        if hit:
            instances.append(item)
    return instances
