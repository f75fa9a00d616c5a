"""Names and their spellings: number types, and what computes.

A type has one name, its bytes per element, and the words of several sources. The words of `path` leaves are split and
matched: a stack with several kinds of attention states them together (``te_fused+dsa_tilelang``), and sources write
``te bf16`` and ``te_bf16`` for one thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from receipts.receipt import Parsed


class Dtype(NamedTuple):
    """A number type: bytes per element, the words that name it in free text, and what programs alone print.

    The first words, up to ``exact``, mean exactly this type: a source that states one of them states the name. The
    others are forms of it: MXFP8 and NVFP4 are block-scaled forms of FP8 and FP4 and run at their rates.
    """

    bytes: float
    words: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    exact: int = 0


DTYPES: Final[Mapping[str, Dtype]] = MappingProxyType(
    {
        "bf16": Dtype(2.0, ("bfloat16", "bf16"), exact=1),
        "fp16": Dtype(2.0, ("float16", "half", "fp16", "f16"), ("half_t", "__half"), exact=2),
        "fp32": Dtype(4.0, ("float32", "fp32", "f32"), ("float",), exact=1),
        "tf32": Dtype(4.0, ("tf32",), ("tfloat32",)),
        # No matrix unit that is known here has a peak for the types without words.
        "fp64": Dtype(8.0, (), ("float64", "fp64", "f64", "double"), exact=1),
        "fp8": Dtype(1.0, ("fp8", "float8", "mxfp8", "e4m3", "e4m3fn", "e5m2"), ("float_e4m3", "float_e5m2")),
        "fp6": Dtype(0.75, ("fp6", "mxfp6")),
        "fp4": Dtype(0.5, ("fp4", "nvfp4", "mxfp4"), ("e2m1", "float_e2m1")),
        "int8": Dtype(1.0, ("int8", "s8"), ("i8", "u8", "uint8", "int8_t")),
        "int4": Dtype(0.5, (), ("int4", "s4", "u4")),
        "int32": Dtype(4.0, (), ("int32",)),
        "int64": Dtype(8.0, (), ("int64",)),
    }
)
_WORDS: Final = {word: name for name, dtype in DTYPES.items() for word in dtype.words}
_SYMBOLS: Final = _WORDS | {symbol: name for name, dtype in DTYPES.items() for symbol in dtype.symbols}
# The narrow floats of HLO and torch have many encodings: `f8e4m3b11fnuz`, `float8_e5m2fnuz`, `f4e2m1fn`.
_NARROW: Final = re.compile(r"f(?:loat)?([468])_?e\d+m\d+\w*")


def dtype_of(text: str | None) -> str | None:
    """The name of a type (`bf16`, `fp8`, …) from free text; None if it names none, or several.

    ``FP8 tensorwise`` is `fp8`; ``BF16 + FP8 indexer`` has no single peak, so it is None.
    """
    names = named(text or "")
    return next(iter(names)) if len(names) == 1 else None


def named(text: str) -> frozenset[str]:
    """The types that free text names: ``BF16 + FP8 indexer`` is bf16 and fp8."""
    return frozenset(_WORDS[word] for word in re.findall(r"[a-z0-9]+", text.lower()) if word in _WORDS)


def dtype(symbol: str) -> str | None:
    """The name of a type as a program prints it: `torch.bfloat16`, `c10::Half`, `f8e4m3fn`, `s8`; else None."""
    word = re.split(r"[.:]", symbol.lower())[-1]
    narrow = _NARROW.fullmatch(word)
    return f"fp{narrow[1]}" if narrow else _SYMBOLS.get(word)


def spellings(name: str) -> tuple[str, ...]:
    """What means exactly this type where a source states one, the name itself left out."""
    known = DTYPES[name]
    words = (known.words or known.symbols)[: known.exact]
    return (*words, *(f"torch.{word}" for word in words))


NOTHING = frozenset({"none", "off"})
# Whoever asks for these leaves the choice to the framework: any permitted path is what was asked for.
ANYTHING = frozenset({"auto", "autoselected", "default"})
WITNESSED = "path.witnessed"
# Before a leaf's path, in what a piece of evidence observed: why that leaf has its value.
CAUSE = "cause of "
_SOURCES = 2
# A scalar that the host asked for, as torch_xla counts it: the path was kept, and R303 judges what it cost.
HOST_READ = "aten::_local_scalar_dense"
# The names of what computes, each with its other spellings by the sources that use them. Sources have names of their
# own besides (`dsa_tilelang`): a lane lists what it permits, and a name that is in neither is kept as it is.
NAMES: dict[str, tuple[str, ...]] = {
    "sdpa_flash": ("sdpa_flash_attention",),
    "sdpa_math": ("math", "sdpa_unfused"),
    "mem_efficient": ("sdpa_efficient", "sdpa_mem_efficient", "efficient_attention"),
    "cudnn_sdpa": ("sdpa_cudnn",),
    "flash2": ("flash_attention_2", "fa2"),
    "flash3": ("flash_attention_3", "fa3"),
    "flash4": ("flash_attention_4", "fa4"),
    "flex": ("flex_attention",),
    "varlen": (),
    "te_fused": (),
    "te_fused_fp8": (),
    "te_flash": ("te_flash2", "te_flash3", "te_flash4"),  # its log names no version; the wheel does
    "te_unfused": (),
    "cudnn_fmha": (),
    "pallas_flash": (),
    "pallas_splash": (),
    "xla_unfused": (),
    "torch-xla": ("torch_xla",),
    "alltoall": ("all_to_all",),
    "allgather": ("all_gather",),
    "deepep": ("deep_ep",),
    "hybridep": ("hybrid_ep",),
    # Overlaps: the work that is hidden, and the options of Megatron and NeMo that ask for it.
    "tp_comm": ("tp_comm_overlap", "ub_tp_comm_overlap", "userbuffers"),
    "grad_reduce": ("overlap_grad_reduce",),
    "param_gather": ("overlap_param_gather",),
    "param_gather_with_optimizer_step": ("overlap_param_gather_with_optimizer_step",),
    "p2p_comm": ("overlap_p2p_comm",),
    "moe_expert_parallel_comm": ("overlap_moe_expert_parallel_comm",),
    "moe_shared_expert": ("moe_shared_expert_overlap",),
}
# Who asks for the first leaves it to the framework which of the others it is.
CHOICES: dict[str, frozenset[str]] = {"flex": frozenset({"deepep", "hybridep"})}
# Overlaps that kernels of their own show. Of others, a witness that names these alone says nothing.
OVERLAPS_OF_KERNELS = frozenset({"tp_comm"})
NAMES_AND_TYPES = NAMES | {name: spellings(name) for name in DTYPES}
SPELLINGS: dict[str, str] = {other: name for name, others in NAMES_AND_TYPES.items() for other in others}
# Where names are compared, the library that hosts a loop is the loop.
_SAME = SPELLINGS | {"megatron-lm": "megatron-core"}


def spelled(path: str, value: Any) -> Any:
    """The value of a leaf with names of the path, or of types, in their one spelling; any other value as it is."""
    if not isinstance(value, str) or (not path.startswith("path.") and not path.endswith("_dtype")):
        return value
    return "+".join(SPELLINGS.get(word.strip().lower(), word) for word in value.split("+"))


def parts(value: Any) -> frozenset[str]:
    """The names in a path leaf, in one spelling; none for ``none`` and ``off``."""
    return _parts(str(value))


@lru_cache(maxsize=1024)
def _parts(text: str) -> frozenset[str]:
    words = (re.sub(r"[\s_]+", "_", word.strip().lower()) for word in re.split(r"[+,;]", text))
    return frozenset(map(_name, words)) - NOTHING - {""}


def _name(word: str) -> str:
    """The one spelling of a word; an option may be written as on its command line, with hyphens."""
    plain = word.lstrip("-").replace("-", "_")
    return _SAME.get(word) or _SAME.get(plain) or (plain if plain in NAMES else word)


def answers(want: Any, got: Any) -> bool:
    """Whether what was seen is what was asked for, or one of the choices that it left open."""
    asked, seen = parts(want), parts(got)
    left_open = frozenset[str]().union(*(CHOICES.get(name, ()) for name in asked))
    return asked == seen or (bool(left_open) and asked - CHOICES.keys() <= seen <= asked | left_open)


def permitted(value: Any, patterns: Iterable[str]) -> bool:
    """Whether every name in the value is one that the patterns list; a value without names is ``none``."""
    listed = tuple(_SAME.get(pattern, pattern) for pattern in patterns)
    names = parts(value) or {"none"}
    return all(any(fnmatchcase(name, pattern.lower()) for pattern in listed) for name in names)


def dtypes(value: Any) -> frozenset[str]:
    """The number types that a text names: ``BF16 + FP8 indexer`` is bf16 and fp8."""
    return named(str(value))


def anything_witnessed(parsed: Parsed) -> bool:
    """Whether any leaf of the witnessed path is stated."""
    return WITNESSED in parsed.flat.sections


def cause(parsed: Parsed, path: str) -> str:
    """Why a leaf has its value, by the evidence that the receipt lists; empty if there is none."""
    listed = [str((item.observed or {}).get(f"{CAUSE}{path}") or "") for item in parsed.receipt.evidence or ()]
    by_line = sorted(dict.fromkeys(filter(None, listed)), key=lambda text: re.search(r":\d", text) is None)
    return "; ".join(by_line[:_SOURCES])
