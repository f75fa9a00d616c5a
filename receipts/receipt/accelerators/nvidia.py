"""NVIDIA's accelerators.

Vendors write capacity in GB and mean 2**30 bytes: nvidia-smi gives 143,771 MiB = 140.4 GiB for an H200 "141 GB".

bf16 and FP8 peaks stand in the tables of torchtitan and of NVIDIA's own benchmarking recipes. The rest are the
datasheets' figures as secondary pages quote them, halved where the sheet counts sparsity; check them against the
sheet before they carry a claim. NVSwitch joins the eight GPUs of an HGX board. Memory is that of a name that states
it: an "A100" has a peak and no budget.

Blackwell's rates are those of HGX and NVL72 pages, which give whole systems with sparsity: divided by GPUs, and by
two. On a Grace board the GPUs run at higher power, and the rates of each are higher. NVLink of a GB200 NVL72 and a
GB300 NVL72 joins the 72 GPUs of a rack.
"""

from __future__ import annotations

from dataclasses import replace

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, pool_limits, with_sparsity

_BLACKWELL_SPARSE = ("tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
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
    sparse_peak_flops_per_second=with_sparsity(_B200_DENSE, *_BLACKWELL_SPARSE),
    hbm_bytes=180 * GIB,
    memory_limits=pool_limits(178.2, 179.2),
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
    sparse_peak_flops_per_second=with_sparsity(_GRACE_DENSE, *_BLACKWELL_SPARSE),
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

# A slice, an add-in card or a pair on one board has other peaks than the SXM module of the same name.
_OTHER_FORMS = ("mig", "nvl", "pcie")

_HOPPER_DENSE = {
    "fp32": 67e12,
    "tf32": 494.5e12,
    "bf16": 989e12,
    "fp16": 989e12,
    "fp8": 1979e12,
    "int8": 1979e12,
}
_HOPPER_SPARSE = {"tf32": 989e12, "bf16": 1979e12, "fp16": 1979e12, "fp8": 3958e12, "int8": 3958e12}

H200_SXM = Accelerator(
    key="h200-sxm",
    names=("h200",),
    not_with=_OTHER_FORMS,
    vendor="NVIDIA",
    source=(
        "peaks: torchtitan get_peak_flops and NVIDIA dgxc-benchmarking (bf16 989, FP8 1979 TFLOP/s), "
        "others from the H200 datasheet as quoted; memory and NVLink: MLPerf Inference 4.1, system "
        "H200-SXM-141GBx8; limits: torch 2.x (139.80, 139.81 GiB) and nvidia-smi (143771 MiB); best "
        "matmul: measured in bf16"
    ),
    dense_peak_flops_per_second=_HOPPER_DENSE,
    sparse_peak_flops_per_second=_HOPPER_SPARSE,
    best_matmul_fraction={"bf16": 0.80},
    hbm_bytes=141 * GIB,
    memory_limits=pool_limits(139.7, 140.5),
    fabric="NVLink 4, 900 GB/s a GPU",
    joined=8,
)

H100_SXM = Accelerator(
    key="h100-sxm",
    names=("h100",),
    not_with=(*_OTHER_FORMS, "64gb", "96gb", "hbm2e"),
    vendor="NVIDIA",
    source=(
        "peaks: torchtitan get_peak_flops and NVIDIA dgxc-benchmarking (bf16 989, FP8 1979 TFLOP/s), "
        "others from the H100 datasheet as quoted; limits: torch 2.x (79.11 to 79.33 GiB) and nvidia-smi "
        "(81559 MiB). A power-capped module reached 708 TFLOP/s in bf16, which is no upper bound: no best "
        "matmul is given"
    ),
    dense_peak_flops_per_second=_HOPPER_DENSE,
    sparse_peak_flops_per_second=_HOPPER_SPARSE,
    hbm_bytes=80 * GIB,
    memory_limits=pool_limits(79.0, 79.7),
    fabric="NVLink 4, 900 GB/s a GPU",
    joined=8,
)

GB10 = Accelerator(
    key="gb10",
    names=("gb10", "dgx spark"),
    vendor="NVIDIA",
    source=(
        "NVIDIA DGX Spark product page and the GB10 talk at Hot Chips 2025: 1 PFLOP/s FP4 with sparsity, "
        "about 31 TFLOP/s FP32, 128 GB LPDDR5x at 273 GB/s shared with the CPU"
    ),
    dense_peak_flops_per_second={"fp32": 31e12},
    sparse_peak_flops_per_second={"fp4": 1000e12},
    hbm_bytes=128 * GIB,
    fabric="2 x ConnectX-7, 200 Gbit/s each",
    joined=1,
    fp8_any_layout=True,
    no_peak="NVIDIA publishes FP32 and FP4 with sparsity only; a dense bf16 or FP8 figure would be a guess",
)

# The cards of Hopper run at lower clocks, and reach less of each rate.
_PCIE = {"fp32": 51e12, "tf32": 378e12, "bf16": 756e12, "fp16": 756e12, "fp8": 1513e12, "int8": 1513e12}
_NVL = {"fp32": 60e12, "tf32": 417.5e12, "bf16": 835.5e12, "fp16": 835.5e12, "fp8": 1670.5e12, "int8": 1670.5e12}
_PCIE_SPARSE = ("tf32", "bf16", "fp16", "fp8", "int8")

H100_PCIE = replace(
    H100_SXM,
    key="h100-pcie",
    names=("h100 pcie", "h100 80gb pcie"),
    not_with=("mig",),
    source="H100 datasheet, PCIe column (bf16 1513 TFLOP/s with sparsity); torchtitan get_peak_flops (756)",
    dense_peak_flops_per_second=_PCIE,
    sparse_peak_flops_per_second=with_sparsity(_PCIE, *_PCIE_SPARSE),
    fabric="NVLink bridge of two cards, 600 GB/s",
    joined=2,
)

H100_NVL = replace(
    H100_PCIE,
    key="h100-nvl",
    names=("h100 nvl",),
    source=(
        "H100 datasheet, NVL column (bf16 1671 TFLOP/s with sparsity); torchtitan get_peak_flops (835); limits: torch "
        "(93.00 to 93.10 GiB) and nvidia-smi (95830 MiB)"
    ),
    dense_peak_flops_per_second=_NVL,
    sparse_peak_flops_per_second=with_sparsity(_NVL, *_PCIE_SPARSE),
    hbm_bytes=94 * GIB,
    memory_limits=pool_limits(92.9, 93.6),
)

H200_NVL = replace(
    H100_NVL,
    key="h200-nvl",
    names=("h200 nvl",),
    source="H200 datasheet, NVL column (bf16 1671 TFLOP/s with sparsity); memory as the SXM module's",
    hbm_bytes=H200_SXM.hbm_bytes,
    memory_limits=H200_SXM.memory_limits,
    fabric="NVLink bridge of four cards, 900 GB/s",
    joined=4,
)

H800_SXM = replace(
    H100_SXM,
    key="h800-sxm",
    names=("h800",),
    source="an H100 SXM with NVLink at 400 GB/s: DeepSeek-V3 2024, arXiv:2412.19437, section 3.1; peaks as the H100's",
    fabric="NVLink 4, 400 GB/s a GPU",
)

H20 = replace(
    H100_SXM,
    key="h20",
    names=("h20",),
    not_with=("mig", "141gb", "3e"),
    source="NVIDIA H20 brief as quoted: bf16 148, FP8 296 TFLOP/s; limits: torch (95.22 GiB), nvidia-smi (97871 MiB)",
    dense_peak_flops_per_second={
        "fp32": 44e12, "tf32": 74e12, "bf16": 148e12, "fp16": 148e12, "fp8": 296e12, "int8": 296e12,
    },
    sparse_peak_flops_per_second={},
    hbm_bytes=96 * GIB,
    memory_limits=pool_limits(95.1, 95.6),
)  # fmt: skip

GH200 = replace(
    H100_SXM,
    key="gh200",
    names=("gh200",),
    not_with=("mig",),
    source="NVIDIA GH200 datasheet: the H100's peaks; HBM of 96 or 144 GB, which its name does not state",
    hbm_bytes=None,
    memory_limits=(),
    joined=None,
)

_AMPERE = {"fp32": 19.5e12, "tf32": 156e12, "bf16": 312e12, "fp16": 312e12, "int8": 624e12}

A100 = Accelerator(
    key="a100",
    names=("a100",),
    not_with=("mig", "64gb"),
    vendor="NVIDIA",
    source="A100 datasheet: bf16 312 TFLOP/s, 624 with sparsity, on SXM and PCIe; HBM of 40 or 80 GB",
    dense_peak_flops_per_second=_AMPERE,
    sparse_peak_flops_per_second=with_sparsity(_AMPERE, "tf32", "bf16", "fp16", "int8"),
    fabric="NVLink 3, 600 GB/s a GPU",
    joined=16,
)

A100_80GB = replace(
    A100,
    key="a100-80gb",
    names=tuple(f"a100 {form}" for form in ("80gb", "sxm4 80gb", "sxm 80gb", "pcie 80gb", "80g")),
    source="A100 datasheet, 80 GB columns; limits: torch (79.14 to 79.35 GiB) and nvidia-smi (81920 MiB)",
    hbm_bytes=80 * GIB,
    memory_limits=pool_limits(79.1, 80.0),
)

A100_40GB = replace(
    A100,
    key="a100-40gb",
    names=tuple(f"a100 {form}" for form in ("40gb", "sxm4 40gb", "sxm 40gb", "pcie 40gb", "40g")),
    source="A100 datasheet, 40 GB columns; limits: torch (39.38 to 39.59 GiB) and nvidia-smi (40960 MiB)",
    hbm_bytes=40 * GIB,
    memory_limits=pool_limits(39.3, 40.0),
)

NVIDIA = (
    H200_SXM, H100_SXM, GB10, H100_PCIE, H100_NVL, H200_NVL, H800_SXM, H20, GH200, A100, A100_80GB, A100_40GB,
    B200, GB200, B300, GB300,
)  # fmt: skip
