"""What an accelerator is: peaks, memory and fabric of one chip, and where they were published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

GIB = 2**30
_NOTHING: Mapping[str, float] = MappingProxyType({})

# How sources spell the types that matrix units have peaks for. MXFP8 and NVFP4 are block-scaled forms of FP8
# and FP4 and run at their rates.
_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "bf16": "bf16", "bfloat16": "bf16",
        "fp16": "fp16", "float16": "fp16", "f16": "fp16", "half": "fp16",
        "tf32": "tf32",
        "fp32": "fp32", "float32": "fp32", "f32": "fp32",
        "fp8": "fp8", "float8": "fp8", "mxfp8": "fp8", "e4m3": "fp8", "e4m3fn": "fp8", "e5m2": "fp8",
        "fp6": "fp6", "mxfp6": "fp6",
        "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "fp4",
        "int8": "int8", "s8": "int8",
    }
)  # fmt: skip


def dtype_of(text: str | None) -> str | None:
    """The registry's name of a type (`bf16`, `fp8`, …) from free text; None where it names none, or several.

    ``FP8 tensorwise`` is `fp8`; ``BF16 + FP8 indexer`` has no single peak, so it is None.
    """
    words = re.findall(r"[a-z0-9]+", (text or "").lower())
    found = {_DTYPES[word] for word in words if word in _DTYPES}
    return found.pop() if len(found) == 1 else None


class MemoryLimit(NamedTuple):
    """Bytes that `reporter` really gives as the limit of a device, both ends included."""

    low_bytes: int
    high_bytes: int
    reporter: str

    def holds(self, limit_bytes: float) -> bool:
        """Whether `limit_bytes` is one that this reporter gives."""
        return self.low_bytes <= limit_bytes <= self.high_bytes

    def __str__(self) -> str:
        return f"{self.low_bytes / GIB:.2f} to {self.high_bytes / GIB:.2f} GiB by {self.reporter}"


def limit_gib(low: float, high: float, reporter: str) -> MemoryLimit:
    """A memory limit from GiB, the unit in which runtimes print it."""
    return MemoryLimit(int(low * GIB), int(high * GIB), reporter)


# eq=False: entries are compared by identity, so that they can be members of sets although they hold mappings.
@dataclass(frozen=True, slots=True, eq=False)
class Accelerator:
    """One chip. Peaks are FLOP/s (operations a second for integer types), by type, without sparsity.

    `names` are the words by which free text names it, and `not_with` words that make it another product (a
    PCIe form, a MIG slice). `devices_per_chip` is how many devices the runtime shows for a chip.
    `best_matmul_fraction` is the share of the dense peak that the chip's own best dense matmul reaches, by
    type, where it was measured. An empty `memory_limits` means not known, never "anything else is wrong".
    `no_peak` says why bf16 has no peak.
    """

    key: str
    names: tuple[str, ...]
    vendor: str
    source: str
    dense_peak_flops_per_second: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    sparse_peak_flops_per_second: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    best_matmul_fraction: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    hbm_bytes: int | None = None
    memory_limits: tuple[MemoryLimit, ...] = ()
    bandwidth_bytes_per_second: float | None = None
    fabric: str = ""
    native_fp8: bool = False
    devices_per_chip: int = 1
    not_with: tuple[str, ...] = ()
    no_peak: str = ""

    def __post_init__(self) -> None:
        for name in ("dense_peak_flops_per_second", "sparse_peak_flops_per_second", "best_matmul_fraction"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def peak(self, dtype: str | None, *, sparse: bool = False) -> float | None:
        """Peak of a chip in FLOP/s for a type in any spelling; None where no figure was published."""
        peaks = self.sparse_peak_flops_per_second if sparse else self.dense_peak_flops_per_second
        return peaks.get(dtype_of(dtype) or "")

    def is_sparse_figure(self, flops_per_second: float) -> bool:
        """Whether a denominator is a sparse peak and no dense one: 1979e12 is also an H200's dense FP8."""
        return _among(flops_per_second, self.sparse_peak_flops_per_second) and not _among(
            flops_per_second, self.dense_peak_flops_per_second
        )

    def best_fraction(self, dtype: str | None) -> float | None:
        """Share of the dense peak that this chip's best matmul reaches; None where it was not measured."""
        return self.best_matmul_fraction.get(dtype_of(dtype) or "")

    def accepts_limit(self, limit_bytes: float) -> bool | None:
        """Whether a runtime gives this memory limit on this chip; None where no limit is known."""
        if not self.memory_limits:
            return None
        return any(limit.holds(limit_bytes) for limit in self.memory_limits)


def _among(flops_per_second: float, peaks: Mapping[str, float]) -> bool:
    # Sources round to three or four digits (989 and 989.4), so half a per cent is the same figure.
    return any(abs(flops_per_second - peak) <= 0.005 * peak for peak in peaks.values())
