"""Accelerators that declare themselves: peaks, memory, fabric, and where each figure was published.

An accelerator that is not here has no MFU. There is no default peak: one tool's fallback printed 563 %.
"""

from __future__ import annotations

import re
from functools import lru_cache

from receipts.receipt.accelerators.accelerator import Accelerator, MemoryLimit
from receipts.receipt.accelerators.amd import AMD
from receipts.receipt.accelerators.google import GOOGLE
from receipts.receipt.accelerators.host import HOST
from receipts.receipt.accelerators.intel import INTEL
from receipts.receipt.accelerators.nvidia import NVIDIA
from receipts.receipt.dtypes import dtype_of

__all__ = ["ACCELERATORS", "Accelerator", "MemoryLimit", "dtype_of", "find"]

ACCELERATORS: tuple[Accelerator, ...] = (*NVIDIA, *AMD, *INTEL, *GOOGLE, *HOST)


@lru_cache(maxsize=256)
def find(name: str | None) -> Accelerator | None:
    """The accelerator that free text names, else None.

    It knows "NVIDIA H200 143771MiB", "TPU v6 lite", "v6e-8" and "8xH200". Text that names two of them, a
    slice of one, or another form of the same chip, names none.
    """
    words = _words(name or "")
    spans = [
        (start, start + len(alias), accelerator)
        for accelerator in ACCELERATORS
        for alias in (_words(alias) for alias in (accelerator.key, *accelerator.names))
        for start in range(len(words) - len(alias) + 1)
        if words[start : start + len(alias)] == alias
    ]
    # "TPU v5 lite" also contains "TPU v5", which is another chip: the longer name takes the words.
    whole = {
        accelerator
        for start, stop, accelerator in spans
        if not any(low <= start and stop <= high and high - low > stop - start for low, high, _ in spans)
    }
    if len(whole) != 1:
        return None
    accelerator = whole.pop()
    return None if set(accelerator.not_with) & set(words) else accelerator


def _words(text: str) -> tuple[str, ...]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    # "8xH200" and "H200x8" count machines; the count is not part of the name.
    return tuple(re.sub(r"^\d+x(?=[a-z])|(?<=\d)x\d+$", "", word) for word in words)
