"""What a decoder's launch shows of itself: the path that was taken, its compiles, and the file that tells so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
TYPES = {"float": "fp32", "f32": "fp32", "c10::BFloat16": "bf16", "bf16": "bf16"}
ATTENTION = {
    "aten::_scaled_dot_product_attention_math": "sdpa_math",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "sdpa_flash",
}


def recompute_applied(raw: Json) -> str | None:
    """What the witness shows: a forward that ran twice, or matrix products beyond those of one forward and backward."""
    seen, depth = raw.get("evidence"), raw["configuration"]["depth"]
    if seen is None:
        return None
    if raw["framework"] == "torch":
        forwards = sum(seen["operators"].get(name, {"count": 0})["count"] for name in ATTENTION)
        return "none" if forwards == seen["steps"] * depth else "full"
    if seen["while_loops"]:
        return None
    # Six products a block and one in the head; a backward has two for each. Recompute repeats some of them.
    once = 3 * (6 * depth + 1)
    return "none" if sum(seen["dots"].values()) == once else "full"


def compiled(raw: Json) -> Json:
    """Posture, and what the framework's own counters said when the window closed."""
    asked, counted = raw["configuration"], raw["compile"]
    jax = raw["framework"] == "jax"
    posture = "jit" if jax else asked["posture"]
    found: Json = {
        "posture": posture,
        "backend": "xla" if jax else {"eager": "none", "whole_graph": "inductor"}[posture],
        "warmup_policy": f"{asked['warmup']} steps",
        "cuda_graph_implementation": "none",
        "cache_state": "off",
    }
    start, end = counted.get("at_window_start"), counted.get("at_window_end")
    if start is None or end is None:
        return found
    programs = "compiles" if jax else "unique_graphs"
    found["compile_seconds"] = end["seconds"]
    found["compiles"] = end[programs]
    found["compiles_after_warmup"] = end[programs] - start[programs]
    if not jax:
        return {**found, "graph_breaks": end["graph_breaks"]}
    found["cache_hits"], found["cache_misses"] = end["cache_hits"], end["cache_misses"]
    seen = raw["evidence"]
    return found | {name: seen[name] for name in ("program_digest", "argument_bytes", "output_bytes", "temp_bytes")}


def path(raw: Json) -> Json:
    """Intended is what was asked for; witnessed is read from the profile or the compiled program alone."""
    asked, jax = raw["configuration"], raw["framework"] == "jax"
    intended = {
        "framework": raw["framework"],
        "runtime": "cpu",
        "attention": "xla" if jax else f"sdpa_{asked['attention']}",
        "gemm": f"{'xla' if jax else 'aten'}_{asked['dtype']}",
        "overlap": "none",
    }
    if "evidence" not in raw:
        return {"intended": intended}
    return {"intended": intended, "witnessed": _jax_seen(raw) if jax else _torch_seen(raw)}


def _torch_seen(raw: Json) -> Json:
    seen = raw["evidence"]
    operators = seen["operators"]
    kinds = _types(kind for name in ("aten::mm", "aten::addmm") for kind in operators.get(name, {"types": []})["types"])
    return {
        "framework": "torch",
        "frameworks": ["torch"],
        "runtime": "+".join(seen["devices"]),
        "attention": "+".join(name for operator, name in ATTENTION.items() if operator in operators),
        "gemm": f"aten_{kinds}",
        "posture": "whole_graph" if seen["dynamo_graphs"] else "eager",
        "compute_dtype": kinds,
    }


def _jax_seen(raw: Json) -> Json:
    seen = raw["evidence"]
    kinds = _types(seen["dots"])
    # Without a custom call all of the program, attention too, is the compiler's own code.
    found = {
        "framework": "jax",
        "frameworks": ["jax"],
        "runtime": seen["platform"],
        "posture": "jit",
        "compute_dtype": kinds,
    }
    return found if seen["custom_calls"] else {**found, "attention": "xla", "gemm": f"xla_{kinds}"}


def _types(kinds: Iterable[str]) -> str:
    return "+".join(sorted({TYPES.get(kind, kind) for kind in kinds}))


def counters(raw: Json) -> Iterable[Json]:
    """How often each attention backend ran in the profiled steps, beside how often the intended one must."""
    seen = raw["evidence"]
    for operator, name in ATTENTION.items():
        asked = name == f"sdpa_{raw['configuration']['attention']}"
        count = seen["operators"].get(operator, {"count": 0})["count"]
        expected = seen["steps"] * seen["layers"] if asked else 0
        yield {
            "name": operator,
            "count": count,
            "expected": expected,
            "steps": seen["steps"],
            "layers": seen["layers"],
        }


def evidence(raw: Json) -> Json:
    """The file that the witnessed path was read from, by a place beside the receipt."""
    seen = raw["evidence"]
    jax = raw["framework"] == "jax"
    observed = (
        {"dots": sum(seen["dots"].values()), "custom_calls": len(seen["custom_calls"])}
        if jax
        else {name: row["count"] for name, row in seen["operators"].items() if "scaled_dot" in name}
    )
    return {
        "kind": "xla-program" if jax else "torch-profile",
        "producer": seen["producer"],
        "version": seen["version"],
        "uri": f"evidence/{seen['name']}",
        "sha256": seen["sha256"],
        "level": "backend",
        "observed": observed,
    }
