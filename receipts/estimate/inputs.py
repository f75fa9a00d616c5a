"""What a receipt states, asked for value by value: what is missing, and what had to be assumed, is written down.

What an estimate has no surface for is an assumption too, and so is how a server fills memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypedDict, TypeVar

from receipts.base.units import named
from receipts.estimate.setup import FrameworkMemory
from receipts.metrics.flops.geometry import ATTENTION_WIDTHS, MIXER_WIDTHS
from receipts.receipt.names import DTYPES, dtype_of

# Words for a switch that does nothing, or that is not stated.
OFF = ("", "none", "off", "no", "false", "0")
Value = TypeVar("Value", int, float, bool, str)


class Assumed(NamedTuple):
    """What was taken for a value that the receipt does not state, or that has no formula, and why."""

    path: str
    value: str
    because: str


class EstimateInputs:
    """Stated leaves by path, with a record of every value that was asked for and not there.

    ``missing`` are paths without which nothing can be said; ``assumed`` are paths that something was taken for.
    """

    def __init__(self, stated: Mapping[str, Any]) -> None:
        self.stated = stated
        self._missing: dict[str, None] = {}
        self._assumed: dict[str, Assumed] = {}

    def __repr__(self) -> str:
        return f"EstimateInputs({len(self.stated)} stated, {len(self._missing)} missing, {len(self._assumed)} assumed)"

    @property
    def missing(self) -> tuple[str, ...]:
        """Paths that must be stated, in the order in which they were asked for."""
        return tuple(self._missing)

    @property
    def assumed(self) -> tuple[Assumed, ...]:
        """What was taken for what is not stated, each path once."""
        return tuple(self._assumed.values())

    def need(self, path: str) -> int:
        """A whole number that nothing can stand in for; 0 where it is not stated, and then it is `missing`."""
        value = self.stated.get(path)
        if value is None:
            self._missing[path] = None
            return 0
        return int(value)

    def take(self, path: str, otherwise: Value, because: str) -> Value:
        """The stated value, else ``otherwise``, which is written down with its reason."""
        value: Value | None = self.stated.get(path)
        if value is None:
            self.assume(path, otherwise, because)
            return otherwise
        return value

    def assume(self, path: str, value: object, because: str) -> None:
        """Write an assumption down."""
        text = ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else value
        self._assumed.setdefault(path, Assumed(path, str(text), because))

    def word(self, *paths: str) -> str:
        """The first of these that is stated, in lower case; empty if none is stated."""
        return next((str(self.stated[path]).lower() for path in paths if self.stated.get(path) is not None), "")


_CACHE_TYPE, _CACHE_BLOCK = "features.kv_cache_dtype", "features.kv_block_size"
_PASS = "features.max_num_batched_tokens"
LATENT = ("features.kv_lora_rank", "features.qk_rope_head_dim")  # as the configurations of Hugging Face name them
_COUNTED = ("features.mamba_head_dim", "features.mtp", *ATTENTION_WIDTHS, *MIXER_WIDTHS)
_PRICED = (_CACHE_TYPE, _CACHE_BLOCK, _PASS, *LATENT, "features.fp8_param_gather", *_COUNTED)
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
    stated = facts.word(_CACHE_TYPE)
    dtype = dtype_of(stated)
    if dtype is None and stated != "auto":
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
        if path.startswith("features.") and path not in _PRICED and facts.word(path) not in OFF
    ]
    without = [name for name in on if name not in (*known, "complete")]
    if without:
        facts.assume("features", "no bytes", f"no formula for {named(without, 4)}")
