"""MaxText's lines on the system: versions of JAX, the backend, and the platform that a TPU's backend names below."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.arguments import Statements
from receipts.ingest.reading import Reading
from receipts.receipt.accelerators import find_accelerator

_STATEMENTS: Final = Statements("maxtext")
_BACKEND = re.compile(r"System Information: Jax Backend: (.{1,200})")
_CUDA = re.compile(r"cuda (\d{4,6})\b")


def state(reading: Reading, text: str, number: int) -> bool | None:
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


def platform(reading: Reading, text: str, number: int) -> bool:
    """State the TPU that a line below the backend names; whether it names one."""
    chip = find_accelerator(text.strip()[:80]) if "TPU" in text else None
    if chip is None:
        return False
    reading.state("hardware.accelerator", chip.key, text.strip(), number)
    reading.see("runtime", "pjrt-tpu", "backend", number)
    if chip.devices_per_chip > 1:
        what = f"a chip of {chip.key} is {chip.devices_per_chip} devices here: counts and rates are a device's"
        reading.remark("note", what, number)
    return True


def peak(reading: Reading) -> float | None:
    """The highest rate of the chip's matrix units, TFLOP/s a device, where the file names the chip."""
    stated = reading.stated.get("hardware.accelerator")
    chip = find_accelerator(stated.value) if stated else None
    if chip is None or not chip.dense_peak_flops_per_second:
        return None
    return max(chip.dense_peak_flops_per_second.values()) / chip.devices_per_chip / 1e12
