"""Devices and chips: where a runtime shows a chip as several devices, what a source counts by device is a chip's.

The chip is the unit of a receipt, and the registry's peaks are a chip's. A source that divides by devices (MaxText:
``Num_devices``, ``TFLOP/s/device``) has twice as many of them as there are chips of a TPU7x, each at half the rate.
Tables of the vendor, and readers that count chips, are left as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Final

from receipts.ingest.draft import ReceiptDraft
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import MemoryRow, Reading, Remark
from receipts.receipt.accelerators import find_accelerator

ACCELERATOR: Final = "hardware.accelerator"
# Sources whose counts and rates are those of a device.
BY_DEVICE: Final = frozenset({"maxtext", "maxtext-metrics", "t5x", "jax-environment"})
_COUNTS: Final = ("hardware.chips", "hardware.chips_per_host")
_RATES: Final = ("tokens_per_second_per_chip", "tflops_per_second_per_chip")
_FLOPS: Final = "measurement.flops_per_step_per_chip"
_SIZES: Final = ("bytes_used", "peak_bytes", "peak_reserved_bytes", "bytes_limit")


def of_chips(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> list[FileEvidence]:
    """The files with what their readings count by device counted by chip."""
    named = [reading.stated[ACCELERATOR].value for file in files for reading in file.readings if _names(reading)]
    known = draft.get(ACCELERATOR) or next(iter(named), None)
    chip = find_accelerator(str(known)) if known is not None else None
    each = chip.devices_per_chip if chip is not None else 1
    if each == 1:
        return list(files)
    return [replace(file, readings=tuple(_of_chips(item, each) for item in file.readings)) for file in files]


def _names(reading: Reading) -> bool:
    return ACCELERATOR in reading.stated


def _of_chips(reading: Reading, each: int) -> Reading:
    if reading.source not in BY_DEVICE:
        return reading
    chips = copy(reading)
    chips.stated, chips.remarks = dict(reading.stated), list(reading.remarks)
    for path in _COUNTS:
        if (claim := chips.stated.get(path)) is not None and claim.value % each == 0:
            what = f"{claim.text}: {claim.value} devices are {claim.value // each} chips"
            chips.stated[path] = replace(claim, value=claim.value // each, text=what)
            chips.remarks.append(Remark("note", f"{what}, and a chip's rate is that of {each} devices", claim.place))
    if (claim := chips.stated.get(_FLOPS)) is not None:
        chips.stated[_FLOPS] = replace(claim, value=claim.value * each)
    if len(reading.steps):
        chips.steps = deepcopy(reading.steps)
        for name in _RATES:
            chips.steps.scale(name, each)
    chips.memory = _memory(reading.memory, each)
    return chips


def _memory(rows: Sequence[MemoryRow], each: int) -> list[MemoryRow]:
    """Rows of chips: the sum of a chip's devices where all of them are there; rows that name no device stay theirs."""
    groups: defaultdict[tuple[int, str | None, int | None], dict[int, MemoryRow]] = defaultdict(dict)
    nameless = [row for row in rows if row.chip is None]
    for row in rows:
        if row.chip is not None:
            groups[row.chip // each, row.phase, row.step][row.chip] = row
    whole = []
    for (chip, _, _), devices in groups.items():
        if len(devices) == each:
            first = next(iter(devices.values()))
            sizes = {name: [getattr(row, name) for row in devices.values()] for name in _SIZES}
            sums: Any = {name: None if None in values else sum(values) for name, values in sizes.items()}
            whole.append(replace(first, chip=chip, **sums))
    return whole + nameless
