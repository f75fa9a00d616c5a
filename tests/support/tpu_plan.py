"""A plan of a model on four TPU chips, and files of plans like it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rule_cases

PLAN: dict[str, Any] = {
    "schema_version": "1.0",
    "run": {"lane": "tpu-maxtext", "kind": "training", "label": "a plan"},
    "hardware": {"accelerator": "TPU v6e", "chips": 4},
    "model": {
        "pattern": "AE", "alphabet": "nam", "depth": 8, "hidden": 2048, "heads": 16, "kv_heads": 8, "head_dim": 128,
        "vocabulary": 32768, "experts": 8, "top_k": 2, "expert_ffn": 1024, "ffn_projections": 3,
        "capacity_factor": 1.25, "shared_expert_ffn": 0, "mtp_depth": 0, "tied_embeddings": False,
    },
    "parallelism": {"tensor": 1, "expert": 1, "context": 1, "pipeline": 1, "data": 4, "shard": 4, "strategy": "fsdp"},
    "batch": {"micro_batch": 2, "global_batch": 8, "sequence_length": 2048, "accumulation": 1},
    "numerics": {"compute_dtype": "bf16", "parameter_dtype": "fp32", "optimizer": "adamw",
                 "optimizer_state_dtype": "fp32", "recompute": "none"},
    "path": {"intended": {"framework": "maxtext", "attention": "pallas_splash"}},
}  # fmt: skip


def plan(folder: Path, name: str = "plan", **leaves: Any) -> str:
    """A plan file; ``__`` stands for a dot, None takes a leaf out."""
    tree = json.loads(json.dumps(PLAN))
    for leaf, value in leaves.items():
        rule_cases.put(tree, leaf.replace("__", "."), value)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return str(path)
