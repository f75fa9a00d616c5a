"""What a whole trace with shapes shows of the work in its steps: attention, look-ups, losses, multiplications.

It is stated in whole numbers beside the trace's digest, for rules to hold against what the receipt states.
Nothing is stated where the trace cannot say: of a compiled step or a graph, where an operator that computes has no
shape, or comes from a library whose shapes are not here. Operators that begin within the backward pass compute the
forward pass again, and count for no more work.

Sources: PyTorch `aten/src/ATen/native/native_functions.yaml` for the order of arguments, `torch/optim/optimizer.py` for
``Optimizer.step#…``; `receipts/emit/profiling.py` for ``receipts.step#…``, which reaches over what was timed as a step.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import compress, repeat
from typing import Any, Final

from receipts.ingest.device_profile import Histogram, event_arguments
from receipts.ingest.reading import Reading
from receipts.readers.torch.host import Host, within

MAX_CALLS: Final = 1_000_000
MAX_STEPS: Final = 16  # whose times are stated
PREFIX: Final = "work."
_TIMED: Final = re.compile(r"receipts\.step#(\d{1,9})")
# By name, the arguments that are multiplied: addmm has the bias before them.
_FACTORS: Final = {
    "aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::_addmm_activation": 1,
}  # fmt: skip
_OWN: Final = ("aten::", "autograd::", "torch::", "c10d::", "record_param_comms", "FSDP::", "fsdp::", "nccl:", "gloo:")
# Their multiplications have no shapes that are summed here.
_UNSUMMED: Final = re.compile(
    r"aten::(?:_scaled_mm|_grouped_mm|_scaled_grouped_mm|_?mkldnn_\w+|_mkl_linear|_weight_int\w+)"
)
_PIXELS: Final = "aten::convolution"
_SOFTMAX: Final = "aten::_softmax"
_BATCHED: Final = ("aten::bmm", "aten::baddbmm")
_MAX_SIDES: Final = 1000
# Nodes of autograd's own end in a number; a function of somebody's own may compute by kernels that no operator shows.
_NODE: Final = re.compile(r"\w+Backward\d+")
Shape = tuple[int, ...]
Side = tuple[int, int, int]


class Work:
    """Gathered over one pass of the events; `write` states it."""

    def __init__(self) -> None:
        self._begins: defaultdict[Hashable, array[float]] = defaultdict(lambda: array("d"))
        self._queries: defaultdict[Hashable, list[Shape | None]] = defaultdict(list)
        self._lookups: list[tuple[float, Shape, Shape]] = []
        self._losses: list[tuple[float, Shape]] = []
        self._products = array("d"), array("d")  # begin and operations of each
        self._timed: dict[int, int] = {}
        self._spans = array("d")  # begin and end of each timed step
        self._projected: list[tuple[float, int, Shape]] = []  # begin, rows and matrix of each plain product
        self._unsummed = self._lost = self._pixels = False
        self._softmaxes = self._math = self._calls = self._shapeless = 0
        # What was softmaxed, and the factors of batched products, each by its size and its two last sides.
        self._weighted, self._batched = set[Side | None](), set[Side | None]()
        self._foreign = self._custom = False

    @property
    def shapes_missing(self) -> bool:
        """Whether this is a trace of the recorder, which takes shapes, and its operators have none."""
        return bool(self._timed) and self._shapeless > 0 and not self._products[0] and not self._lookups

    def mark(self, name: str, begin: float | None, duration: float | None) -> bool:
        """Take an annotation, if it is what the recorder timed as a step; microseconds."""
        match = _TIMED.fullmatch(name) if name.startswith("receipts") else None
        if match is None:
            return False
        if begin is not None and duration is not None and len(self._timed) < MAX_STEPS:
            self._timed[int(match[1])] = round(duration * 1e3)
            self._spans.extend((begin, begin + duration))
        return True

    def operator(self, name: str, event: dict[str, Any], begin: float | None) -> None:
        """Take an operator of the host."""
        if not name.startswith("aten::"):
            self._unsummed = self._unsummed or ("::" in name and not name.startswith(_OWN))
            self._foreign = self._foreign or ("::" in name and not name.startswith((*_OWN, "mkldnn::", "profiler::")))
        elif name.startswith("aten::_scaled_dot_product"):
            if "backward" not in name:
                self._calls += 1
                self._math += "attention_math" in name
                shapes = _shapes(event)
                if begin is None or self._calls > MAX_CALLS:
                    self._lost = True
                    return
                thread = str(event.get("pid")), str(event.get("tid"))
                self._begins[thread].append(begin)
                query = shapes[0] if shapes else None
                self._queries[thread].append(query if query is not None and len(query) == 4 else None)
        elif name in _FACTORS:
            shapes, at = _shapes(event), _FACTORS[name]
            left, right = shapes[at : at + 2] if len(shapes) >= at + 2 else (None, None)
            if name in _BATCHED:
                _keep(self._batched, [left, right])
            full = begin is None or len(self._products[0]) >= MAX_CALLS
            if begin is None or full or left is None or right is None or len(left) < 2 or len(right) < 2:
                self._unsummed = True
                self._shapeless += 1
                return
            self._products[0].append(begin)
            self._products[1].append(2.0 * math.prod(left) * right[-1])
            if name in ("aten::mm", "aten::addmm"):
                self._projected.append((begin, left[0], right))
        elif name == "aten::embedding":
            shapes = _shapes(event)
            table, ids = shapes[:2] if len(shapes) > 1 else (None, None)
            if begin is None or table is None or ids is None or len(table) != 2 or len(self._lookups) >= MAX_CALLS:
                self._lost = True
                return
            self._lookups.append((begin, table, ids))
        elif name in ("aten::nll_loss_forward", "aten::nll_loss2d_forward"):
            shapes = _shapes(event)
            if shapes and (size := shapes[0]) and begin is not None and len(self._losses) < MAX_CALLS:
                self._losses.append((begin, size))
        elif name == _SOFTMAX:
            shapes = _shapes(event)
            self._softmaxes += bool(shapes and shapes[0] is not None and len(shapes[0]) == 4)
            _keep(self._weighted, shapes[:1])
        elif name == _PIXELS:
            self._pixels = True
        elif _UNSUMMED.fullmatch(name):
            self._unsummed = True

    def attention(self, posture: str | None, *, device: bool) -> str | None:
        """What attends where no operator of attention ran: by hand, none at all, or None where that does not show.

        By hand: what a softmax gave is a factor of a batched product. Compiled code hides both in kernels of its own:
        there only a model of pictures shows that nothing attends. On a device, kernels may compute what no operator
        shows.
        """
        if self._foreign or self._calls or (device and self._custom):
            return None
        if posture != "eager":
            return "none" if self._pixels and not self._batched and posture is not None else None
        if self._weighted & self._batched - {None}:
            return None if device else "math"
        # One head of one sequence is multiplied as any matrix is.
        square = any(side is None or side[1] == side[2] for side in self._weighted)
        return None if square or (self._weighted and None in self._batched) else "none"

    def function(self, name: str) -> None:
        """Take an operator without a namespace: a node of autograd, or a function of somebody's own."""
        self._custom = self._custom or ("::" not in name and _NODE.fullmatch(name) is None)

    def _in_steps(self, begins: array[float]) -> Iterator[bool]:
        """Whether each begins in a step that the recorder timed; without such marks all do."""
        return within(begins, self._spans) if self._timed else repeat(True, len(begins))

    def write(self, reading: Reading, host: Host, histogram: Histogram, marks: int, optimizer_steps: int) -> None:
        """State what one whole eager trace shows; ``marks`` are steps by the mark of a profiler."""
        steps = len(self._timed) or (marks if marks == optimizer_steps else 0)
        for number, took in sorted(self._timed.items()):
            reading.counters[f"step.{number}.nanoseconds"] = took
        if not steps or host.lost:
            return
        numbers = {"steps": steps}
        if backward := host.longest_backward():
            numbers["backward_nanoseconds"] = round(backward * 1e3 / steps)
        if not self._lost:
            numbers |= dict(self._of_attention(reading, host, histogram))
            if self._calls or not self._pixels:
                numbers |= dict(self._of_tables())
        flops = sum(compress(self._products[1], self._in_steps(self._products[0])))
        if not histogram.kernels and not self._unsummed and flops:
            numbers["matmul_flops"] = round(flops)
        if len(numbers) > 1:
            reading.counters |= {f"{PREFIX}{name}": min(value, 2**62) for name, value in numbers.items()}

    def _of_attention(self, reading: Reading, host: Host, histogram: Histogram) -> Iterator[tuple[str, int]]:
        """Forward calls outside the backward pass, where no other attention than these operators is to be seen."""
        # Of two that run the same kernels the path names one.
        names = {seen.value for seen in reading.seen if seen.leaf == "attention"} | histogram.attention_ops.keys()
        others = names - {"sdpa_flash", "mem_efficient", "cudnn_sdpa", "sdpa_math", "math"}
        first: list[Shape | None] = []
        again = 0
        for thread, begins in self._begins.items():
            inside, timed = within(begins, host.backward_of(thread)), self._in_steps(begins)
            for query, repeats, counts in zip(self._queries[thread], inside, timed, strict=True):
                again += repeats and counts
                if counts and not repeats:
                    first.append(query)
        shapes = [query for query in first if query is not None]
        if others or not shapes or len(shapes) < len(first) or self._softmaxes > self._math:
            return
        yield "attention_calls", len(shapes)
        yield "attention_repeats", again
        yield "attention_tokens", sum(query[0] * query[2] for query in shapes)
        yield "attention_rows", max(query[0] for query in shapes)
        yield "attention_heads", max(query[1] for query in shapes)
        yield "attention_length", max(query[2] for query in shapes)
        yield "attention_width", max(query[1] * query[3] for query in shapes)

    def _of_tables(self) -> Iterator[tuple[str, int]]:
        """Look-ups in the largest table, and in those that are about as large; the widest loss."""
        if not self._lookups:
            return
        begins = array("d", (begin for begin, _, _ in self._lookups))
        looked_up = [(table, ids) for _, table, ids in compress(self._lookups, self._in_steps(begins))]
        largest = max((table[0] for table, _ in looked_up), default=0)
        wide = [(table, ids) for table, ids in looked_up if 2 * table[0] >= largest]
        if not wide:
            return
        yield "table_rows", sum(rows for rows, _ in {table for table, _ in looked_up})
        yield "table_width", max(table[1] for table, _ in wide)
        yield "tokens", sum(math.prod(ids) for _, ids in wide)
        yield "micro_tokens", max(math.prod(ids) for _, ids in wide)
        if all(len(ids) == 2 for _, ids in wide):
            yield "sequence", max(ids[1] for _, ids in wide)
        begins = array("d", (begin for begin, _ in self._losses))
        if losses := [shape for _, shape in compress(self._losses, self._in_steps(begins))]:
            yield "loss_rows", sum(map(_rows, losses))
            yield "loss_classes", max(map(_classes, losses))
        # A head, by whatever loss: what leads from the width of a table to as many as it has rows.
        heads = {(width, rows) for (rows, width), _ in wide}
        begins = array("d", (begin for begin, _, _ in self._projected))
        projected = compress(self._projected, self._in_steps(begins))
        if rows := sum(rows for _, rows, matrix in projected if matrix in heads):
            yield "head_rows", rows


def _keep(sides: set[Side | None], shapes: Iterable[Shape | None]) -> None:
    """Keep matrices by their size and their sides; None for one without a shape, or beyond so many."""
    for shape in shapes or (None,):
        known = shape is not None and len(shape) > 1 and len(sides) < _MAX_SIDES
        sides.add((math.prod(shape), min(shape[-2:]), max(shape[-2:])) if known and shape is not None else None)


def _rows(shape: Shape) -> int:
    return math.prod(shape) // max(_classes(shape), 1)


def _classes(shape: Shape) -> int:
    return shape[1] if len(shape) > 1 else shape[0] if shape else 1


def _shapes(event: dict[str, Any]) -> list[Shape | None]:
    """The shapes of an operator's arguments; None of one that is no tensor, or has none."""
    dims = event_arguments(event).get("Input Dims")
    if not isinstance(dims, list):
        return []
    return [
        tuple(item)
        if isinstance(item, list) and item and all(type(size) is int and 0 <= size < 1 << 48 for size in item)
        else None
        for item in dims
    ]
