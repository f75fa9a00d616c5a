"""NVIDIA's Blackwell GPUs. On a Grace board they run at higher power, and the rates of each are higher.

Rates are those of HGX and NVL72 pages, which give whole systems with sparsity: divided by GPUs, and by two. NVLink of a
GB200 NVL72 and a GB300 NVL72 joins the 72 GPUs of a rack.
"""

from __future__ import annotations

from dataclasses import replace

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, pool_limits, with_sparsity

_SPARSE = ("tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
_B200_DENSE = {
    "fp32": 80e12, "tf32": 1100e12, "bf16": 2250e12, "fp16": 2250e12,
    "fp8": 4500e12, "int8": 4500e12, "fp6": 4500e12, "fp4": 9000e12,
}  # fmt: skip
_GRACE_DENSE = {
    "fp32": 80e12, "tf32": 1250e12, "bf16": 2500e12, "fp16": 2500e12,
    "fp8": 5000e12, "int8": 5000e12, "fp6": 5000e12, "fp4": 10000e12,
}  # fmt: skip
# Blackwell Ultra gives up INT8, and its FP4 gains nothing like twofold from sparsity.
_B300_DENSE = _B200_DENSE | {"fp32": 75e12, "tf32": 1125e12, "int8": 150e12, "fp4": 13500e12}
_GB300_DENSE = _GRACE_DENSE | {"int8": 165e12, "fp4": 15000e12}
_ULTRA_SPARSE = ("tf32", "bf16", "fp16", "fp8", "fp6")

B200 = Accelerator(
    key="b200",
    names=("b200",),
    not_with=("mig", "nvl", "pcie"),
    vendor="NVIDIA",
    source=(
        "peaks: torchtitan get_peak_flops and NVIDIA dgxc-benchmarking (bf16 2250, FP8 4500 TFLOP/s), "
        "others from the Blackwell architecture brief as quoted, HGX B200 at 1000 W (GB200 is another "
        "product); limits: torch 2.x (178.35, 178.36 GiB) and nvidia-smi (179 GB)"
    ),
    dense_peak_flops_per_second=_B200_DENSE,
    sparse_peak_flops_per_second=with_sparsity(_B200_DENSE, *_SPARSE),
    hbm_bytes=180 * GIB,
    memory_limits=pool_limits(178.2, 179.2),
    bandwidth_bytes_per_second=8e12,
    fabric="NVLink 5, 1800 GB/s a GPU",
    joined=8,
    fp8_any_layout=True,
)

GB200 = replace(
    B200,
    key="gb200",
    names=("gb200",),
    source=(
        "GB200 NVL72 datasheet: 360 PFLOP/s in bf16 with sparsity over 72 GPUs; torchtitan get_peak_flops (2500); "
        "limits: torch (184.31 GiB) and nvidia-smi (189471 MiB)"
    ),
    dense_peak_flops_per_second=_GRACE_DENSE,
    sparse_peak_flops_per_second=with_sparsity(_GRACE_DENSE, *_SPARSE),
    hbm_bytes=186 * GIB,
    memory_limits=pool_limits(184.2, 185.1),
    joined=None,
)

B300 = replace(
    B200,
    key="b300",
    names=("b300",),
    source=(
        "HGX B300 page: 36 PFLOP/s in bf16 with sparsity over 8 GPUs, FP4 108 dense; limits: torch (267.69 GiB) and "
        "nvidia-smi (275040 MiB)"
    ),
    dense_peak_flops_per_second=_B300_DENSE,
    sparse_peak_flops_per_second=with_sparsity(_B300_DENSE, *_ULTRA_SPARSE),
    hbm_bytes=270 * GIB,
    memory_limits=pool_limits(267.6, 268.7),
)

GB300 = replace(
    GB200,
    key="gb300",
    names=("gb300",),
    source=(
        "GB300 NVL72 page: 360 PFLOP/s in bf16 with sparsity over 72 GPUs, FP4 1080 dense; limits: torch (276.50 GiB) "
        "and nvidia-smi (284208 MiB)"
    ),
    dense_peak_flops_per_second=_GB300_DENSE,
    sparse_peak_flops_per_second=with_sparsity(_GB300_DENSE, *_ULTRA_SPARSE),
    hbm_bytes=279 * GIB,
    memory_limits=pool_limits(276.4, 277.6),
)

BLACKWELL = (B200, GB200, B300, GB300)
