"""Configuration as experiment trackers keep it: names of arguments, flat or nested, and whose they are.

Megatron-LM's arguments, torchtitan's job configuration, transformers' training arguments (with the model's own beside
them), and MaxText's parameters. A name that several frameworks use means something only beside one that is a
framework's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from receipts.ingest.evidence.frameworks.maxtext.configuration import Parameters
from receipts.ingest.evidence.frameworks.maxtext.configuration import state as state_maxtext
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import Reading

MAX_NAMES: Final = 5000
_NAMES: Final = 200


@dataclass(frozen=True, slots=True)
class Names:
    """One framework's names of leaves. ``signs`` are names that are its own."""

    signs: tuple[str, ...]
    counts: Mapping[str, str]
    amounts: Mapping[str, str]
    words: Mapping[str, str]
    switches: Mapping[str, str]


_MEGATRON: Final = Names(
    ("tensor_model_parallel_size", "pipeline_model_parallel_size"),
    {
        "world_size": "hardware.chips",
        "tensor_model_parallel_size": "parallelism.tensor",
        "pipeline_model_parallel_size": "parallelism.pipeline",
        "virtual_pipeline_model_parallel_size": "parallelism.virtual_pipeline",
        "context_parallel_size": "parallelism.context",
        "expert_model_parallel_size": "parallelism.expert",
        "expert_tensor_parallel_size": "parallelism.expert_tensor",
        "data_parallel_size": "parallelism.data",
        "micro_batch_size": "batch.micro_batch",
        "global_batch_size": "batch.global_batch",
        "seq_length": "batch.sequence_length",
        "num_layers": "model.depth",
        "hidden_size": "model.hidden",
        "ffn_hidden_size": "model.ffn",
        "num_attention_heads": "model.heads",
        "num_query_groups": "model.kv_heads",
        "kv_channels": "model.head_dim",
        "padded_vocab_size": "model.vocabulary",
        "num_experts": "model.experts",
        "moe_router_topk": "model.top_k",
        "moe_ffn_hidden_size": "model.expert_ffn",
        "mtp_num_layers": "model.mtp_depth",
        "seed": "numerics.seed",
    },
    {"lr": "numerics.learning_rate"},
    {
        "optimizer": "numerics.optimizer",
        "moe_token_dispatcher_type": "path.intended.dispatch",
        "recompute_granularity": "numerics.recompute",
    },
    {"sequence_parallel": "parallelism.sequence"},
)
_TORCHTITAN: Final = Names(
    ("parallelism.tensor_parallel_degree", "training.tensor_parallel_degree", "parallelism.data_parallel_shard_degree"),
    {
        "training.seq_len": "batch.sequence_length",
        "training.local_batch_size": "batch.micro_batch",
        "training.batch_size": "batch.micro_batch",
        "training.global_batch_size": "batch.global_batch",
        "training.seed": "numerics.seed",
        "debug.seed": "numerics.seed",
        "parallelism.tensor_parallel_degree": "parallelism.tensor",
        "training.tensor_parallel_degree": "parallelism.tensor",
        "parallelism.pipeline_parallel_degree": "parallelism.pipeline",
        "parallelism.context_parallel_degree": "parallelism.context",
        "parallelism.expert_parallel_degree": "parallelism.expert",
        "parallelism.data_parallel_shard_degree": "parallelism.shard",
        "parallelism.data_parallel_replicate_degree": "parallelism.replicate",
    },
    {"optimizer.lr": "numerics.learning_rate"},
    {
        "model.name": "model.name",
        "model.flavor": "model.spec",
        "optimizer.name": "numerics.optimizer",
        "training.dataset": "data.dataset",
        "activation_checkpoint.mode": "numerics.recompute",
        "parallelism.pipeline_parallel_schedule": "parallelism.schedule",
    },
    {},
)
_TRANSFORMERS: Final = Names(
    ("per_device_train_batch_size",),
    {
        "per_device_train_batch_size": "batch.micro_batch",
        "gradient_accumulation_steps": "batch.accumulation",
        "num_hidden_layers": "model.depth",
        "hidden_size": "model.hidden",
        "num_attention_heads": "model.heads",
        "num_key_value_heads": "model.kv_heads",
        "head_dim": "model.head_dim",
        "intermediate_size": "model.ffn",
        "vocab_size": "model.vocabulary",
        "seed": "numerics.seed",
    },
    {"learning_rate": "numerics.learning_rate"},
    {"_name_or_path": "model.name", "optim": "numerics.optimizer"},
    {"tie_word_embeddings": "model.tied_embeddings"},
)


def state(reading: Reading, config: Mapping[str, Any], record: str = "") -> bool:
    """State the leaves that a configuration gives; False where its names are no framework's that is known."""
    flat = flatten(config)
    if "base_emb_dim" in flat and "per_device_batch_size" in flat:
        parameters = Parameters()
        for name, value in flat.items():
            parameters.add(name, str(value), 0)
        state_maxtext(reading, parameters, parameters.count("num_target_devices"), ())
        return True
    names = next(
        (item for item in (_MEGATRON, _TORCHTITAN, _TRANSFORMERS) if any(sign in flat for sign in item.signs)), None
    )
    if names is None:
        return False
    for name, path in names.counts.items():
        value = _count(flat.get(name))
        if value is not None:
            reading.state(path, value, f"{name}: {flat[name]}", record=record)
    for name, path in names.amounts.items():
        amount = _amount(flat.get(name))
        if amount is not None:
            reading.state(path, amount, f"{name}: {flat[name]}", record=record)
    for name, path in names.words.items():
        word = flat.get(name)
        if isinstance(word, str) and word.strip() and word.strip().lower() not in ("none", "null"):
            reading.state(path, word.strip()[:_NAMES], f"{name}: {word}", record=record)
    for name, path in names.switches.items():
        switch = _switch(flat.get(name))
        if switch is not None:
            reading.state(path, switch, f"{name}: {flat[name]}", record=record)
    _compute_dtype(reading, flat, record)
    return True


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nested names joined by dots, the first `MAX_NAMES` of them; lists are left out."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", config)]
    visited = 0
    while waiting and visited < MAX_NAMES:
        prefix, value = waiting.pop()
        visited += 1
        if isinstance(value, Mapping):
            room = MAX_NAMES - len(waiting)
            items = list(value.items())[: max(room, 0)]
            waiting.extend(
                (f"{prefix}.{key}" if prefix else str(key), item) for key, item in items if len(prefix) < _NAMES
            )
        elif isinstance(value, str | int | float | bool):
            found[prefix[:_NAMES]] = value
    return found


def _compute_dtype(reading: Reading, flat: Mapping[str, Any], record: str) -> None:
    for name, dtype in (("fp8", "fp8"), ("bf16", "bf16"), ("fp16", "fp16")):
        value = flat.get(name)
        if _switch(value) is True or (name == "fp8" and isinstance(value, str) and value.lower() in ("hybrid", "e4m3")):
            reading.state("numerics.compute_dtype", dtype, f"{name}: {value}", record=record)
            return


def _count(value: Any) -> int | None:
    found = number(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return int(found) if 1 <= found < 2**53 and found == int(found) else None


def _amount(value: Any) -> float | None:
    found = number(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e300:
        return None
    return float(found)


def _switch(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None
