"""The shapes of `fit_compiler`: plans over pattern, width, batch, sequence, sharding and recompute, for TPU v6e.

They were chosen before any was compiled, in sizes that a training job of 1 to 8 chips has, below and above what fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DENSE = {
    "pattern": "*-", "alphabet": "nemo", "depth": 32, "hidden": 2048, "heads": 16, "kv_heads": 8, "head_dim": 128,
    "ffn": 8192, "ffn_projections": 3, "vocabulary": 32768, "mtp_depth": 0, "tied_embeddings": False,
}  # fmt: skip
HYBRID = {name: value for name, value in DENSE.items() if name != "ffn"} | {
    "pattern": "AEMR", "alphabet": "nam", "depth": 16, "experts": 16, "top_k": 2, "expert_ffn": 2048,
    "shared_expert_ffn": 0, "capacity_factor": 1.25, "ssm_state": 128, "ssm_heads": 32, "ssm_groups": 8,
    "ssm_variant": "mamba2, and an RNN with matrix states for R",
}  # fmt: skip
# The blocks of NAM56R, by the widths of its code.
INDEXER = {"index_n_heads": 32, "index_head_dim": 64, "index_topk": 256, "dsa_indexer_loss_coeff": 0.001}
LATENT = {"q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 64}
WIDE_LATENT = {"q_lora_rank": 512, "kv_lora_rank": 256, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
               "v_head_dim": 128}  # fmt: skip
NAM = HYBRID | {
    "pattern": "AEMEAEMEAEMR", "depth": 12, "experts": 16, "top_k": 4, "expert_ffn": 896, "shared_expert_ffn": 896,
    "ffn_projections": 2, "ssm_heads": 64, "ssm_variant": "Mamba-3 MIMO R4 + M2RNN", "attention_kinds": "2 DSA + 1 MLA",
    "sparse_attention": "pallas",
}  # fmt: skip
MUON = {"optimizer": "muon", "optimizer_other": "adamw"}
WIDE = {"hidden": 4096, "heads": 32, "ffn": 14336}


def plan(
    name: str,
    model: dict[str, Any],
    layout: str,
    micro: int,
    length: int,
    recompute: str,
    accumulation: int = 1,
    attention: str = "pallas_splash",
    loss: str = "xla",
    features: Any = None,
    **numerics: Any,
) -> dict[str, Any]:
    """A plan of the lane tpu-maxtext. ``layout`` is such as ``data2 tensor2 sp``; data is sharded as FSDP does."""
    words = layout.split()
    degrees = {key: int(word[len(key):]) for key in ("data", "tensor", "expert") for word in words
               if word.startswith(key)}  # fmt: skip
    data, tensor, expert = (degrees.get(key, 1) for key in ("data", "tensor", "expert"))
    ranks = data * expert
    return {
        "schema_version": "1.0",
        "run": {"lane": "tpu-maxtext", "kind": "training", "label": name},
        "hardware": {"accelerator": "TPU v6e", "chips": ranks * tensor},
        "model": model,
        "parallelism": {
            "tensor": tensor, "sequence": "sp" in words, "expert": expert, "context": 1, "pipeline": 1, "data": data,
            "shard": data, "strategy": "fsdp" if data > 1 else "none",
        },
        "batch": {
            "micro_batch": micro, "global_batch": micro * ranks * accumulation, "sequence_length": length,
            "accumulation": accumulation,
        },
        "numerics": {
            "compute_dtype": "bf16", "parameter_dtype": "fp32", "optimizer": "adamw", "optimizer_state_dtype": "fp32",
            "recompute": recompute, **numerics,
        },
        "path": {"intended": {"framework": "maxtext", "runtime": "pjrt-tpu", "attention": attention,
                              "cross_entropy": loss}},
    } | ({"features": features} if features else {})  # fmt: skip


def shapes() -> Iterator[dict[str, Any]]:
    """Every plan, names unique. Cheap compiles and dear ones alternate."""
    d, w = DENSE, DENSE | WIDE
    ae = HYBRID | {"pattern": "AE"}
    am = HYBRID | {"pattern": "AM"}
    yield plan("dense-none", d, "data4", 2, 4096, "none")
    yield plan("moe-none", ae, "data4", 4, 4096, "none")
    yield plan("dense-full", d, "data4", 8, 4096, "full")
    yield plan("hybrid-full", HYBRID, "data4", 8, 4096, "full")
    yield plan("dense-selective", d, "data4", 4, 4096, "selective: activations")
    yield plan("mamba-none", am, "data4", 2, 4096, "none")
    yield plan("dense-too-long", d, "data4", 2, 16384, "none")
    yield plan("dense-long-full", d, "data4", 2, 16384, "full")
    yield plan("moe-expert4", ae, "expert4", 4, 4096, "none")
    yield plan("dense-tensor4", w, "tensor4", 2, 4096, "none")
    yield plan("dense-tensor4-sp", w, "tensor4 sp", 2, 4096, "none")
    yield plan("recurrent-full", HYBRID | {"pattern": "AR"}, "data4", 4, 4096, "full")
    yield plan("dense-wide-full", w, "data4", 2, 4096, "full")
    yield plan("dense-wide-deep", w | {"depth": 64}, "data4", 1, 4096, "full")
    yield plan("moe-tensor2-expert2", ae, "expert2 tensor2 sp", 4, 4096, "selective: activations")
    yield plan("dense-2x2-sp", w, "data2 tensor2 sp", 2, 4096, "selective: activations")
    yield plan("dense-accumulate", d, "data4", 1, 4096, "none", accumulation=4)
    yield plan("dense-muon", d, "data4", 2, 4096, "full", **MUON)
    yield plan("hybrid-none", HYBRID, "data4", 2, 4096, "none")
    yield plan("dense-16-bit", d, "data4", 4, 4096, "full", parameter_dtype="bf16")
    yield plan("dense-16-bit-states", d, "data4", 4, 4096, "full", optimizer_state_dtype="bf16")
    yield plan("dense-vocabulary", d | {"vocabulary": 131072}, "data4", 4, 4096, "full")
    yield plan("dense-vocabulary-chunked", d | {"vocabulary": 131072}, "data4", 4, 4096, "full", loss="chunked")
    yield plan("dense-one-chip", d | {"depth": 16, "hidden": 1024, "heads": 8, "ffn": 4096}, "", 8, 2048, "none")
    yield plan("dense-scores", d | {"depth": 8}, "data4", 2, 2048, "none", attention="dot_product")
    yield plan("dense-scores-too-long", d, "data4", 4, 4096, "none", attention="dot_product")
    yield plan("dense-8-chips", w, "data8", 2, 4096, "full")
    yield plan("dense-8-chips-4x2", w, "data4 tensor2 sp", 4, 4096, "full")
    yield plan("moe-full-large", ae | {"experts": 32, "expert_ffn": 4096}, "data4", 4, 4096, "full")
    yield plan("moe-too-many", ae | {"experts": 64, "expert_ffn": 4096}, "data2 expert2", 4, 4096, "full")
    yield plan("moe-expert2-data2", ae, "data2 expert2", 8, 4096, "full")
    yield plan("moe-shared", ae | {"shared_expert_ffn": 2048}, "data4", 4, 4096, "full")
    yield plan("dense-too-wide-batch", d, "data4", 32, 4096, "none")
    yield plan("dense-batch-16-none", d, "data4", 16, 2048, "none")
    yield plan("dense-batch-16-full", d, "data4", 16, 4096, "full")
    yield plan("dense-mtp", d | {"mtp_depth": 1}, "data4", 4, 4096, "full")
    yield plan("dense-mtp-none", d | {"mtp_depth": 2, "depth": 16}, "data4", 2, 4096, "none")
    yield plan("dense-tied", d | {"tied_embeddings": True}, "tensor2 data2", 4, 4096, "full")
    yield plan("dense-plain-mlp", d | {"ffn_projections": 2}, "data4", 4, 4096, "full")
    yield plan("dense-one-chip-too-large", w, "", 1, 2048, "full")
    yield plan("dense-short", d | {"depth": 16}, "data4", 32, 512, "none")
    yield plan("mamba-tensor2", am, "data2 tensor2 sp", 4, 4096, "full")
    yield plan("hybrid-too-large", HYBRID | {"experts": 64, "expert_ffn": 4096}, "data4", 4, 4096, "none")
    yield plan("dense-muon-wide", w | {"depth": 24}, "data4", 1, 4096, "full", **MUON)
    nam = {"features": INDEXER | LATENT}
    deep = NAM | {"depth": 24, "attention_kinds": "4 DSA + 2 MLA"}
    sparse = NAM | {"pattern": "AE", "attention_kinds": "6 DSA on MLA"}
    full = NAM | {"pattern": "AE", "attention_kinds": "6 DSA"}
    yield plan("nam-none", NAM, "data4", 1, 4096, "none", **nam)
    yield plan("nam-full", deep, "data4", 2, 4096, "full", **nam)
    yield plan("nam-selective", deep, "data4", 1, 4096, "selective: moe layernorm", **nam)
    yield plan("nam-expert4", NAM, "expert4", 2, 4096, "none", **nam)
    yield plan("nam-too-large", deep | {"depth": 52}, "data4", 4, 4096, "none", **nam)
    yield plan("nam-wide", NAM | {"hidden": 3584, "heads": 28, "ssm_heads": 112}, "data4", 1, 4096, "none", **nam)
    yield plan("sparse-none", sparse, "data4", 2, 4096, "none", features=INDEXER | WIDE_LATENT)
    yield plan("sparse-full", sparse, "data4", 4, 4096, "full", features=INDEXER | WIDE_LATENT)
    yield plan("sparse-long", sparse, "data4", 1, 16384, "full", **nam)
    yield plan("sparse-heads", full, "data4", 2, 4096, "none", features=INDEXER)
    yield plan("latent-none", NAM | {"pattern": "AE", "attention_kinds": "6 MLA"}, "data4", 2, 4096, "none",
               features=WIDE_LATENT)  # fmt: skip
    yield plan("mimo-none", NAM | {"pattern": "M"}, "data4", 2, 4096, "none")
    yield plan("mimo-full", NAM | {"pattern": "M", "depth": 24}, "data4", 4, 4096, "full")
    yield plan("mimo-tensor2", NAM | {"pattern": "ME"}, "data2 tensor2 sp", 2, 4096, "none")
    yield plan("matrix-rnn-none", NAM | {"pattern": "RE"}, "data4", 4, 4096, "none")
    yield plan("matrix-rnn-full", NAM | {"pattern": "RE"}, "data4", 8, 4096, "full")
