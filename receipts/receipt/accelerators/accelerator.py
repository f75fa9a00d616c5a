"""What an accelerator is: peaks, memory and fabric of one chip, and where they were published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from receipts.base.units import GIB
from receipts.receipt.names import dtype_of

_NOTHING: Mapping[str, float] = MappingProxyType({})


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


def pool_limits(low: float, high: float) -> tuple[MemoryLimit, ...]:
    """What the tools of a GPU give, in GiB, and JAX's pool of it: XLA_PYTHON_CLIENT_MEM_FRACTION is 0.75."""
    pool = limit_gib(0.75 * low, 0.75 * high, "JAX, its pool at the default 0.75")
    return limit_gib(low, high, "torch or nvidia-smi"), pool


def with_sparsity(dense: Mapping[str, float], *types: str) -> dict[str, float]:
    """Peaks of 2:4 structured sparsity, twice the dense ones."""
    return {name: 2 * dense[name] for name in types}


# eq=False: entries are compared by identity, so that they can be members of sets although they hold mappings.
@dataclass(frozen=True, slots=True, eq=False)
class Accelerator:
    """One chip. Peaks are FLOP/s (operations a second for integer types), by type, without sparsity.

    `names` are the words by which free text names it, and `not_with` words that make it another product (a
    PCIe form, a MIG slice). `devices_per_chip` is how many devices the runtime shows for a chip.
    `best_matmul_fraction` is the share of the dense peak that the chip's own best dense matmul reaches, by
    type, where it was measured. `joined` is the most chips that its fast fabric joins where that ends at the
    host; None if it joins hosts (ICI), or it is not declared. An empty `memory_limits` means not known,
    never "anything else is wrong". `fp8_any_layout`: FP8 matrices multiply as they lie, and none is kept transposed
    as well, as on Hopper. `no_peak` says why bf16 has no peak.
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
    fabric: str = ""
    joined: int | None = None
    fp8_any_layout: bool = False
    devices_per_chip: int = 1
    not_with: tuple[str, ...] = ()
    no_peak: str = ""

    def __post_init__(self) -> None:
        for name in ("dense_peak_flops_per_second", "sparse_peak_flops_per_second", "best_matmul_fraction"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def peak(self, dtype: str | None, *, sparse: bool = False) -> float | None:
        """Peak of a chip in FLOP/s for a type in any spelling; None if no figure was published."""
        peaks = self.sparse_peak_flops_per_second if sparse else self.dense_peak_flops_per_second
        return peaks.get(dtype_of(dtype) or "")

    def is_sparse_figure(self, flops_per_second: float) -> bool:
        """Whether a denominator is a sparse peak and no dense one: 1979e12 is also an H200's dense FP8."""
        return _among(flops_per_second, self.sparse_peak_flops_per_second) and not _among(
            flops_per_second, self.dense_peak_flops_per_second
        )

    def best_fraction(self, dtype: str | None) -> float | None:
        """Share of the dense peak that this chip's best matmul reaches; None if it was not measured."""
        return self.best_matmul_fraction.get(dtype_of(dtype) or "")

    def accepts_limit(self, limit_bytes: float) -> bool | None:
        """Whether a runtime gives this memory limit on this chip; None if no limit is known."""
        if not self.memory_limits:
            return None
        return any(limit.holds(limit_bytes) for limit in self.memory_limits)


def _among(flops_per_second: float, peaks: Mapping[str, float]) -> bool:
    # Sources round to three or four digits (989 and 989.4), so half a per cent is the same figure.
    return any(abs(flops_per_second - peak) <= 0.005 * peak for peak in peaks.values())
