"""AMD's Instinct accelerators. Peaks are a module's at its boost clock, without sparsity."""

from __future__ import annotations

from dataclasses import replace

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, limit_gib, with_sparsity

_CDNA3 = {
    "fp32": 163.4e12, "tf32": 653.7e12, "bf16": 1307.4e12, "fp16": 1307.4e12, "fp8": 2614.9e12, "int8": 2614.9e12,
}  # fmt: skip
_CDNA4 = {
    "fp32": 157.3e12, "bf16": 2516.6e12, "fp16": 2516.6e12,
    "fp8": 5033.2e12, "int8": 5033.2e12, "fp6": 10066.3e12, "fp4": 10066.3e12,
}  # fmt: skip

MI300X = Accelerator(
    key="mi300x",
    names=("mi300x",),
    vendor="AMD",
    source="AMD Instinct MI300X data sheet; limits: torch on ROCm (191.69, 191.98 GiB)",
    dense_peak_flops_per_second=_CDNA3,
    sparse_peak_flops_per_second=with_sparsity(_CDNA3, "tf32", "bf16", "fp16", "fp8", "int8"),
    hbm_bytes=192 * GIB,
    memory_limits=(limit_gib(191.6, 192.0, "torch"),),
    bandwidth_bytes_per_second=5.3e12,
    fabric="Infinity Fabric, 896 GB/s a GPU",
    joined=8,
)

MI325X = replace(
    MI300X,
    key="mi325x",
    names=("mi325x", "mi325"),
    source="AMD Instinct MI325X data sheet; limits: torch on ROCm (255.69, 255.98 GiB)",
    hbm_bytes=256 * GIB,
    memory_limits=(limit_gib(255.6, 256.0, "torch"),),
    bandwidth_bytes_per_second=6e12,
)

MI355X = replace(
    MI300X,
    key="mi355x",
    names=("mi355x",),
    source="AMD Instinct MI355X data sheet; limits: torch on ROCm (287.98 GiB)",
    dense_peak_flops_per_second=_CDNA4,
    sparse_peak_flops_per_second=with_sparsity(_CDNA4, "bf16", "fp16", "fp8", "int8"),
    hbm_bytes=288 * GIB,
    memory_limits=(limit_gib(287.6, 288.0, "torch"),),
    bandwidth_bytes_per_second=8e12,
    fabric="Infinity Fabric, 1075 GB/s a GPU",
)

AMD = (MI300X, MI325X, MI355X)
