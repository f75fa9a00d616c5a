"""What an estimate has no surface for, written down as an assumption, and how a server fills memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from receipts.estimate.framework_memory import FrameworkMemory
from receipts.estimate.inputs import OFF, EstimateInputs
from receipts.metrics.flops import mixers
from receipts.metrics.flops.attention import WIDTHS
from receipts.receipt.dtypes import DTYPES, dtype_of

_SHOWN = 4  # names of features; of more it says how many
_CACHE_TYPE, _CACHE_BLOCK = "features.kv_cache_dtype", "features.kv_block_size"
_PASS = "features.max_num_batched_tokens"
LATENT = ("features.kv_lora_rank", "features.qk_rope_head_dim")  # as the configurations of Hugging Face name them
_COUNTED = ("features.mamba_head_dim", "features.mtp", *WIDTHS, *mixers.WIDTHS)
_KNOWN = (_CACHE_TYPE, _CACHE_BLOCK, _PASS, *LATENT, "features.fp8_param_gather", *_COUNTED)
_PASS_TOKENS = 8192  # of a server where nothing is stated: vLLM's on large GPUs, TensorRT-LLM's max_num_tokens


class Served(TypedDict, total=False):
    """Bytes of a cached element, 0 for that of the matmuls; tokens of a cache block, 1 for a contiguous cache.

    Elements of a latent cache, 0 for that of heads; and the most tokens that one pass computes.
    """

    kv_bytes: float
    kv_block: int
    kv_latent: int
    pass_tokens: int


def served_in(facts: EstimateInputs) -> Served:
    """The cache and the passes of a server, in vLLM's words (config/cache.py, config/scheduler.py)."""
    named = facts.word(_CACHE_TYPE)
    dtype = dtype_of(named)
    if dtype is None and named != "auto":
        facts.assume(_CACHE_TYPE, "the type of the matmuls", "vLLM's auto")
    block = facts.word(_CACHE_BLOCK)
    if not block.isdigit():
        facts.assume(_CACHE_BLOCK, "1 token", "a contiguous cache; a paged one fills its last block")
    tokens = facts.word(_PASS)
    if not tokens.isdigit():
        facts.assume(_PASS, f"{_PASS_TOKENS:,} tokens", "a pass of a server; longer prompts come in chunks")
    latent = [facts.word(path) for path in LATENT]
    return {
        "kv_latent": sum(map(int, latent)) if all(word.isdigit() for word in latent) else 0,
        "kv_bytes": DTYPES[dtype].bytes if dtype else 0.0,
        "kv_block": max(1, int(block)) if block.isdigit() else 1,
        "pass_tokens": max(1, int(tokens)) if tokens.isdigit() else _PASS_TOKENS,
    }


def assume_unpriced(facts: EstimateInputs, framework: FrameworkMemory, known: Collection[str]) -> None:
    """Say that compiling on CUDA and features without a formula take nothing; ``known`` are features that have one."""
    if not framework.static and facts.word("compile.posture") in ("regional", "whole_graph"):
        facts.assume("compile.posture", "no bytes", "no formula for the bytes of compiling; leave headroom")
    if facts.stated.get("parallelism.context", 1) > 1:
        facts.assume("parallelism.context", "no bytes in flight", "no formula for keys and values that ranks exchange")
    on = [
        path.removeprefix("features.")
        for path in facts.stated
        if path.startswith("features.") and path not in _KNOWN and facts.word(path) not in OFF
    ]
    without = [name for name in on if name not in (*known, "complete")]
    if without:
        more = f" and {len(without) - _SHOWN} more" if len(without) > _SHOWN else ""
        names = ", ".join(without[:_SHOWN]) + more
        facts.assume("features", "no bytes", f"no formula for {names}")
