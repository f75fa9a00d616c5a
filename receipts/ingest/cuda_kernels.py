"""What the name of a CUDA kernel says: the work, the library that did it, the type of its operands.

Names are read by the parts that libraries keep from version to version (namespace, entry point, type letters); tile
sizes, stages and suffixes are never looked at. A name that tells nothing is `other`.

Sources: cuDNN 9 and cuBLAS 12 kernel names in profiler traces of H100 and H200; flash-attention 2.x and
`hopper/`; PyTorch `aten/src/ATen/native/transformers/cuda`; Transformer Engine `common/`; NCCL 2.18 and later
(`ncclDevKernel_…`, before: `ncclKernel_…`); mamba-ssm 2.x `ops/triton`; DeepEP `csrc/kernels`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from receipts.receipt.names import dtype

Work = Literal[
    "attention", "softmax", "gemm", "communication", "overlap", "ssm", "dispatch", "permute", "inductor", "other"
]
_Table = tuple[tuple[Work, str, re.Pattern[str]], ...]
FP8: Final = "fp8"
UNREAD: Final = "unknown"
# Longer names are templates whose beginnings tell everything that is asked here.
_MAX_NAME: Final = 4096


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a kernel is. ``family`` is the implementation in the words of `path`, or of this table where it has none.

    ``dtype`` is the type of the inputs of a matrix multiplication, None where the name does not tell. ``arch`` is the
    compute capability that the kernel was written for (80 for sm80), and ``transformer_engine`` whether only that
    library has this kernel.
    """

    work: Work
    family: str
    dtype: str | None = None
    arch: int | None = None
    transformer_engine: bool = False


OTHER: Final = Kernel("other", "other")

# The first that is found decides: a namespace before the entry points that it shares with another library.
_ATTENTION: Final = (
    (r"pytorch_flash(?:::|\d)", "sdpa_flash"),
    (r"sparse_mla|dsa_(?:fwd|bwd|attn)", "sparse_mla"),
    (r"flash_?mla|splitkv_mla", "flash_mla"),
    (r"flash_attn_?\.?cute|FlashAttention(?:Forward|Backward)Sm1\d\d|flash_(?:fwd|bwd)_sm1\d\d", "flash4"),
    (r"cudnn\w*_(?:sdpa|fmha|mha)_|cudnn\w*flash_[fb]prop|cudnn::fusion::(?:compute_dot_do_o|convert_dq)", "cudnn"),
    (r"FlashAttn(?:Fwd|Bwd)|flash::enable_sm90|flash::prepare_varlen", "flash3"),
    (r"fmha_cutlass[FB]|PyTorchMemEffAttention|attention_kernel_(?:batched|backward_batched)", "mem_efficient"),
    (r"flash_(?:fwd|bwd)_\w*(?:kernel|parallel)|flash::flash_", "flash2"),
    (r"flex_attention", "flex"),
    (r"scaled_(?:\w+_)?softmax_warp_(?:forward|backward)", "te_unfused"),
    (r"\b_?attn_(?:fwd|bwd)\w*", "triton_flash"),
)
_ATTENTION_ANY = re.compile("|".join(f"(?P<a{index}>{pattern})" for index, (pattern, _) in enumerate(_ATTENTION)))

_NCCL = re.compile(r"nccl(?:Sym[km]?)?(?:Dev)?Kernel_?(?P<what>[A-Za-z]+)?")
# What the name of a kernel alone says, in the order in which it is asked; attention is between.
_MOVES: Final[_Table] = (
    ("overlap", "tp_comm", re.compile(r"userbuffers_")),
    ("dispatch", "deepep", re.compile(r"deep_?ep::|internode_ll::")),
    ("dispatch", "hybridep", re.compile(r"hybrid_?ep")),
    (
        *("communication", "symmetric_memory"),
        re.compile(r"multimem_\w*(?:reduce|gather)|(?:one|two)_?shot_?all_?reduce|nvshmemi?_\w*", re.I),
    ),
)
_LAYERS: Final[_Table] = (
    (
        *("softmax", "torch"),
        re.compile(r"softmax_warp_(?:forward|backward)|cunn_SoftMax|SoftMax(?:Forward|Backward)|safe_softmax", re.I),
    ),
    ("ssm", "mamba3", re.compile(r"mamba3|mimo_(?:fwd|bwd)|m2rnn", re.I)),
    ("ssm", "mamba1", re.compile(r"selective_scan_(?:fwd|bwd)")),
    (
        *("ssm", "mamba2"),
        re.compile(r"_chunk_(?:scan|state|cumsum)_|_state_passing_|_bmm_chunk_|ssd_chunk|_selective_scan_update"),
    ),
    ("ssm", "causal_conv1d", re.compile(r"causal_conv1d")),
    (
        *("ssm", "fla"),
        re.compile(r"chunk_(?:gated_)?delta_rule|chunk_gla|fused_recurrent|recompute_w_u|chunk_fwd_kernel_o"),
    ),
    ("ssm", "rwkv", re.compile(r"\bwkv\d?_")),
    (
        *("permute", "moe"),
        re.compile(r"_?(?:un)?permute_(?:with_mask_map_)?kernel|moe_(?:un)?permute|_?sort_chunks_by|_row_id_map"),
    ),
)

_NVJET = re.compile(r"nvjet_(?:sm(?P<arch>\d{2,3})[a-z]?_)?(?P<types>[a-z]{3,6})_")
# The letters of cuBLAS: one for both inputs, or one for each where they are narrow (`qq`).
_LETTERS: Final = {"t": "bf16", "h": "fp16", "s": "fp32", "q": FP8, "d": "fp64"}
_XMMA = re.compile(r"sm(?P<arch>\d{2,3})_xmma_gemm_(?P<types>(?:f32f32_(?=tf32))?[a-z0-9]+)_")
_LEGACY = re.compile(
    r"(?P<chip>maxwell|volta|turing|ampere|ada|hopper|blackwell|cutlass(?:3x)?_(?:sm)?(?P<arch>\d{2,3}))_"
    r"(?P<rest>[\w]*?)(?P<shape>[a-z]*\d*)gemm"
)
_CHIPS: Final = {
    "maxwell": 52,
    "volta": 70,
    "turing": 75,
    "ampere": 80,
    "ada": 89,
    "hopper": 90,
    "blackwell": 100,
}
_TYPE = re.compile(r"tf32|bf16|e4m3|e5m2|e2m1|fp?16|fp?32|fp?64|[iu]8|s8|s4")
# cutlass 3, in templates: the first operand type that is named is that of A.
_TEMPLATE = re.compile(r"float_e(?:4m3|5m2)|float_e2m1|bfloat16|\bhalf_t|__half|tfloat32|int8_t")
_CUTLASS3 = re.compile(r"cutlass::gemm::|cutlass::(?:device_kernel|Kernel2?)<.*[Gg]emm")
_GROUPED = re.compile(r"group(?:ed)?_?(?:gemm|mm)|GemmGrouped|GroupProblemShape|PtrArray|_group_gemm", re.I)
_CUBLAS_REST = re.compile(r"cublasLt|splitKreduce|gemv(?:2[TN]|x|NSP)|gemm[SK]N?_|gemmk1|dot_kernel|cublas")
_ANY_GEMM = re.compile(r"gemm|matmul_kernel|triton_(?:tem_\w*|)mm_|triton_tem_fused_\w*(?:mm|bmm)", re.I)
_INDUCTOR = re.compile(r"triton_(?:poi|red|per|tem|for|mix|sem|unk)_fused")
_TRANSFORMER_ENGINE = re.compile(r"transformer_engine|cast_transpose|\bnvte_")


@lru_cache(maxsize=1 << 15)
def classify(name: str) -> Kernel:
    """What the kernel of this name is, mangled, demangled, cut or whole."""
    text = name[:_MAX_NAME]
    engine = _TRANSFORMER_ENGINE.search(text) is not None
    if match := _NCCL.search(text):
        return Kernel("communication", f"nccl_{(match['what'] or UNREAD).lower()}")
    if kernel := _named(text, _MOVES, engine):
        return kernel
    if match := _ATTENTION_ANY.search(text):
        family = next(name for index, (_, name) in enumerate(_ATTENTION) if match[f"a{index}"] is not None)
        return Kernel("attention", family, transformer_engine=engine)
    if kernel := _named(text, _LAYERS, engine):
        return kernel
    for family, pattern, operand in _GEMMS:
        if (match := pattern.search(text)) is not None:
            groups = match.groupdict()
            arch = int(groups.get("arch") or 0) or _CHIPS.get(groups.get("chip") or "")
            return Kernel("gemm", family, operand(match), arch, engine)
    multiplies = _ANY_GEMM.search(text) is not None
    if _INDUCTOR.search(text):
        return Kernel("gemm", "inductor") if multiplies and "triton_tem" in text else Kernel("inductor", "inductor")
    if multiplies:
        family = "triton" if text.startswith(("triton", "_", "matmul_kernel")) else UNREAD
        return Kernel("gemm", family, _template_type(text), transformer_engine=engine)
    return Kernel("other", "transformer_engine", transformer_engine=True) if engine else OTHER


def _named(text: str, table: _Table, engine: bool) -> Kernel | None:
    for work, family, pattern in table:
        if pattern.search(text):
            # Userbuffers are Transformer Engine's, whatever the name is under.
            return Kernel(work, family, transformer_engine=engine or work == "overlap")
    return None


def _type(text: str) -> str | None:
    # What is stored in f32 and multiplied in tf32 is tf32.
    match = _TYPE.search(text.removeprefix("f32f32_"))
    return dtype(match[0]) if match else None


def _legacy_type(rest: str, shape: str) -> str | None:
    """`bf16_s16816gemm` says bf16, `s1688gemm` alone is tf32, `sgemm` fp32 without tensor cores, `h884gemm` fp16."""
    if dtype := _type(rest):
        return dtype
    if "simt" in rest or not shape[1:]:
        return {"s": "fp32", "d": "fp64", "h": "fp16", "i": "int8"}.get(shape[:1])
    return {"s": "tf32", "d": "fp64", "h": "fp16", "i": "int8"}.get(shape[:1])


def _template_type(text: str) -> str | None:
    match = _TEMPLATE.search(text)
    return dtype(match[0]) if match else _type(text)


def _in_template(match: re.Match[str]) -> str | None:
    return _template_type(match.string)


def _fp8(match: re.Match[str]) -> str:
    return FP8


_TENSILE = re.compile(r"Cijk_A[a-z]{2,4}_B[a-z]{2,4}_(?P<types>[FB]8|I8|[BHSDX])")
_TENSILE_TYPES: Final = dict(
    zip(("F8", "B8", "I8", *"BHSDX"), (FP8, FP8, "int8", "bf16", "fp16", "fp32", "fp64", "tf32"), strict=True)
)
# Matrix multiplications with the library that made them, and how the type of their inputs is named.
_GEMMS: Final[tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str | None]], ...]] = (
    ("cublas", _NVJET, lambda match: _LETTERS.get(match["types"][0])),
    ("cublas", _XMMA, lambda match: _type(match["types"])),
    # AMD's: rocBLAS and hipBLASLt take their kernels from Tensile.
    ("tensile", _TENSILE, lambda match: _TENSILE_TYPES[match["types"]]),
    ("deep_gemm", re.compile(r"deep_gemm|fp8_gemm|sm\d+_fp8_gemm|fp8_\w*matmul"), _fp8),
    # torch's own scaled multiplication by rows, which torchao calls: written with cutlass.
    ("cutlass", re.compile(r"f8f8bf16"), _fp8),
    ("cublas", _LEGACY, lambda match: _legacy_type(match["rest"], match["shape"])),
    ("grouped", _GROUPED, _in_template),
    ("cutlass", _CUTLASS3, _in_template),
    ("cublas", _CUBLAS_REST, _in_template),
)
