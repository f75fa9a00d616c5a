"""Accelerators that declare themselves: peaks, memory, fabric, and where each figure was published.

An accelerator that is not here has no MFU. There is no default peak: one tool's fallback printed 563 %. NVIDIA's are
in a file of their own; AMD's, Google's and Intel's are here, and hosts, which have no published matrix peak: they
have tokens a second and step times, and no MFU.

AMD: peaks are a module's at its boost clock, without sparsity. Intel: the matrix engines of Gaudi have no sparsity.
Google: peaks are a chip's, whatever number of devices the runtime shows for it. PJRT calls v5e "TPU v5 lite", v5p
"TPU v5" and v6e "TPU v6 lite". Slice names count cores on v4 and v5p (v5p-8 is four chips) and chips on v5e and v6e.
Where a chip has no FP8 unit the published FP8 figure is the bf16 one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from receipts.base.units import GIB
from receipts.receipt.accelerators.accelerator import Accelerator, limit_gib, with_sparsity
from receipts.receipt.accelerators.nvidia import NVIDIA
from receipts.receipt.names import dtype_of

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
    fabric="Infinity Fabric, 1075 GB/s a GPU",
)

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
    fabric="ICI, 3D torus, 1200 GB/s a chip both ways",
    devices_per_chip=2,
)

GAUDI2 = Accelerator(
    key="gaudi2",
    names=("gaudi2", "gaudi 2", "hl 225"),
    vendor="Intel",
    source="Intel Gaudi 3 white paper, its comparison with Gaudi 2: bf16 432, FP8 865 TFLOP/s; hl-smi (98304 MiB)",
    dense_peak_flops_per_second={"bf16": 432e12, "fp8": 865e12},
    hbm_bytes=96 * GIB,
    fabric="24 x 100 Gbit/s RoCE",
)

GAUDI3 = replace(
    GAUDI2,
    key="gaudi3",
    names=("gaudi3", "gaudi 3", "hl 325"),
    source="Intel Gaudi 3 white paper: bf16 and FP8 1835 TFLOP/s, 128 GB at 3.7 TB/s; hl-smi (131072 MiB)",
    dense_peak_flops_per_second={"bf16": 1835e12, "fp8": 1835e12},
    hbm_bytes=128 * GIB,
    fabric="24 x 200 Gbit/s RoCE",
)

M4_MAX = Accelerator(
    key="m4-max",
    names=("m4 max",),
    vendor="Apple",
    source="Apple, M4 Max announcement, October 2024: up to 40 GPU cores, up to 128 GB at 546 GB/s",
    fabric="none",
    no_peak="Apple publishes no FLOP/s for its GPUs; the figures in circulation are other people's estimates",
)

CPU = Accelerator(
    key="cpu",
    names=("cpu",),
    vendor="any",
    source="a class of machines and no product",
    no_peak="a processor's peak depends on model, cores and clock, none of which this name states",
)

__all__ = ["ACCELERATORS", "Accelerator", "dtype_of", "find_accelerator"]

ACCELERATORS: tuple[Accelerator, ...] = (
    *NVIDIA,
    *(MI300X, MI325X, MI355X, GAUDI2, GAUDI3, TPU_V4, TPU_V5E, TPU_V5P, TPU_V6E, TPU_V7, M4_MAX, CPU),
)


@lru_cache(maxsize=256)
def find_accelerator(name: str | None) -> Accelerator | None:
    """The accelerator that free text names, else None.

    It knows "NVIDIA H200 143771MiB", "TPU v6 lite", "v6e-8" and "8xH200". Text that names two of them, a
    slice of one, or another form of the same chip, names none.
    """
    words = _name_words(name or "")
    spans = [
        (start, start + len(alias), accelerator)
        for accelerator in ACCELERATORS
        for alias in (_name_words(alias) for alias in (accelerator.key, *accelerator.names))
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


def _name_words(text: str) -> tuple[str, ...]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    # "8xH200" and "H200x8" count machines; the count is not part of the name.
    return tuple(re.sub(r"^\d+x(?=[a-z])|(?<=\d)x\d+$", "", word) for word in words)
