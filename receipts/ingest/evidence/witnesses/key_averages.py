"""`key_averages().table()` of torch.profiler: sums by name, cut at a number of rows.

Source: PyTorch `torch/autograd/profiler_util.py`, `_build_table`: columns two blanks apart under dashes, names cut at
a width with dots, times with units of their own. A table shows the largest rows, so that nothing follows from a name
that is not in it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.witnesses.kernels import OTHER, classify
from receipts.ingest.evidence.witnesses.kernels_histogram import Histogram
from receipts.ingest.evidence.witnesses.kernels_table import TableColumns, columns, count, seconds

_CALLS: Final = "# of Calls"
_DEVICE: Final = ("Self CUDA", "Self XPU", "Self PrivateUse1", "Self device")
MAX_ROWS: Final = 1_000_000


class KeyAveragesReader(LineReader):
    """Kernels by their own time on the device, operators by their calls."""

    source: ClassVar[str] = "torch-profiler"
    anchors: ClassVar[tuple[bytes, ...]] = (b"# of Calls",)

    def __init__(self) -> None:
        super().__init__()
        self._histogram = Histogram()
        self._head = ""
        self._columns: TableColumns | None = None
        self._first = 0
        self._rows = 0

    def line(self, text: str, number: int) -> bool:
        if _CALLS in text:
            self._head, self._columns = text, None
            self._first = self._first or number
            return True
        if self._columns is None:
            self._columns = columns(self._head, text)
            return self._columns is not None
        if text.startswith("--") or not text.strip() or self._rows >= MAX_ROWS:
            self._columns = None
            return False
        self._rows += 1
        return self._row(self._columns.cells(text))

    def finish(self) -> Reading | None:
        if self.reading.records:
            self._histogram.write(self.reading, line=self._first)
            what = "a table of sums shows its largest rows only: what is not in it may have run"
            self.reading.remark("note", what, self._first)
        return super().finish()

    def _row(self, cells: dict[str, str]) -> bool:
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
            self._histogram.kernel(name, calls, device)
        else:
            self._histogram.operator(name, calls)
            if name == "aten::_local_scalar_dense":
                self.reading.count(name, calls)
        return True


def _is_kernel(name: str, host: float, device: float) -> bool:
    """Operators and annotations are listed with the time of what they launched, kernels without any of the host."""
    if device <= 0.0 or name.startswith(("aten::", "nccl:", "Optimizer.", "ProfilerStep")):
        return False
    return host == 0.0 or classify(name) != OTHER


READERS = (KeyAveragesReader,)
