"""Named formulas of sizing arithmetic, each with its inputs, its unit and its source.

A claim of kind `arithmetic` names one; nothing is measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from receipts.base.units import BYTES, SECONDS, read_printed
from receipts.receipt.names import DTYPES, dtype_of

Dimension = Literal["bytes", "fraction", "count"]
_COUNT_BYTES: Final = 4  # a routed token is counted in int32
_SHARDED_BY_SP: Final = 10  # bytes a token and hidden unit that plain tensor parallelism keeps whole, in 16 bits


@dataclass(frozen=True, slots=True)
class ArithmeticFormula:
    """A formula of numbers. ``inputs`` by name with what each is; ``optional`` inputs have the value given.

    ``units`` are the words that may follow a number of dimension *count*. ``expression`` is how people write it.
    """

    name: str
    inputs: Mapping[str, str]
    dimension: Dimension
    expression: str
    source: str
    function: Callable[..., float]
    units: tuple[str, ...] = ()
    optional: tuple[tuple[str, float], ...] = ()

    def value(self, **inputs: float) -> float:
        """The result in bytes, as a fraction, or as a count. Raises ValueError for an input that is out of range."""
        for name, number in inputs.items():
            if not math.isfinite(number) or number <= 0:
                raise ValueError(f"{name} is {number:g}, and must be above 0")
        return self.function(**{**dict(self.optional), **inputs})


def capacity(tokens: float, top_k: float, experts: float, capacity_factor: float) -> int:
    """Rows that an expert takes: ceil(tokens · k / experts · factor). 4,096 tokens, 2 of 128 and 1.2 make 77.

    Lepikhin et al. 2021, GShard, arXiv:2006.16668, section 2.2; Fedus et al. 2022, Switch, arXiv:2101.03961, section
    2.2, equation 3.
    """
    return math.ceil(tokens * top_k / experts * capacity_factor)


def steps_to_share(compile_seconds: float, step_seconds: float, share: float) -> int:
    """Steps after which ``compile_seconds`` are at most ``share`` of compile and steps: c / (c + n · s) ≤ share."""
    return math.ceil(compile_seconds * (1.0 - share) / (share * step_seconds) - 1e-9)


def _share(whole: float, ways: float, what: str, by: str = "ranks") -> float:
    if whole % ways:
        raise ValueError(f"{whole:g} {what} cannot be shared evenly by {ways:g} {by}")
    return whole / ways


def _utilization(tokens_per_second_per_chip: float, flops_per_token: float, peak_flops_per_second: float) -> float:
    share = tokens_per_second_per_chip * flops_per_token / peak_flops_per_second
    if share > 1.0:
        raise ValueError(f"{share:.4g} is above the peak: state tokens a second of one chip")
    return share


def _buffer(tokens: float, top_k: float, experts: float, capacity_factor: float, **wide: float) -> float:
    rows = capacity(tokens, top_k, experts, capacity_factor)
    return rows * wide["hidden"] * wide["local_experts"] * wide["dtype"]


_ROUTED: Final = {"tokens": "tokens of one rank", "top_k": "experts a token", "experts": "experts of the block"}
_CAPACITY: Final = _ROUTED | {"capacity_factor": "capacity factor"}
_BUFFER: Final = _CAPACITY | {
    "hidden": "hidden width", "local_experts": "experts of one rank", "dtype": "type of an element",
}  # fmt: skip
_PARAMETERS: Final = {"parameters": "parameters", "dtype": "type of an element"}
_COLLECTIVE: Final = {"size": "bytes of the whole buffer", "ranks": "ranks of the group"}
_RING: Final = "Patarasuk and Yuan 2009, JPDC 69(2), bandwidth optimal all-reduce: bytes that each rank sends"
_GSHARD: Final = "Lepikhin et al. 2021, GShard, arXiv:2006.16668, section 2.2"
_ZERO: Final = "Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3.1"

_ALL: Final = (
    ArithmeticFormula(
        "gradient-bytes", _PARAMETERS, "bytes", "parameters · bytes of the type", _ZERO,
        lambda parameters, dtype: parameters * dtype,
    ),
    ArithmeticFormula(
        "parameter-bytes", _PARAMETERS, "bytes", "parameters · bytes of the type", _ZERO,
        lambda parameters, dtype: parameters * dtype,
    ),
    ArithmeticFormula(
        "adam-state-bytes", {"parameters": "parameters"}, "bytes", "12 · parameters (fp32 master and two moments)",
        _ZERO, lambda parameters: 12 * parameters,
    ),
    ArithmeticFormula(
        "all-reduce-bytes", _COLLECTIVE, "bytes", "2 · (ranks − 1) / ranks · size", _RING,
        lambda size, ranks: 2 * (ranks - 1) / ranks * size,
    ),
    ArithmeticFormula(
        "reduce-scatter-bytes", _COLLECTIVE, "bytes", "(ranks − 1) / ranks · size", _RING,
        lambda size, ranks: (ranks - 1) / ranks * size,
    ),
    ArithmeticFormula(
        "all-gather-bytes", _COLLECTIVE, "bytes", "(ranks − 1) / ranks · size", _RING,
        lambda size, ranks: (ranks - 1) / ranks * size,
    ),
    ArithmeticFormula(
        "kv-cache-bytes",
        {
            "layers": "layers that attend", "kv_heads": "key-value heads", "head_dim": "width of a head",
            "tokens": "tokens held, of all sequences", "dtype": "type of a value",
        },
        "bytes", "2 · layers · kv_heads · head_dim · tokens · bytes of the type",
        "Shazeer 2019, arXiv:1911.02150, section 2.4; Ainslie et al. 2023, arXiv:2305.13245",
        lambda layers, kv_heads, head_dim, tokens, dtype: 2 * layers * kv_heads * head_dim * tokens * dtype,
    ),
    ArithmeticFormula(
        "latent-cache-bytes",
        {
            "layers": "layers that attend", "kv_lora_rank": "width of the latent vector",
            "qk_rope_head_dim": "width of the shared key with positions",
            "tokens": "tokens held, of all sequences", "dtype": "type of a value",
        },
        "bytes", "layers · (kv_lora_rank + qk_rope_head_dim) · tokens · bytes of the type",
        "DeepSeek-V2 2024, arXiv:2405.04434, section 2.1.4",
        lambda layers, kv_lora_rank, qk_rope_head_dim, tokens, dtype: (
            layers * (kv_lora_rank + qk_rope_head_dim) * tokens * dtype
        ),
    ),
    ArithmeticFormula(
        "mfu",
        {
            "tokens_per_second_per_chip": "tokens a second of one chip", "flops_per_token": "model FLOPs a token",
            "peak_flops_per_second": "dense peak FLOP/s of a chip",
        },
        "fraction", "tokens_per_second_per_chip · flops_per_token / peak_flops_per_second",
        "Chowdhery et al. 2022, arXiv:2204.02311, appendix B", _utilization,
    ),
    ArithmeticFormula(
        "pipeline-bubble",
        {"stages": "pipeline stages", "micro_batches": "micro batches", "virtual": "virtual stages a rank"},
        "fraction", "(stages − 1) / (virtual · micro_batches + stages − 1)",
        "Narayanan et al. 2021, arXiv:2104.04473, section 2.2, as a share of the step",
        lambda stages, micro_batches, virtual: (stages - 1) / (virtual * micro_batches + stages - 1),
        optional=(("virtual", 1.0),),
    ),
    ArithmeticFormula(
        "local-tokens", {"sequence": "tokens a sequence", "context": "context ranks"}, "count", "sequence / context",
        "Megatron-Core, context_parallel.md", lambda sequence, context: _share(sequence, context, "tokens"),
        ("tokens",),
    ),
    ArithmeticFormula(
        "local-heads", {"heads": "heads", "tensor": "tensor ranks"}, "count", "heads / tensor",
        "Shoeybi et al. 2019, arXiv:1909.08053, section 3", lambda heads, tensor: _share(heads, tensor, "heads"),
        ("heads",),
    ),
    ArithmeticFormula(
        "local-width",
        {"heads": "heads", "head_dim": "width of a head", "tensor": "tensor ranks"},
        "count", "heads / tensor · head_dim", "Shoeybi et al. 2019, arXiv:1909.08053, section 3",
        lambda heads, head_dim, tensor: _share(heads, tensor, "heads") * head_dim, ("dimensions", "dims", "columns"),
    ),
    ArithmeticFormula(
        "local-layers",
        {"layers": "layers", "pipeline": "pipeline stages", "virtual": "virtual stages a rank"},
        "count", "layers / (pipeline · virtual)",
        "Narayanan et al. 2021, arXiv:2104.04473, section 2.2: layers of one stage, virtual ones counted apart",
        lambda layers, pipeline, virtual: _share(layers, pipeline * virtual, "layers", "stages"), ("layers",),
        (("virtual", 1.0),),
    ),
    ArithmeticFormula(
        "local-experts", {"experts": "experts", "expert": "expert ranks"}, "count", "experts / expert", _GSHARD,
        lambda experts, expert: _share(experts, expert, "experts"), ("experts",),
    ),
    ArithmeticFormula(
        "sequence-parallel-saving", {"tensor": "tensor ranks"}, "fraction", "1 − 1 / tensor",
        "Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2: of norm, dropout and residual activations",
        lambda tensor: 1.0 - 1.0 / tensor,
    ),
    ArithmeticFormula(
        "sequence-parallel-bytes",
        {"tokens": "tokens of a micro batch", "hidden": "hidden width", "tensor": "tensor ranks", "layers": "layers"},
        "bytes", "10 · tokens · hidden · (1 − 1 / tensor) · layers",
        "Korthikanti et al. 2022, arXiv:2205.05198, equations 2 and 4, in 16 bits",
        lambda tokens, hidden, tensor, layers: _SHARDED_BY_SP * tokens * hidden * (1.0 - 1.0 / tensor) * layers,
        optional=(("layers", 1.0),),
    ),
    ArithmeticFormula(
        "expert-capacity", _CAPACITY, "count", "ceil(tokens · top_k / experts · capacity_factor)", _GSHARD, capacity,
        ("rows", "tokens"),
    ),
    ArithmeticFormula(
        "dispatch-counts", {name: _ROUTED[name] for name in ("tokens", "top_k")}, "bytes", "4 · tokens · top_k",
        _GSHARD, lambda tokens, top_k: _COUNT_BYTES * tokens * top_k,
    ),
    ArithmeticFormula(
        "routing-buffer", _BUFFER, "bytes", "expert-capacity · hidden · local_experts · bytes of the type", _GSHARD,
        _buffer,
    ),
    ArithmeticFormula(
        "routing-scratch", _BUFFER, "bytes", "dispatch-counts + 2 · routing-buffer", _GSHARD,
        lambda tokens, top_k, **rest: (
            _COUNT_BYTES * tokens * top_k + 2 * _buffer(tokens=tokens, top_k=top_k, **rest)
        ),
    ),
    ArithmeticFormula(
        "global-batch",
        {"micro_batch": "sequences a rank", "data": "data ranks", "accumulation": "micro steps a step"},
        "count", "micro_batch · data · accumulation", "Li et al. 2020, PyTorch Distributed, arXiv:2006.15704",
        lambda micro_batch, data, accumulation: micro_batch * data * accumulation, ("sequences", "samples"),
        (("accumulation", 1.0),),
    ),
    ArithmeticFormula(
        "amortization-steps",
        {"compile_seconds": "compile", "step_seconds": "one step", "share": "share of the wall time"},
        "count", "compile_seconds · (1 − share) / (share · step_seconds)", "c / (c + n · s) = share, solved for n",
        steps_to_share, ("steps",), (("share", 0.01),),
    ),
)  # fmt: skip
ARITHMETIC: Final[Mapping[str, ArithmeticFormula]] = MappingProxyType({item.name: item for item in _ALL})


# What an input is, if it is not a count, and the units that may stand behind its number.
_KINDS: Final = {"size": "bytes", "share": "share", "compile_seconds": "seconds", "step_seconds": "seconds"} | {
    "tokens_per_second_per_chip": "rate",
    "flops_per_token": "work",
    "peak_flops_per_second": "speed",
}
_SECOND: Final = r"(?:/|\s(?:per|a)\s)s(?:ec(?:ond)?)?"
_UNITS: Final = {
    "rate": (rf"[kKM]?\s?(?:tok(?:en)?s?{_SECOND}(?:(?:/|\sper\s)(?:chip|GPU|device))?)?", "8.4k tok/s"),
    "work": (r"[MGTP]?(?:FLOPs?|FLOPS)?(?:(?:/|\s(?:per|a)\s)tok(?:en)?)?", "48.5 GFLOP"),
    "speed": (rf"[GTP]?(?:FLOPS|FLOPs?{_SECOND})?", "989 TFLOP/s"),
    "share": ("%?", "1 %"),
}
_NOUNS: Final = {"sequence": "tokens?", "parameters": "param(?:eter)?s?", "ranks": "ranks|GPUs|chips|devices"}
# Of these no letter is a power of two: 125M parameters are 125,000,000.
DECIMAL: Final = frozenset({"parameters", *_KINDS}) - {"size"}


def is_bytes(name: str) -> bool:
    """Whether an input is an amount of bytes, in which a `B` is a byte and no billion."""
    return _KINDS.get(name) == "bytes"


def input_value(name: str, given: float | str) -> float:
    """An input as a number; a ``dtype`` is the bytes of its element.

    Raises ValueError if it cannot be read or its unit is that of something else.
    """
    if name == "dtype":
        known = dtype_of(str(given).lower())
        if known is None:
            raise ValueError(f"{given!r} is not an element type; write bf16, fp32, fp8")
        return DTYPES[known].bytes
    if not isinstance(given, str):
        return float(given)
    printed = read_printed(given)
    if printed is None:
        raise ValueError(f"{given!r} is not one number")
    kind = _KINDS.get(name, "count")
    if kind in ("bytes", "seconds"):
        table = BYTES if kind == "bytes" else SECONDS
        if printed.unit not in table:
            raise ValueError(f"{given!r} is not in {kind}; write {'140 GB' if kind == 'bytes' else '90 s'}")
        return printed.mantissa * table[printed.unit]
    noun = _NOUNS.get(name, rf"{name.rstrip('s').replace('_', '[ -]')}s?")
    units, example = _UNITS.get(kind, (rf"(?:[kKMGTB]|[KMGT]i)?\s?(?:{noun})?", "a number such as 128 or 128K"))
    if not re.fullmatch(units, printed.unit):
        raise ValueError(f"{given!r} has the unit of something else; write {example}")
    return printed.value
