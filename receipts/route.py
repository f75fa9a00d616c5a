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

from receipts.accelerators import dtype_of

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
# Two names of one thing, by the sources that use them; the second is the one that readers of evidence give.
_SAME = {
    "sdpa_cudnn": "cudnn_sdpa",
    "sdpa_efficient": "mem_efficient",
    "megatron-lm": "megatron-core",
    "torch_xla": "torch-xla",
}


def parts(value: Any) -> frozenset[str]:
    """The names in a path leaf, in one spelling; none for ``none`` and ``off``."""
    return _parts(str(value))


@lru_cache(maxsize=1024)
def _parts(text: str) -> frozenset[str]:
    words = (re.sub(r"[\s_]+", "_", word.strip().lower()) for word in re.split(r"[+,;]", text))
    return frozenset(_SAME.get(word, word) for word in words if word and word not in NOTHING)


def permitted(value: Any, patterns: Iterable[str]) -> bool:
    """Whether every name in the value is one that the patterns list; a value without names is ``none``."""
    listed = tuple(patterns)
    names = parts(value) or {"none"}
    return all(any(fnmatchcase(name, pattern.lower()) for pattern in listed) for name in names)


def dtypes(value: Any) -> frozenset[str]:
    """The number types that a text names: ``BF16 + FP8 indexer`` is bf16 and fp8."""
    found = (dtype_of(word) for word in re.findall(r"[a-z0-9]+", str(value).lower()))
    return frozenset(name for name in found if name is not None)


def anything_witnessed(parsed: Parsed) -> bool:
    """Whether any leaf of the witnessed path is stated."""
    return WITNESSED in parsed.flat.sections


def cause(parsed: Parsed, path: str) -> str:
    """Why a leaf has its value, by the evidence that the receipt lists; empty where none says so."""
    listed = [str((item.observed or {}).get(f"{CAUSE}{path}") or "") for item in parsed.receipt.evidence or ()]
    by_line = sorted(dict.fromkeys(filter(None, listed)), key=lambda text: re.search(r":\d", text) is None)
    return "; ".join(by_line[:_SOURCES])
