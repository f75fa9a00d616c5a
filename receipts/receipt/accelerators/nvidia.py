"""NVIDIA's accelerators.

Vendors write capacity in GB and mean 2**30 bytes: nvidia-smi gives 143,771 MiB = 140.4 GiB for an H200 "141
GB".

bf16 and FP8 peaks stand in the tables of torchtitan and of NVIDIA's own benchmarking recipes. The rest are
the datasheets' figures as secondary pages quote them, halved where the sheet counts sparsity; check them
against the sheet before they carry a claim. NVSwitch joins the eight GPUs of an HGX board; products whose
NVLink leaves the host (GB200 NVL72) are other accelerators.
"""

from __future__ import annotations

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, limit_gib

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
    memory_limits=(
        limit_gib(139.7, 140.5, "torch or nvidia-smi"),
        limit_gib(104.7, 105.4, "JAX, its pool at the default 0.75"),
    ),
    bandwidth_bytes_per_second=4.8e12,
    fabric="NVLink 4, 900 GB/s a GPU",
    joined=8,
    native_fp8=True,
)

H100_SXM = Accelerator(
    key="h100-sxm",
    names=("h100",),
    not_with=_OTHER_FORMS,
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
    memory_limits=(
        limit_gib(79.0, 79.7, "torch or nvidia-smi"),
        limit_gib(59.2, 59.8, "JAX, its pool at the default 0.75"),
    ),
    bandwidth_bytes_per_second=3.35e12,
    fabric="NVLink 4, 900 GB/s a GPU",
    joined=8,
    native_fp8=True,
)

B200 = Accelerator(
    key="b200",
    names=("b200",),
    not_with=_OTHER_FORMS,
    vendor="NVIDIA",
    source=(
        "peaks: torchtitan get_peak_flops and NVIDIA dgxc-benchmarking (bf16 2250, FP8 4500 TFLOP/s), "
        "others from the Blackwell architecture brief as quoted, HGX B200 at 1000 W (GB200 is another "
        "product); limits: torch 2.x (178.35, 178.36 GiB) and nvidia-smi (179 GB)"
    ),
    dense_peak_flops_per_second={
        "fp32": 80e12,
        "tf32": 1100e12,
        "bf16": 2250e12,
        "fp16": 2250e12,
        "fp8": 4500e12,
        "int8": 4500e12,
        "fp6": 4500e12,
        "fp4": 9000e12,
    },
    sparse_peak_flops_per_second={
        "tf32": 2200e12,
        "bf16": 4500e12,
        "fp16": 4500e12,
        "fp8": 9000e12,
        "int8": 9000e12,
        "fp6": 9000e12,
        "fp4": 18000e12,
    },
    hbm_bytes=180 * GIB,
    memory_limits=(
        limit_gib(178.2, 179.2, "torch or nvidia-smi"),
        limit_gib(133.6, 134.4, "JAX, its pool at the default 0.75"),
    ),
    bandwidth_bytes_per_second=8e12,
    fabric="NVLink 5, 1800 GB/s a GPU",
    joined=8,
    native_fp8=True,
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
    bandwidth_bytes_per_second=273e9,
    fabric="2 x ConnectX-7, 200 Gbit/s each",
    joined=1,
    native_fp8=True,
    no_peak="NVIDIA publishes FP32 and FP4 with sparsity only; a dense bf16 or FP8 figure would be a guess",
)

NVIDIA = (H200_SXM, H100_SXM, B200, GB10)
