"""`key_averages().table()` of torch.profiler: sums by name, cut at a number of rows.

Source: PyTorch `torch/autograd/profiler_util.py`, `_build_table`: columns two blanks apart under dashes, names cut at
a width with dots, times with units of their own. A table shows the largest rows, so that nothing follows from a name
that is not in it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from receipts.ingest.evidence.witnesses.kernels import OTHER, classify
from receipts.ingest.evidence.witnesses.kernels_table import TableReader, count, seconds

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


READERS = (KeyAveragesReader,)
