"""What a lab's published records call metrics and axes, and what the product calls them."""

from __future__ import annotations

METRICS = {
    "tok_per_s": "tokens_per_second",
    "tok_per_s_per_gpu": "tokens_per_second_per_chip",
    "tflops_per_gpu": "tflops_per_second_per_chip",
    "mfu_pct": "mfu",
    "iter_ms": "step_seconds",
    "kernel_us": "step_seconds",
    "kernel_ms": "step_seconds",
    "peak_mem": "peak_bytes",
    "compile_s": "compile_seconds",
    "loss_last": "loss_last",
    "val_loss": "validation_loss",
    "val_bpb": "bits_per_byte",
    "grad_norm": "gradient_norm",
    "outcome": "outcome",
    "failure": "outcome",
}
# Names that the records give to axes, and the product's.
ALIASES = {
    "gbs": "batch.global_batch",
    "mbs": "batch.micro_batch",
    "seq_len": "batch.sequence_length",
    "grad accumulation": "batch.accumulation",
    "precision": "precision",
    "cuda graphs": "cuda_graphs",
    "machine": "run.host",
    "accelerator": "hardware.accelerator",
    "device count": "topology",
    "commit": "code",
    "optimizer": "optimizer",
    "recompute": "recompute",
    "lr": "numerics.learning_rate",
    "numerics.schedule": "numerics.learning_rate",
    "run.site": "run.host",
    "parallelism.tp": "parallelism.tensor",
    "parallelism.pp": "parallelism.pipeline",
    "parallelism.vpp": "parallelism.virtual_pipeline",
    "parallelism.ep": "parallelism.expert",
    "parallelism.etp": "parallelism.expert_tensor",
    "parallelism.cp": "parallelism.context",
    "parallelism.sp": "parallelism.sequence",
    "parallelism.dp": "parallelism.data",
    "model.mtp_depths": "model.mtp_depth",
    "model.embeddings": "model.tied_embeddings",
    "model.params_active": "model.parameters_active",
    "model.params_total": "model.parameters_total",
    "model.dsa_layers": "model.attention_kinds",
    "model.mla_layers": "model.attention_kinds",
    "model.dsa_topk": "features.dsa_topk",
    "model.depth": "pattern",
    "model.pattern": "pattern",
    "model.hidden": "dimensions",
    "model.heads": "dimensions",
    "model.kv_heads": "dimensions",
    "model.ffn": "dimensions",
    "model.moe_ffn": "dimensions",
    "model.vocab": "dimensions",
    "model.experts": "routing",
    "model.topk": "routing",
    "backends.attention": "path.attention",
    "backends.moe_dispatcher": "path.dispatch",
    "backends.sparse_attention": "model.sparse_attention",
    "backends.main_ce": "path.cross_entropy",
    "backends.mtp_ce": "path.mtp_cross_entropy",
    "backends.indexer_loss": "features.indexer_loss",
    "backends.kernels": "features.kernels",
    "compile_posture.regional_compile": "posture",
    "compile_posture.torch_compile": "posture",
    "compile_posture.tilelang_jit": "features.tilelang_jit",
    "wheels.cuda": "platform",
    "wheels.cudnn": "platform",
    "wheels.python": "platform",
}
PREFIXES = {"backends.env.": "flags.", "backends.patches": "patches", "wheels.": "wheels"}
OWN = tuple(f"features.{section}." for section in ("model", "parallelism", "batch", "compile_posture", "backends"))


def renamed(name: str) -> str:
    """The product's name of an axis."""
    # A setting that only the records have a word for stands under it among the features.
    name = name.removeprefix("features.") if name.startswith(OWN) else name
    for prefix, ours in PREFIXES.items():
        if name not in ALIASES and name.startswith(prefix):
            return f"{ours}{name.removeprefix(prefix)}" if ours.endswith(".") else ours
    return ALIASES.get(name, name)
