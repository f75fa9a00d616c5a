"""What a profile shows of its devices: their names, kernels and operators, communication alone, printed tables.

The GPUs that a profile names.

Time in which a device only communicates: NCCL kernels run, and no kernel that computes.

Kernels and operators, counted by what they are, and what follows for the path.

Tables that profilers print: a head, a line of dashes that shows the columns, rows of numbers and one name.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, repeat
from typing import Any, ClassVar, Final

from receipts.base.units import SECONDS
from receipts.ingest.cuda_kernels import FP8, Kernel, classify
from receipts.ingest.literals import number
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.receipt.names import dtype


def state_gpus(reading: Reading, gpus: Iterable[tuple[Any, Any, Any]], record: str) -> int | None:
    """State the accelerator, where all have one name, by names and compute capabilities (``9, 0``).

    Gives the capability as one number, 90; None where it is not shown, or not one.
    """
    rows = list(gpus)
    names = sorted({str(name)[:100] for name, _, _ in rows if name})
    if len(names) == 1:
        reading.state("hardware.accelerator", names[0], names[0], record=record)
    arches = {10 * major + minor for _, major, minor in rows if isinstance(major, int) and isinstance(minor, int)}
    return arches.pop() if len(arches) == 1 else None


# 16 bytes each; a trace of a gigabyte holds about a million kernels.
MAX_SPANS: Final = 4_000_000
_SORTED: Final = 1 << 17  # numbers that are sorted at once


class Timeline:
    """Kernels of several devices as spans of time, in any order. ``lost`` spans were too many to keep."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, bool], array[float]] = {}
        self._kept = 0
        self.lost = 0

    def add(self, device: int, begin: float, duration: float, *, communicates: bool) -> None:
        """A kernel on ``device``; times in one unit, whichever it is."""
        if self._kept >= MAX_SPANS:
            self.lost += 1
            return
        self._kept += 1
        spans = self._spans.get((device, communicates))
        if spans is None:
            spans = self._spans[device, communicates] = array("d")
        spans.append(begin)
        spans.append(begin + max(duration, 0.0))

    @property
    def communicates(self) -> bool:
        """Whether any communication was seen."""
        return any(kind for _, kind in self._spans)

    def exposed(self) -> dict[int, float]:
        """By device: the time of communication that no computation covers, in the unit of `add`."""
        pairs = {
            device: (spans, self._spans.get((device, False), array("d")))
            for (device, communicates), spans in self._spans.items()
            if communicates
        }
        # What all kernels cover, less what those that compute cover.
        return {device: covered(apart + computed) - covered(computed) for device, (apart, computed) in pairs.items()}


def event_arguments(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says beside its name and times."""
    values = event.get("args")
    return values if isinstance(values, dict) else {}


def _sorted(start: int, flat: array[float]) -> Iterator[tuple[float, float]]:
    """Some spans in their order. Sorted at once, those of a long trace would take ten times the memory."""
    part = flat[start : start + _SORTED]
    part = array("d", chain.from_iterable(sorted(zip(part[::2], part[1::2], strict=True))))
    return zip(part[::2], part[1::2], strict=True)


def covered(flat: array[float]) -> float:
    """The length of the union of spans."""
    covered, reach = 0.0, -math.inf
    for begin, end in merge(*map(_sorted, range(0, len(flat), _SORTED), repeat(flat))):
        # A span adds what it reaches beyond all that began before it.
        if end > reach:
            covered += end - max(begin, reach)
            reach = end
    return covered


# A type with less of the multiplications' work is no compute type (a mask, a norm, a scalar's product).
MIN_TYPE_SHARE: Final = 0.10
# What another family's kernels are called where Transformer Engine launches them.
_UNDER_ENGINE: Final = {"cudnn": "te_fused", "flash2": "te_flash", "flash3": "te_flash", "flash4": "te_flash"}
_ALONE: Final = {"cudnn": "cudnn_sdpa"}
_SSM_ONLY_HELPER: Final = "causal_conv1d"
# FP8 multiplications are helpers below this share of the time.
_NARROW_SHARE: Final = 0.05
_HALF: Final = frozenset({"bf16", "fp16"})
_WHOLE: Final = frozenset({"fp64", "fp32", "tf32"})
_SDPA = re.compile(r"aten::_(?:scaled_dot_product_(?:fused_)?)(?P<what>\w+)")
_SDPA_NAMES: Final = {
    "flash_attention": "sdpa_flash",
    "flash_attention_for_cpu": "sdpa_flash",
    "efficient_attention": "mem_efficient",
    "cudnn_attention": "cudnn_sdpa",
    "attention_math": "math",
    "attention_math_for_mps": "math",
}
_ENGINE_OPS: Final = re.compile(
    r"(?:_?LayerNorm(?:Linear|MLP)|_Linear|_GroupedLinear|FusedAttnFunc\w*|AttnFuncWithCP\w*|UnfusedDotProductAttention"
    r"|tex::\w+|transformer_engine\w*::\w+)"
)
# Reentrant checkpointing of torch, Transformer Engine and Megatron; the other kind is no function of its own.
_CHECKPOINTS: Final = re.compile(r"_?Checkpoint(?:Function|WithoutOutputFunction)")
_PACKAGE_OPS: Final = (
    (re.compile(r"flash_attn_3::|_flash_attn_3|FlashAttn3"), "flash3"),
    (re.compile(r"flash_attn::|FlashAttn\w*Func|flash_attn_gpu"), "flash2"),
    (re.compile(r"flex_attention"), "flex"),
    (re.compile(r"torch_attn::_varlen_attn"), "varlen"),
)
_MATMUL_OPS: Final = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"})


@dataclass(slots=True)
class Sum:
    """How often, and for how many seconds."""

    count: int = 0
    seconds: float = 0.0

    def add(self, count: int, seconds: float) -> None:
        self.count += count
        self.seconds += seconds


@dataclass(slots=True)
class Histogram:
    """What ran, by kind. Bounded: kinds are few, and no name is kept."""

    kernels: defaultdict[Kernel, Sum] = field(default_factory=lambda: defaultdict(Sum))
    attention_ops: Counter[str] = field(default_factory=Counter)
    matmul_types: defaultdict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    engine_ops: int = 0
    fsdp2: int = 0
    host_reads: int = 0
    graph_launches: int = 0
    copies_to_host: int = 0
    alltoall: int = 0
    checkpoints: int = 0
    hip: bool = False

    def kernel(self, name: str, count: int = 1, seconds: float = 0.0) -> Kernel:
        """Count a kernel; what it is."""
        kernel = classify(name)
        self.kernels[kernel].add(count, seconds)
        return kernel

    def operator(self, name: str, count: int = 1, input_type: str | None = None, seconds: float = 0.0) -> None:
        """Count an operator or an autograd function of the host. Backward ones tell nothing new."""
        if name == "aten::_local_scalar_dense":
            self.host_reads += count
        elif name in ("cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"):
            self.graph_launches += count
            self.hip = self.hip or name.startswith("hip")
        elif name.startswith("hip") and name[3:4].isupper():
            self.hip = True
        elif name.startswith("aten::_scaled_dot_product"):
            if (match := _SDPA.fullmatch(name)) and match["what"] in _SDPA_NAMES:
                self.attention_ops[_SDPA_NAMES[match["what"]]] += count
        elif name in _MATMUL_OPS:
            if input_type and (kind := dtype(input_type)) is not None:
                self.matmul_types[kind].add(count, seconds)
        elif not name.startswith("aten::") and "ackward" not in name:
            if _CHECKPOINTS.fullmatch(name):
                self.checkpoints += count
                return
            if _ENGINE_OPS.fullmatch(name):
                self.engine_ops += count
                if name.startswith(("FusedAttnFunc", "AttnFuncWithCP")):
                    self.attention_ops["te_fused"] += count
                return
            for pattern, family in _PACKAGE_OPS:
                if pattern.search(name):
                    self.attention_ops[family] += count
                    return

    def write(self, reading: Reading, *, arch: int | None = None, line: int = 0) -> None:
        """See in ``reading`` what the counts prove. ``arch`` is the device's compute capability (90), if known."""
        paths: dict[str, dict[str, int]] = {"attention": self._attention()}
        if self.kernels:
            paths["runtime"] = {("rocm" if self.hip else "cuda"): sum(total.count for total in self.kernels.values())}
        paths |= self._gemm()
        for leaf in ("ssm", "dispatch", "overlap"):
            paths[leaf] = self._families(leaf)
        if set(paths["ssm"]) != {_SSM_ONLY_HELPER}:
            paths["ssm"].pop(_SSM_ONLY_HELPER, None)
        if not paths["dispatch"] and self.alltoall and self._families("permute"):
            paths["dispatch"] = {"alltoall": self.alltoall}
        if self.graph_launches:
            paths["cuda_graphs"] = {"true": self.graph_launches}
        for leaf, values in paths.items():
            for value, count in values.items():
                reading.see(leaf, value, "kernels", line, count=count)
        for kernel, total in self.kernels.items():
            name = f"kernel.{kernel.work}.{kernel.family}{f'.{kernel.dtype}' if kernel.dtype else ''}"
            reading.time(name, total.seconds, total.count)
        if self.checkpoints:
            text = f"checkpointed functions ran {self.checkpoints} times"
            reading.state("numerics.recompute_applied", "checkpoint", text, line)
        times = {dtype: total.seconds for dtype, total in self.gemms().items()}
        if (whole := sum(times.values())) > 0:
            shares = ", ".join(f"{dtype} {time / whole:.1%}" for dtype, time in sorted(times.items()))
            reading.remark("note", f"matrix multiplications by type of input, share of their time: {shares}", line)
        generation = (arch or 0) // 10
        multiplied = ((kernel.arch, item) for kernel, item in self.kernels.items() if kernel.work == "gemm")
        if old := sum(item.count for built, item in multiplied if built is not None and built // 10 < generation):
            reading.remark("note", f"{old} multiplications ran kernels of an older generation than sm{arch}", line)
        softmax = sum(self._families("softmax").values())
        if softmax and not self._families("attention") and not self.attention_ops:
            what = "softmax kernels and no attention kernel: attention may have run unfused, or there was none"
            reading.remark("note", f"{softmax} {what}", line)

    @property
    def engine(self) -> bool:
        """Whether Transformer Engine ran."""
        return self.engine_ops > 0 or any(
            kernel.transformer_engine and kernel.work not in ("attention", "softmax") for kernel in self.kernels
        )

    def gemms(self) -> dict[str, Sum]:
        """Matrix multiplications by the type of their inputs."""
        sums: defaultdict[str, Sum] = defaultdict(Sum)
        for kernel, total in self.kernels.items():
            if kernel.work == "gemm" and kernel.dtype is not None:
                sums[kernel.dtype].add(total.count, total.seconds)
        return sums

    def _families(self, work: str) -> dict[str, int]:
        families: Counter[str] = Counter()
        for kernel, total in self.kernels.items():
            if kernel.work == work:
                families[kernel.family] += total.count
        return dict(families)

    def _attention(self) -> dict[str, int]:
        implementations: Counter[str] = Counter()
        by_torch = "cudnn_sdpa" in self.attention_ops and "te_fused" not in self.attention_ops
        families = self._families("attention")
        if "sdpa_flash" in self.attention_ops and "flash2" not in self.attention_ops and not self.engine:
            # A short name has lost the namespace that tells torch's own build from the package's.
            families["sdpa_flash"] = families.pop("flash2", 0) + families.get("sdpa_flash", 0)
        if "varlen" in self.attention_ops and "sdpa_flash" not in self.attention_ops:
            # torch's own kernels, called for documents of several lengths.
            families["varlen"] = families.pop("sdpa_flash", 0)
        for family, count in ((family, count) for family, count in families.items() if count):
            under = self.engine and not (family == "cudnn" and by_torch)
            implementations[(_UNDER_ENGINE if under else _ALONE).get(family, family)] += count
        for family, count in self.attention_ops.items():
            name = _UNDER_ENGINE.get(family, family) if self.engine else family
            if name not in implementations and not (implementations and name in ("te_fused", "te_flash", "flash2")):
                implementations[name] += count
        return dict(implementations)

    def _gemm(self) -> dict[str, dict[str, int]]:
        weights = _weights(self.gemms())
        if not weights:
            if self.kernels or not self.matmul_types:
                return {}
            # Of the host alone, its operators.
            counts = {kind: self.matmul_types[kind].count for kind in _carrying(_weights(self.matmul_types))}
            return {"gemm": {f"aten_{kind}": count for kind, count in counts.items()}, "compute_dtype": counts}
        kinds = _carrying(weights)
        if weights.get(FP8, 0.0) > _NARROW_SHARE * sum(weights.values()):
            kinds = [FP8 if kind in _HALF else kind for kind in kinds]
        gemms: dict[str, int] = {}
        for kind in dict.fromkeys(kinds):
            families: Counter[str] = Counter()
            for kernel, total in self.kernels.items():
                if kernel.work == "gemm" and kernel.dtype == kind:
                    families[kernel.family] += total.count
            family = "te" if self.engine else families.most_common(1)[0][0]
            gemms[f"{family}_{kind}"] = families.total()
        return {"gemm": gemms, "compute_dtype": {name.rpartition("_")[2]: count for name, count in gemms.items()}}


def _weights(sums: Mapping[str, Sum]) -> dict[str, float]:
    """Seconds of each; how often each ran where no time is known."""
    timed = any(total.seconds for total in sums.values())
    return {name: total.seconds if timed else float(total.count) for name, total in sums.items()}


def _carrying(weights: dict[str, float]) -> list[str]:
    """The type of most multiplications; where whole and narrower precision both carry work, one type of each."""
    main = max(weights, key=lambda kind: weights[kind])
    others = {kind: weight for kind, weight in weights.items() if (kind in _WHOLE) != (main in _WHOLE)}
    if not others or sum(others.values()) < MIN_TYPE_SHARE * sum(weights.values()):
        return [main]
    return [main, max(others, key=lambda kind: others[kind])]


_DASHES = re.compile(r"-{2,}")
_GAP = re.compile(r"\s{2,}")
_TIME = re.compile(r"\s*(?P<value>[\d.,]+(?:[eE][-+]?\d+)?)\s*(?P<unit>ns|us|µs|ms|s)?\s*")
# Wider than any profiler's table: a longer line of dashes is none.
_MAX_WIDTH = 10_000
MAX_ROWS = 1_000_000


def seconds(cell: str, unit: str = "s") -> float | None:
    """A time with its unit (`14.668ms`), or without one in ``unit``; None where the cell is no time."""
    match = _TIME.fullmatch(cell)
    if match is None:
        return None
    value = number(match["value"])
    return None if value is None else value * SECONDS[match["unit"] or unit]


def count(cell: str) -> int | None:
    """A whole number with or without separators; None where the cell is none."""
    value = number(cell)
    return int(value) if value is not None and value.is_integer() and 0 <= value < 1e15 else None


class TableReader(LineReader):
    """Reads tables of kernels below their heads. ``limits`` is what no such table shows, as a remark."""

    limits: ClassVar[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self.histogram = Histogram()
        self._names: list[str] = []
        self._spans: list[tuple[int, int]] | None = None
        self._first = self._rows = 0

    def begin(self, head: str, line: int) -> bool:
        """A head was read; the line of dashes is the next one."""
        # A head may reach beyond its column: heads are distinguished by two blanks and taken in their order.
        self._names, self._spans = [name for name in _GAP.split(head.strip()) if name], None
        self._first = self._first or line
        return True

    def table(self, text: str) -> bool:
        """Take a line below the head; False where the table has ended."""
        if self._spans is None:
            dashes = len(text) <= _MAX_WIDTH and not set(text.strip()) - {"-", " "}
            self._spans = [match.span() for match in _DASHES.finditer(text)] if dashes else []
            return 0 < len(self._spans) == len(self._names)
        if not 0 < len(self._spans) == len(self._names) or not text.strip() or text.startswith("--"):
            return False
        last = len(self._spans) - 1
        words = text.split(None, last)
        # Numbers and one name need no alignment, which is lost where a table was pasted; a name may be longer than
        # its dashes.
        if len(words) != len(self._spans) or any(number(word) is None for word in words[:last]):
            words = [text[begin : None if at == last else end] for at, (begin, end) in enumerate(self._spans)]
        return self.taken(dict(zip(self._names, map(str.strip, words), strict=True)))

    def taken(self, cells: dict[str, str]) -> bool:
        """Take a row, if there is room; False where it is none."""
        self._rows += 1
        return self._rows <= MAX_ROWS and self.row(cells)

    def row(self, cells: dict[str, str]) -> bool:
        """Take the cells of a row by the names of their columns; False where it is none."""
        raise NotImplementedError

    def finish(self) -> Reading | None:
        if self.reading.records:
            self.histogram.write(self.reading, line=self._first)
            kind, what = self.limits
            self.reading.remark("missing" if kind == "missing" else "note", what, self._first)
        return super().finish()
