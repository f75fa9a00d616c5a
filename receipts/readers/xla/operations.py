"""What an operation of an XLA program computes: matrix multiplications, and kernels behind custom calls.

Kernels behind custom calls: which name proves which attention or matrix multiplication, and which only look alike. A
``tpu_custom_call`` is any Mosaic kernel (`lax.ragged_dot` makes two); it proves attention by its kernel's name alone.
Names: jax.experimental.pallas.ops, tokamax and MaxText on TPU; XLA's cuDNN rewriter; Transformer Engine's FFI
targets.

Matrix multiplications of a program: the types that they really take, and attention that was left unfused. The
operands' types are those of the multiplication itself: an fp8 array that is converted before it is multiplied in bf16
is a bf16 multiplication.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from typing import Final

from receipts.ingest.device_profile import MIN_TYPE_SHARE
from receipts.receipt.names import dtype as named_dtype

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


MAX_SHAPES: Final = 20_000
MIN_SEQUENCE: Final = 16
_SHAPE: Final = re.compile(r"([a-z]\w{0,20})\[([\d,<= ]{0,200})\]")
_COMPLEX: Final = frozenset({"c64", "c128"})
# Indices elsewhere; where they are multiplied, a compiler without narrower integer products has widened the operands.
_INTEGERS: Final = {"s32": "int32", "u32": "int32"}
# The wider one of two operands decides what is computed.
_WIDTHS: Final = ("fp64", "c128", "c64", "fp32", "int32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4")
_NARROW: Final = ("fp8", "int8", "fp6", "fp4", "int4")


def shape(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Type and extents of ``bf16[4,2048,128]{2,1,0}``; None for tuples, tokens and what is elided."""
    match = _SHAPE.match(text)
    if match is None:
        return None
    parts = [part.strip(" <=") for part in match[2].split(",") if part.strip()]
    if not all(part.isdigit() and len(part) < 16 for part in parts):
        return None
    return match[1], tuple(int(part) for part in parts)


def dtype(element: str) -> str | None:
    """The name of an element type in receipts: ``f8e4m3fn`` is fp8, ``s8`` int8; None for indices and masks."""
    return element if element in _COMPLEX else named_dtype(element)


class Dots:
    """The multiplications of all modules of a file."""

    def __init__(self) -> None:
        self.count = 0
        self._work: dict[str, float] = {}
        # What may be scores of attention: products, exponentials of a softmax, and what its two reductions take.
        self._scores: dict[str, set[tuple[int, int]]] = {"product": set(), "exponential": set(), "reduction": set()}
        # The same of one head of one sequence, which is multiplied as any matrix is.
        self._squares: dict[str, set[int]] = {"product": set(), "exponential": set(), "reduction": set()}
        self.batched = False

    def multiply(self, out: str, left: str | None, right: str | None) -> None:
        """One multiplication by the types of its result and its operands."""
        result = shape(out)
        operands = [extents for text in (left, right) if text is not None and (extents := shape(text)) is not None]
        if result is None or len(operands) < 2:
            return
        self.count += 1
        names = [name for element, _ in operands if (name := dtype(element) or _INTEGERS.get(element)) is not None]
        if len(names) == 2:
            name = min(names, key=_WIDTHS.index)
            # M·N·K of a plain product: the root of the three arrays' sizes multiplied.
            work = math.sqrt(_elements(result[1])) * math.sqrt(_elements(operands[0][1]))
            self._work[name] = self._work.get(name, 0.0) + work * math.sqrt(_elements(operands[1][1]))
        self.note("product", out)

    def note(self, step: str, text: str | None) -> None:
        """Keep what may be scores: two equal extents of a sequence's length, and at least one of heads or batch.

        By that length and the number of elements: torch_xla multiplies with batch and heads in one extent, and takes
        the softmax with them apart.
        """
        array, known = shape(text) if text is not None else None, self._scores[step]
        if array is None or len(known) >= MAX_SHAPES:
            return
        if len(extents := array[1]) < 3:
            self._squares[step].update(extents[:1] if len(set(extents)) == 1 else ())
            return
        for one, other in itertools.combinations(sorted(extents), 2):
            # A product for groups of query heads has them and the sequence in one extent.
            if one >= MIN_SEQUENCE and (one == other or (step == "product" and not other % one)):
                known.add((one, math.prod(extents)))

    @property
    def unfused(self) -> bool:
        """Whether scores of every position with every other one were computed, raised and summed as whole arrays."""
        return bool(set.intersection(*self._scores.values()))

    @property
    def attends(self) -> bool:
        """Whether products of two activations may be scores: several at once, or square ones that are raised."""
        return self.batched or bool(self._squares["product"] & self._squares["exponential"])

    @property
    def types(self) -> tuple[str, ...]:
        """The types that carry the work, the largest share first."""
        total = sum(self._work.values())
        ranked = sorted(self._work.items(), key=lambda item: -item[1])
        return tuple(name for name, work in ranked if total and work >= MIN_TYPE_SHARE * total)


def first_narrow(names: Iterable[str]) -> str | None:
    """The first of these that is narrower than two bytes."""
    return next((name for name in names if name in _NARROW), None)


def _elements(extents: tuple[int, ...]) -> float:
    return math.prod(float(extent) for extent in extents)
