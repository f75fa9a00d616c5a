"""Intel's Gaudi accelerators, whose matrix engines have no sparsity."""

from __future__ import annotations

from dataclasses import replace

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator

GAUDI2 = Accelerator(
    key="gaudi2",
    names=("gaudi2", "gaudi 2", "hl 225"),
    vendor="Intel",
    source="Intel Gaudi 3 white paper, its comparison with Gaudi 2: bf16 432, FP8 865 TFLOP/s; hl-smi (98304 MiB)",
    dense_peak_flops_per_second={"bf16": 432e12, "fp8": 865e12},
    hbm_bytes=96 * GIB,
    bandwidth_bytes_per_second=2.46e12,
    fabric="24 x 100 Gbit/s RoCE",
)

GAUDI3 = replace(
    GAUDI2,
    key="gaudi3",
    names=("gaudi3", "gaudi 3", "hl 325"),
    source="Intel Gaudi 3 white paper: bf16 and FP8 1835 TFLOP/s, 128 GB at 3.7 TB/s; hl-smi (131072 MiB)",
    dense_peak_flops_per_second={"bf16": 1835e12, "fp8": 1835e12},
    hbm_bytes=128 * GIB,
    bandwidth_bytes_per_second=3.7e12,
    fabric="24 x 200 Gbit/s RoCE",
)

INTEL = (GAUDI2, GAUDI3)
