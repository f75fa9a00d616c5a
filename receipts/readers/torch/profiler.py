"""Sums of torch.profiler: the printed `key_averages` table, and operators that a loop summed itself.

`key_averages().table()` of torch.profiler: sums by name, cut at a number of rows. Source: PyTorch
`torch/autograd/profiler_util.py`, `_build_table`: columns two blanks apart under dashes, names cut at a width with
dots, times with units of their own. A table shows the largest rows, so that nothing follows from a name that is not
in it.

Operators of a torch.profiler run, summed by the loop itself and kept as JSON in the place of a trace. ``{"producer":
"torch.profiler", "steps": 2, "operators": {NAME: n}}``; an entry may be ``{"count": n, "types": […]}``, or
``matrix_types`` counts the types of all multiplications. The loops under ``benchmarks/`` and ``examples/`` write it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from receipts.ingest.cuda_kernels import OTHER, classify
from receipts.ingest.device_profile import Histogram, TableReader, count, seconds
from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading
from receipts.receipt.names import dtype

_CALLS: Final = "# of Calls"
_DEVICE: Final = ("Self CUDA", "Self XPU", "Self PrivateUse1", "Self device")


class KeyAveragesReader(TableReader):
    """Kernels by their own time on the device, operators by their calls."""

    source: ClassVar[str] = "torch-profiler"
    anchors: ClassVar[tuple[bytes, ...]] = (b"# of Calls",)
    limits = ("note", "a table of sums shows its largest rows only: what is not in it may have run")

    def line(self, text: str, number: int) -> bool:
        return self.begin(text, number) if _CALLS in text else self.table(text)

    def row(self, cells: dict[str, str]) -> bool:
        name, calls = cells.get("Name", ""), count(cells.get(_CALLS, ""))
        if not name or calls is None:
            return False
        self.reading.records += 1
        host = seconds(cells.get("Self CPU", ""), "us") or 0.0
        device = next((seconds(cells[key], "us") for key in _DEVICE if key in cells), None) or 0.0
        if name == "ProfilerStep*":
            self.reading.steps_covered = calls
        elif "Memcpy DtoH" in name:
            self.reading.host_transfers = (self.reading.host_transfers or 0) + calls
        elif _is_kernel(name, host, device):
            self.histogram.kernel(name, calls, device)
        else:
            self.histogram.operator(name, calls)
            if name == "aten::_local_scalar_dense":
                self.reading.count(name, calls)
        return True


def _is_kernel(name: str, host: float, device: float) -> bool:
    """Operators and annotations are listed with the time of what they launched, kernels without any of the host."""
    if device <= 0.0 or name.startswith(("aten::", "nccl:", "Optimizer.", "ProfilerStep")):
        return False
    return host == 0.0 or classify(name) != OTHER


class OperatorSumsReader(JsonReader):
    """Operators by name; how they were grouped into steps, or ran on a device, sums do not tell."""

    source = "torch-profiler"
    what = "sums of operators"
    marks = (b'"operators"', b'"producer"', b'"torch.profiler"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Operators with the type of their first input; a multiplication's, where it is known, says what ran."""
        histogram = Histogram()
        for name, entry in _entries(document, "operators"):
            count, types = (entry.get("count"), entry.get("types")) if isinstance(entry, dict) else (entry, None)
            if counted(count):
                reading.records += 1
                first = types[0] if isinstance(types, list) and types else None
                histogram.operator(name, count, first if isinstance(first, str) else None)
        for name, count in _entries(document, "matrix_types"):
            if counted(count) and (kind := dtype(name)) is not None:
                histogram.matmul_types[kind].add(count, 0.0)
        steps = document.get("steps")
        reading.steps_covered = steps if counted(steps) and steps else None
        if histogram.matmul_types:
            reading.see("framework", "torch", "kernels")
        histogram.write(reading)


def _entries(document: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    entries = document.get(name)
    return entries.items() if isinstance(entries, dict) else ()


READERS = (KeyAveragesReader, OperatorSumsReader)
