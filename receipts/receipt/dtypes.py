"""Number types: one name for each, its bytes per element, and how sources spell it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


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
