"""Google's TPUs. Peaks are a chip's, whatever number of devices the runtime shows for it.

PJRT calls v5e "TPU v5 lite", v5p "TPU v5" and v6e "TPU v6 lite". Slice names count cores on v4 and v5p (v5p-8 is
four chips) and chips on v5e and v6e. Where a chip has no FP8 unit the published FP8 figure is the bf16 one.
"""

from __future__ import annotations

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, limit_gib

_DOCUMENTATION = "Google Cloud TPU documentation, page"

TPU_V4 = Accelerator(
    key="tpu-v4",
    names=("v4", "tpu v4", "ct4p"),
    not_with=("lite", "v4i"),
    vendor="Google",
    source=f"{_DOCUMENTATION} TPU v4; limit: the compiler of libtpu (30.75 GiB), and its allocator",
    dense_peak_flops_per_second={"bf16": 275e12, "int8": 275e12},
    hbm_bytes=32 * GIB,
    memory_limits=(limit_gib(30.7, 31.3, "libtpu"),),
    bandwidth_bytes_per_second=1200e9,
    fabric="ICI, 3D torus, 600 GB/s a chip both ways",
)

TPU_V5E = Accelerator(
    key="tpu-v5e",
    names=("v5e", "tpu v5 lite", "tpu v5lite", "v5litepod", "v5lite"),
    vendor="Google",
    source=f"{_DOCUMENTATION} TPU v5e; limit: jax memory_stats (16909332480 bytes)",
    dense_peak_flops_per_second={"bf16": 197e12, "int8": 393e12},
    hbm_bytes=16 * GIB,
    memory_limits=(limit_gib(15.7, 15.8, "libtpu"),),
    bandwidth_bytes_per_second=819e9,
    fabric="ICI, 2D torus, 400 GB/s a chip both ways",
)

TPU_V5P = Accelerator(
    key="tpu-v5p",
    names=("v5p", "tpu v5"),
    vendor="Google",
    source=(
        f"{_DOCUMENTATION} TPU v5p; int8: How to Scale Your Model, chapter TPUs; limit: MaxText logs "
        "(95.74 GiB, so the published 95 is rounded down from six stacks of 16 GiB)"
    ),
    dense_peak_flops_per_second={"bf16": 459e12, "fp8": 459e12, "int8": 918e12},
    hbm_bytes=96 * GIB,
    memory_limits=(limit_gib(95.0, 95.8, "libtpu"),),
    bandwidth_bytes_per_second=2765e9,
    fabric="ICI, 3D torus, 1200 GB/s a chip both ways",
)

TPU_V6E = Accelerator(
    key="tpu-v6e",
    names=("v6e", "tpu v6 lite", "tpu v6lite", "tpu6e", "ct6e", "trillium"),
    vendor="Google",
    source=(
        f"{_DOCUMENTATION} TPU v6e (peaks, bandwidth) and TPU7x (FP8 at the bf16 rate); limits: the "
        "compiler of libtpu 0.0.42 (31.25 GiB = 33554432000 bytes) and its allocator (33822867456 bytes)"
    ),
    dense_peak_flops_per_second={"bf16": 918e12, "fp8": 918e12, "int8": 1836e12},
    hbm_bytes=32 * GIB,
    memory_limits=(limit_gib(31.24, 31.51, "libtpu"),),
    bandwidth_bytes_per_second=1638e9,
    fabric="ICI, 2D torus, 800 GB/s a chip both ways",
)

TPU_V7 = Accelerator(
    key="tpu-v7",
    names=("tpu v7", "tpu7x", "tpu v7x", "v7x", "ironwood"),
    vendor="Google",
    source=f"{_DOCUMENTATION} TPU7x (Ironwood); limits: MaxText logs, 94.75 and 95.74 GiB a device",
    dense_peak_flops_per_second={"bf16": 2307e12, "fp8": 4614e12},
    hbm_bytes=192 * GIB,
    memory_limits=(
        limit_gib(94.7, 95.8, "libtpu, of one of a chip's two devices"),
        limit_gib(189.4, 191.6, "libtpu, of both devices of a chip"),
    ),
    bandwidth_bytes_per_second=7380e9,
    fabric="ICI, 3D torus, 1200 GB/s a chip both ways",
    devices_per_chip=2,
)

GOOGLE = (TPU_V4, TPU_V5E, TPU_V5P, TPU_V6E, TPU_V7)
