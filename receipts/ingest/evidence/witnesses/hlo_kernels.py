"""Kernels behind custom calls: which name proves which attention or matrix multiplication, and which only look alike.

A ``tpu_custom_call`` is any Mosaic kernel (`lax.ragged_dot` makes two); it proves attention by its kernel's name alone.
Names: jax.experimental.pallas.ops, tokamax and MaxText on TPU; XLA's cuDNN rewriter; Transformer Engine's FFI targets.
"""

from __future__ import annotations

import re
from typing import Final

MOSAIC: Final = "tpu_custom_call"
# Kernels of Pallas on GPU arrive under these names.
TRITON: Final = ("__gpu$xla.gpu.triton", "triton_kernel_call", "mosaic_gpu", "mosaic_gpu_v2")
_SPLASH: Final = re.compile(r"splash_(?:mha|mqa|attention)|_splash_attention|splash_attn")
_FLASH: Final = re.compile(r"flash_attention|flash_mha|flash_attn|\bmha_(?:forward|backward|preprocess)")
# XLA wrote `fhma` in 2023.
_CUDNN: Final = re.compile(r"__cudnn\$f(?:mh|hm)a|cudnn_fmha|dot_product_attention_(?:fwd|bwd)\b")
_TE_ATTENTION: Final = re.compile(r"te_fused_attn_(?:forward|backward)")
_TE_GEMM: Final = re.compile(r"te_(?:grouped_|quantized_)?(?:gemm|grouped_gemm)")
_CUBLAS: Final = re.compile(r"__cublas\$(?:gemm|lt\$matmul|lt\$groupedMatmul)|__onednn\$matmul|__triton_gemm")
_HOST: Final = re.compile(r"(?:xla_(?:ffi_)?(?:partitioned_)?python_[cg]pu_callback)|xla_python_callback|host_callback")


def attention(target: str, names: str) -> str | None:
    """The attention that a custom call proves: ``names`` holds its instruction's, its kernel's and its op's name."""
    if target == MOSAIC or target in TRITON:
        if _SPLASH.search(names):
            return "pallas_splash"
        return "pallas_flash" if _FLASH.search(names) else None
    if _CUDNN.search(target):
        return "cudnn_fmha"
    return "te_fused" if _TE_ATTENTION.search(target) else None


def multiplies(target: str) -> bool:
    """Whether this is a matrix multiplication of a library, whose first two operands it multiplies."""
    return bool(_CUBLAS.match(target) or _TE_GEMM.match(target))


def rewritten(target: str) -> bool:
    """Whether the compiler itself puts this call in a product's place; frameworks do not write it."""
    return bool(_CUBLAS.match(target))


def library(target: str) -> str:
    """Whose multiplication `multiplies` found: cublas, onednn, te, or the compiler's own (xla)."""
    if _TE_GEMM.match(target):
        return "te"
    return next((name for name in ("cublas", "onednn") if name in target), "xla")


def calls_host(target: str) -> bool:
    """Whether this runs Python on the host inside the program."""
    return bool(_HOST.search(target))
