"""Names of what computes: how the words of `path` leaves are split and matched.

A stack with several kinds of attention states them together (``te_fused+dsa_tilelang``). Sources write ``te bf16``
and ``te_bf16`` for one thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from receipts.receipt.dtypes import DTYPES, named, spellings

if TYPE_CHECKING:
    from receipts.receipt import Parsed

NOTHING = frozenset({"none", "off"})
# Whoever asks for these leaves the choice to the framework: any permitted path is what was asked for.
ANYTHING = frozenset({"auto", "autoselected", "default"})
WITNESSED = "path.witnessed"
# Before a leaf's path, in what a piece of evidence observed: why that leaf has its value.
CAUSE = "cause of "
_SOURCES = 2
# A scalar that the host asked for, as torch_xla counts it: the path was kept, and R303 judges what it cost.
HOST_READ = "aten::_local_scalar_dense"
# The names of what computes, each with its other spellings by the sources that use them. Sources have names of their
# own besides (`dsa_tilelang`): a lane lists what it permits, and a name that is in neither is kept as it is.
NAMES: dict[str, tuple[str, ...]] = {
    "sdpa_flash": ("sdpa_flash_attention",),
    "sdpa_math": ("math", "sdpa_unfused"),
    "mem_efficient": ("sdpa_efficient", "sdpa_mem_efficient", "efficient_attention"),
    "cudnn_sdpa": ("sdpa_cudnn",),
    "flash2": ("flash_attention_2", "fa2"),
    "flash3": ("flash_attention_3", "fa3"),
    "flash4": ("flash_attention_4", "fa4"),
    "flex": ("flex_attention",),
    "varlen": (),
    "te_fused": (),
    "te_fused_fp8": (),
    "te_flash": ("te_flash2", "te_flash3", "te_flash4"),  # its log names no version; the wheel does
    "te_unfused": (),
    "cudnn_fmha": (),
    "pallas_flash": (),
    "pallas_splash": (),
    "xla_unfused": (),
    "torch-xla": ("torch_xla",),
    "alltoall": ("all_to_all",),
    "allgather": ("all_gather",),
    "deepep": ("deep_ep",),
    "hybridep": ("hybrid_ep",),
    # Overlaps: the work that is hidden, and the options of Megatron and NeMo that ask for it.
    "tp_comm": ("tp_comm_overlap", "ub_tp_comm_overlap", "userbuffers"),
    "grad_reduce": ("overlap_grad_reduce",),
    "param_gather": ("overlap_param_gather",),
    "param_gather_with_optimizer_step": ("overlap_param_gather_with_optimizer_step",),
    "p2p_comm": ("overlap_p2p_comm",),
    "moe_expert_parallel_comm": ("overlap_moe_expert_parallel_comm",),
    "moe_shared_expert": ("moe_shared_expert_overlap",),
}
# Who asks for the first leaves it to the framework which of the others it is.
CHOICES: dict[str, frozenset[str]] = {"flex": frozenset({"deepep", "hybridep"})}
# Overlaps that kernels of their own show. Of others, a witness that names these alone says nothing.
OVERLAPS_OF_KERNELS = frozenset({"tp_comm"})
NAMES_AND_TYPES = NAMES | {name: spellings(name) for name in DTYPES}
SPELLINGS: dict[str, str] = {other: name for name, others in NAMES_AND_TYPES.items() for other in others}
# Where names are compared, the library that hosts a loop is the loop.
_SAME = SPELLINGS | {"megatron-lm": "megatron-core"}


def spelled(path: str, value: Any) -> Any:
    """The value of a leaf with names of the path, or of types, in their one spelling; any other value as it is."""
    if not isinstance(value, str) or (not path.startswith("path.") and not path.endswith("_dtype")):
        return value
    return "+".join(SPELLINGS.get(word.strip().lower(), word) for word in value.split("+"))


def parts(value: Any) -> frozenset[str]:
    """The names in a path leaf, in one spelling; none for ``none`` and ``off``."""
    return _parts(str(value))


@lru_cache(maxsize=1024)
def _parts(text: str) -> frozenset[str]:
    words = (re.sub(r"[\s_]+", "_", word.strip().lower()) for word in re.split(r"[+,;]", text))
    return frozenset(map(_name, words)) - NOTHING - {""}


def _name(word: str) -> str:
    """The one spelling of a word; an option may be written as on its command line, with hyphens."""
    plain = word.lstrip("-").replace("-", "_")
    return _SAME.get(word) or _SAME.get(plain) or (plain if plain in NAMES else word)


def answers(want: Any, got: Any) -> bool:
    """Whether what was seen is what was asked for, or one of the choices that it left open."""
    asked, seen = parts(want), parts(got)
    left_open = frozenset[str]().union(*(CHOICES.get(name, ()) for name in asked))
    return asked == seen or (bool(left_open) and asked - CHOICES.keys() <= seen <= asked | left_open)


def permitted(value: Any, patterns: Iterable[str]) -> bool:
    """Whether every name in the value is one that the patterns list; a value without names is ``none``."""
    listed = tuple(_SAME.get(pattern, pattern) for pattern in patterns)
    names = parts(value) or {"none"}
    return all(any(fnmatchcase(name, pattern.lower()) for pattern in listed) for name in names)


def dtypes(value: Any) -> frozenset[str]:
    """The number types that a text names: ``BF16 + FP8 indexer`` is bf16 and fp8."""
    return named(str(value))


def anything_witnessed(parsed: Parsed) -> bool:
    """Whether any leaf of the witnessed path is stated."""
    return WITNESSED in parsed.flat.sections


def cause(parsed: Parsed, path: str) -> str:
    """Why a leaf has its value, by the evidence that the receipt lists; empty if there is none."""
    listed = [str((item.observed or {}).get(f"{CAUSE}{path}") or "") for item in parsed.receipt.evidence or ()]
    by_line = sorted(dict.fromkeys(filter(None, listed)), key=lambda text: re.search(r":\d", text) is None)
    return "; ".join(by_line[:_SOURCES])
