"""What the host's operators of a trace show: how much of the step was compiled, and what was computed on the host.

Sources: PyTorch `torch/_dynamo/eval_frame.py` and `convert_frame.py` (``Torch-Compiled Region: 0/1``, before 2.4 only
``CompiledFunction`` of AOTAutograd and ``TorchDynamo Cache Lookup``), `torch/_inductor/output_code.py`
(``## Call CompiledFxGraph … ##``). An operator that works on a device launches something while it runs, on its own
thread; one that launches nothing worked on the host, or on nothing.
"""

from __future__ import annotations

import itertools
import re
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from receipts.ingest.device_profile import covered, event_arguments
from receipts.ingest.reading import Tally

MAX_SPANS: Final = 4_000_000
MAX_REGIONS: Final = 200
MAX_THREADS: Final = 50_000
MAX_NAMES: Final = 1_000
# Longer names are none of those that are known here.
_MAX_LINE: Final = 300
# Old traces hold whole microseconds: a launch may seem to begin just before its operator.
_SLACK: Final = 1.0
_REGION: Final = re.compile(r"Torch-Compiled Region: ?(\d{1,9}/\d{1,9})")
_COMPILED: Final = re.compile(r"Torch-Compiled Region|CompiledFunction(?:Backward)?\b|## Call CompiledFxGraph")
_BACKWARD: Final = "CompiledFunctionBackward"
_DYNAMO: Final = "TorchDynamo Cache Lookup"
MATMULS: Final = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm", "_scaled_grouped_mm", "_addmm_activation"),
    )
)
# These exist for one processor only: the dispatcher reaches them with tensors that live on the host.
_HOST_ONLY: Final = re.compile(r"aten::(?:\w+_for_cpu|_?mkldnn_\w+|_mkl_linear)|mkldnn::\w+")
_AUTOGRAD: Final = "autograd::engine::evaluate_function"
# No derivative calls these, so inside the backward pass the forward pass is computed again. The second kind is cheap
# enough that a function of somebody's own may compute it twice: it shows no checkpoint, and does not exclude one.
_FORWARD: Final = frozenset(
    f"aten::{name}" for name in ("linear", "scaled_dot_product_attention", "layer_norm", "rms_norm", "embedding")
)
_CHEAP: Final = frozenset(f"aten::{name}" for name in ("gelu", "silu", "relu", "softmax", "dropout"))
_COMPUTES: Final = re.compile(r"aten::_scaled_dot_product_\w+|aten::_flash_attention_forward|aten::convolution")


# Kinds of which times are kept.
_TIMED: Final = ("matmul", "compiled", "backward", "forward", "cheap", "launch")


class _Thread:
    """Spans on one thread by kind, flat: begin, end, begin, … Of multiplications also what is known of their size."""

    def __init__(self) -> None:
        self.spans = {kind: array("d") for kind in _TIMED}
        self.names: list[str] = []
        self.sized: list[bool | None] = []
        self.regions: list[tuple[float, float, str]] = []

    def begins(self, kind: str) -> array[float]:
        return self.spans[kind][::2]


class Host:
    """Operators of the host, kept by thread in arrays. ``lost`` events were too many to keep: nothing follows then."""

    def __init__(self) -> None:
        self._threads: dict[Hashable, _Thread] = {}
        self._backward: array[float] = array("d")
        self._kept = 0
        self.lost = 0
        self.kinds: Counter[str] = Counter()
        self.host_only = Tally[str](MAX_NAMES, "others")

    @property
    def computes(self) -> int:
        """Operators that compute."""
        return self.kinds["matmul"] + self.kinds["host only"] + self.kinds["computes"]

    @property
    def launches(self) -> int:
        """Calls of the device's runtime."""
        return self.kinds["launch"]

    def operator(self, name: str, event: dict[str, Any], begin: float | None, duration: float | None) -> None:
        """One event of the host: an operator, an autograd function, or a mark of torch.compile."""
        kind = _kind(name[:_MAX_LINE])
        if not kind:
            return
        thread = self._take(kind, event, begin, duration)
        if kind == "host only":
            self.host_only.add(name)
        elif thread is not None and begin is not None:
            if kind == "matmul":
                thread.names.append(sys.intern(name))
                thread.sized.append(_sized(event))
            elif kind == "compiled":
                if match := _REGION.match(name):
                    thread.regions.append((begin, begin + (duration or 0.0), match[1]))
                if name.startswith(_BACKWARD):
                    self._backward.append(begin)

    def launch(self, event: dict[str, Any], begin: float | None) -> None:
        """A call of the device's runtime."""
        self._take("launch", event, begin, 0.0)

    def posture(self, *, library_ops: int, fused_kernels: int) -> str | None:
        """``eager``, ``regional`` or ``whole_graph`` of a whole trace; None where it does not show.

        Eager: operators that compute were called one by one, and nothing that torch.compile leaves is there: no
        compiled region or function, no kernel of its code generator, no look-up of its cache. One graph: all
        multiplications lie inside compiled spans, and each forward one is followed by its backward one.
        """
        if self.lost:
            return None
        if not self.kinds["compiled"]:
            if self.kinds["dynamo"] or fused_kernels:
                return None
            return "eager" if self.computes or library_ops else None
        if library_ops or not self._inside("matmul", "compiled", all):
            return "regional"
        whole = sorted(begin for begin, _, multiplies in self._regions() if multiplies)
        if not whole:
            return "regional" if any(thread.names for thread in self._threads.values()) else None
        pairs = itertools.pairwise(whole)
        back = sorted(self._backward)
        if any(bisect_left(back, late) == bisect_left(back, early) for early, late in pairs):
            return "regional" if back else None
        return "whole_graph"

    def regions(self) -> list[str]:
        """Compiled regions by their numbers; those without any multiplication are called elementwise."""
        regions = list(self._regions())
        names = dict.fromkeys(name for _, name, _ in regions)
        heavy = {name for _, name, multiplies in regions if multiplies}
        labels = [f"compiled region {name}" if name in heavy else f"elementwise region {name}" for name in names]
        return labels[:MAX_REGIONS]

    def recompute(self) -> str | None:
        """``checkpoint`` where the backward pass computes parts of the forward pass again, ``none`` where it does not.

        None where there is no backward pass or no forward one. Of a compiled step it tells nothing.
        """
        if self.lost or not self.kinds["backward"] or not self.kinds["forward"]:
            return None
        if self._inside("forward", "backward", any):
            return "checkpoint"
        return None if self._inside("cheap", "backward", any) else "none"

    def backward_of(self, thread: Hashable) -> array[float]:
        """Begins and ends of the backward pass on a thread, by process and thread."""
        known = self._threads.get(thread)
        return known.spans["backward"] if known is not None else array("d")

    def longest_backward(self) -> float:
        """Microseconds that the backward pass took on the thread that spent most of them on it."""
        return max((covered(thread.spans["backward"]) for thread in self._threads.values()), default=0.0)

    def on_host(self) -> tuple[dict[str, int], int]:
        """Operators that computed on the host beside a device, and how many may have, or had nothing to compute.

        A multiplication counts that launched nothing and whose operands are known not to be empty.
        """
        counts: Counter[str] = Counter(self.host_only)
        unsure = 0
        for thread in self._threads.values():
            launches, spans = sorted(thread.begins("launch")), thread.spans["matmul"]
            for at, name in enumerate(thread.names):
                begin, end = spans[2 * at] - _SLACK, spans[2 * at + 1] + _SLACK
                if bisect_right(launches, end) > bisect_left(launches, begin) or thread.sized[at] is False:
                    continue
                if thread.sized[at]:
                    counts[name] += 1
                else:
                    unsure += 1
        return dict(counts), unsure

    def _inside(self, kind: str, outer: str, of: Callable[[Iterable[bool]], bool]) -> bool:
        """Whether any, or all, of one kind begin within a span of another kind on their thread."""
        threads = self._threads.values()
        return of(lies for thread in threads for lies in within(thread.begins(kind), thread.spans[outer]))

    def _regions(self) -> Iterator[tuple[float, str, bool]]:
        """Begin and name of each compiled region, and whether it multiplies."""
        for thread in self._threads.values():
            begins = sorted(thread.begins("matmul"))
            for begin, end, name in thread.regions:
                yield begin, name, bisect_right(begins, end) > bisect_left(begins, begin)

    def _take(self, kind: str, event: dict[str, Any], begin: float | None, duration: float | None) -> _Thread | None:
        """Count an event, and keep its span by thread; None where its kind is not timed or there is no room."""
        self.kinds[kind] += 1
        if kind not in _TIMED:
            return None
        key = str(event.get("pid")), str(event.get("tid"))
        full = key not in self._threads and len(self._threads) >= MAX_THREADS
        if begin is None or self._kept >= MAX_SPANS or full:
            self.lost += 1
            return None
        self._kept += 1
        if (thread := self._threads.get(key)) is None:
            thread = self._threads[key] = _Thread()
        thread.spans[kind].extend((begin, begin + (duration or 0.0)))
        return thread


def within(begins: array[float], spans: array[float]) -> Iterator[bool]:
    """Of each beginning, whether it lies in one of the spans, which may lie within each other."""
    ordered = sorted(zip(spans[::2], spans[1::2], strict=True))
    starts, reach = [start for start, _ in ordered], list(itertools.accumulate((end for _, end in ordered), max))
    for begin in begins:
        at = bisect_right(starts, begin) - 1
        yield at >= 0 and begin <= reach[at]


@lru_cache(maxsize=1 << 14)
def _kind(name: str) -> str:
    """What an operator of this name says here; empty for the many that say nothing. Few names make a trace."""
    if name in MATMULS:
        return "matmul"
    if name == _DYNAMO:
        return "dynamo"
    if name in _FORWARD or name in _CHEAP:
        return "forward" if name in _FORWARD else "cheap"
    if name.startswith(_AUTOGRAD):
        return "backward"
    if _COMPILED.match(name) is not None:
        return "compiled"
    if _HOST_ONLY.fullmatch(name) is not None and "backward" not in name:
        return "host only"
    return "computes" if _COMPUTES.fullmatch(name) is not None else ""


def _sized(event: dict[str, Any]) -> bool | None:
    """Whether the operands hold anything; None where their shapes were not recorded."""
    dims = event_arguments(event).get("Input Dims")
    if not isinstance(dims, list):
        return None
    shapes = [item for item in dims if isinstance(item, list) and item and all(isinstance(n, int) for n in item)]
    return all(n > 0 for shape in shapes for n in shape) if shapes else None
