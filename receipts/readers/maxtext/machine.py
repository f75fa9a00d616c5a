"""The machine as MaxText prints it: hosts that share a file, backend and chip, memory.

Hosts that write to one file: Ray names its workers; without names, a record that repeats another is one's copy.

MaxText's lines on the system: versions of JAX, the backend, and the platform that a TPU's backend names below.

Memory as MaxText prints it. Its GB are GiB: every figure was divided by 2**30 before it was rounded. `max_utils.py`:
``Using (GB) 44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))`` is bytes_in_use / bytes_limit of one device;
``Total memory size: 14.2 GB, Output size: …`` is what the compiler planned for the step, and since July 2026 says
*estimated*. Forks print the plan in bytes.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.arguments import Statements
from receipts.ingest.literals import size as size_of
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.record import RecordRows
from receipts.ingest.steps import ABSENT, Steps
from receipts.receipt.accelerators import find_accelerator

_RAY: Final = re.compile(r"\(\S{1,80} pid=(\d{1,10})(?:, ip=([\d.:a-f]{1,45}))?\)")
_RECENT: Final = 8
_WORKERS: Final = 1 << 16


class Hosts:
    """The ranks of records, in the order in which their hosts first wrote."""

    def __init__(self) -> None:
        self._copies: dict[int, int] = {}
        self._workers: dict[tuple[str, str], int] = {}

    def named(self, before: str) -> int | None:
        """The rank of the worker that is before a record, from 0; -1 where none does, None beyond a bound."""
        workers = _RAY.findall(before) if "pid=" in before else []
        if not workers:
            return -1
        if workers[-1] not in self._workers and len(self._workers) < _WORKERS:
            self._workers[workers[-1]] = len(self._workers)
        return self._workers.get(workers[-1])

    def copy(self, row: RecordRows, steps: Steps, last: int) -> int | None:
        """The rank of a record that repeats step and loss of one of the last few; None for the first one."""
        step, loss = row.steps[0], row.figures.get("loss", [ABSENT])[0]
        recent = last - _RECENT < step <= last
        if not recent or loss == ABSENT or steps.get(step, "loss") != loss:
            return None
        copies = self._copies.get(step, 0)
        if copies == 0:
            # Its first record was put without a rank: give it one, so that both times count.
            steps.put(step, {"step_seconds": steps.get(step, "step_seconds")}, 0)
        self._copies[step] = copies + 1
        if len(self._copies) > _RECENT:
            del self._copies[next(iter(self._copies))]
        return copies + 1


_STATEMENTS: Final = Statements("maxtext")
_BACKEND = re.compile(r"System Information: Jax Backend: (.{1,200})")
_CUDA = re.compile(r"cuda (\d{4,6})\b")


def state_system(reading: Reading, text: str, number: int) -> bool | None:
    """State what a line says of the system; whether a platform is named below it, None where it says nothing known."""
    if _STATEMENTS.take(reading, text, number):
        return False
    match = _BACKEND.search(text)
    if match is None:
        return None
    backend = match[1].strip()
    if cuda := _CUDA.search(backend):
        version = int(cuda[1])
        reading.state("platform.cuda", f"{version // 1000}.{version % 1000 // 10}", backend, number)
        reading.see("runtime", "cuda", "backend", number)
    elif backend == "cpu":
        reading.see("runtime", "cpu", "backend", number)
    else:
        return True
    return False


def state_platform(reading: Reading, text: str, number: int) -> bool:
    """State the TPU that a line below the backend names; whether it names one."""
    chip = find_accelerator(text.strip()[:80]) if "TPU" in text else None
    if chip is None:
        return False
    reading.state("hardware.accelerator", chip.key, text.strip(), number)
    reading.see("runtime", "pjrt-tpu", "backend", number)
    return True


def peak_tflops(reading: Reading) -> float | None:
    """The highest rate of the chip's matrix units, TFLOP/s a device, where the file names the chip."""
    stated = reading.stated.get("hardware.accelerator")
    chip = find_accelerator(stated.value) if stated else None
    if chip is None or not chip.dense_peak_flops_per_second:
        return None
    return max(chip.dense_peak_flops_per_second.values()) / chip.devices_per_chip / 1e12


_USING = re.compile(r"Using \(GB\)\s+([\d.]{1,20})\s*/\s*([\d.]{1,20})\s*\([^)]{1,24}%\)\s+on\s+(\S.{0,200})")
_ORDINAL = re.compile(r"(?:[A-Za-z]+Device\()?(?:[A-Za-z]+[_:]|\bid=)(\d{1,6})")
_CELL = re.compile(
    r"\b(total|output|temp|argument|alias|host temp)(?: estimated)?(?: memory)? size:\s*(\d[\d.]{0,25})(?:\s*(GB|GiB))?"
)
_LABEL = re.compile(r"Memstats:\s*(.{1,200}?):?\s*$")
# A label is at the beginning of its line, behind a prefix at most.
_LABELLED: Final = 400
_LEAVES: Final = {"output": "output_bytes", "temp": "temp_bytes", "argument": "argument_bytes"}


def device_row(text: str, number: int, phase_name: str | None) -> MemoryRow | None:
    """One device's use and limit, or None where the line is about the host's memory."""
    match = _USING.search(text)
    if match is None:
        return None
    used, limit = size_of(f"{match[1]} GiB"), size_of(f"{match[2]} GiB")
    if used is None or limit is None:
        return None
    ordinal = _ORDINAL.search(match[3])
    chip = int(ordinal[1]) if ordinal else None
    return MemoryRow(Place(number), chip, phase_name, bytes_used=used, bytes_limit=limit)


def read_memory_plan(reading: Reading, text: str) -> bool:
    """Read the compiler's plan of a step; False where the line is none. The largest plan of a file stands."""
    cells = {name.lower(): (value, unit) for name, value, unit in _CELL.findall(text.lower())}
    in_bytes = "in bytes" in text
    sizes = {
        name: size
        for name, (value, unit) in cells.items()
        if (size := size_of(value if in_bytes and not unit else f"{value} GiB")) is not None
    }
    if not {"output", "temp"} <= sizes.keys():
        return False
    earlier = reading.compile.temp_bytes
    if earlier is not None and earlier > sizes["temp"]:
        return True
    for name, leaf in _LEAVES.items():
        # 0.0 GB is a rounded figure: less than 0.05 GiB, and not nothing.
        if sizes.get(name):
            setattr(reading.compile, leaf, sizes[name])
    for name in ("total", "host temp"):
        if sizes.get(name):
            reading.counters[f"{name.replace(' ', '_')}_bytes"] = sizes[name]
    return True


class MemoryLines:
    """What MaxText prints of memory; a head names the phase that the rows below it are of."""

    def __init__(self) -> None:
        self._phase: str | None = None

    def take(self, reading: Reading, text: str, number: int) -> bool:
        """Take one line; whether it has a figure, or says that there is none."""
        if "Memstats unavailable" in text:
            # Behind the words is the error; prose that quotes them goes on otherwise.
            if (why := text.partition("Memstats unavailable")[2]).startswith((",", ":")) or not why.strip():
                reading.memory_unavailable = why.lstrip(",: ")[:200] or "unavailable"
            return True
        if "Memstats:" in text:
            # The receipt's phase that a label such as ``After params initialized`` names.
            label = _LABEL.search(text[:_LABELLED])
            words = label[1].lower() if label is not None else ""
            begun = "post_init" if "init" in words or "load" in words else None
            self._phase = "post_compile" if "compil" in words else begun
            return False
        if "Using (GB)" not in text:
            return read_memory_plan(reading, text)
        row = device_row(text, number, self._phase)
        if row is not None:
            reading.memory.append(row)
        return row is not None
