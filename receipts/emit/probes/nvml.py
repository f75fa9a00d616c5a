"""NVML, where the job has loaded pynvml: clocks, power, temperature and throttling of the devices it computes on.

Two readings, at the start and at the end, of counters that the driver keeps by itself; a clock or a wattage of one
moment says nothing about a run, so these are stated only from samples, and samples are taken only where
RECEIPTS_NVML_SECONDS asks for them. Source: `nvidia-ml-py`, NVML API reference.
"""

from __future__ import annotations

import os
import threading
import time

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "nvml"
INTERVAL = "RECEIPTS_NVML_SECONDS"
MAX_SAMPLES = 20_000
_SM_CLOCK, _CORE_SENSOR = 1, 0
# Bits of nvmlDeviceGetCurrentClocksEventReasons, by the names that nvidia-smi has for them. Idle, and clocks that the
# job asked for, are no throttling.
REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
# Policies of nvmlDeviceGetViolationStatus, whose times only grow.
VIOLATIONS = {0: "power", 1: "thermal", 2: "sync_boost", 3: "board_limit", 5: "reliability"}


class DeviceSample:
    """One device at one moment; what it does not tell is None. Violations are nanoseconds, and only grow."""

    __slots__ = ("at", "clock_mhz", "energy_millijoules", "power_watts", "reasons", "temperature", "violations")

    def __init__(self, library: Any, handle: Any) -> None:
        self.at = time.perf_counter()
        self.clock_mhz = _ask(library, "nvmlDeviceGetClockInfo", handle, _SM_CLOCK)
        self.temperature = _ask(library, "nvmlDeviceGetTemperature", handle, _CORE_SENSOR)
        power = _ask(library, "nvmlDeviceGetPowerUsage", handle)
        self.power_watts = None if power is None else power / 1000
        self.energy_millijoules = _ask(library, "nvmlDeviceGetTotalEnergyConsumption", handle)
        mask = _ask(library, "nvmlDeviceGetCurrentClocksEventReasons", handle)
        if mask is None:
            mask = _ask(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        self.reasons = None if mask is None else {name for bit, name in REASONS.items() if mask & bit}
        self.violations: dict[str, int] = {}

    def violated(self, library: Any, handle: Any) -> None:
        """Read the times for which policies held the clocks down."""
        for policy, name in VIOLATIONS.items():
            status = _ask(library, "nvmlDeviceGetViolationStatus", handle, policy)
            if status is not None:
                self.violations[name] = int(status.violationTime)

    def __repr__(self) -> str:
        return f"DeviceSample({self.clock_mhz} MHz, {self.power_watts} W, {self.temperature} °C)"


class Sampler:
    """A thread that reads one device again and again, for as long as it is asked to."""

    def __init__(self, library: Any, handle: Any, seconds: float) -> None:
        self._library, self._handle, self._seconds = library, handle, seconds
        self._over = threading.Event()
        self.readings: list[DeviceSample] = []
        self._thread = threading.Thread(target=self._run, name="receipts-nvml", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(self._seconds) and len(self.readings) < MAX_SAMPLES:
            self.readings.append(DeviceSample(self._library, self._handle))

    def stop(self) -> list[DeviceSample]:
        """End it, and give what it read."""
        self._over.set()
        self._thread.join(1.0)
        return list(self.readings)


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """Take the first reading once the job computes on a device; take samples from then on where they are asked for."""
    if phase != "steady" and "first" not in stated.kept:
        imported.read_each(stated, _first)
    if phase == "post_step0":
        at_warm(stated)


def at_warm(stated: ProbeOutput) -> None:
    """The measured steps begin: what was sampled before counts in no energy."""
    stated.kept["measured_from"] = time.perf_counter()


def at_end(stated: ProbeOutput) -> None:
    """Take the last reading, and state what the two, or the samples, show."""
    if "first" in stated.kept:
        imported.read_each(stated, _last)
        _ask(stated.kept["library"], "nvmlShutdown")


def _first(stated: ProbeOutput) -> None:
    library = imported.module("pynvml")
    identity = device()
    if library is None or identity is None:
        return
    library.nvmlInit()  # counted: the shutdown at the end takes back this one alone
    handle = library.nvmlDeviceGetHandleByUUID(identity)
    reading = DeviceSample(library, handle)
    reading.violated(library, handle)
    stated.kept |= {"library": library, "handle": handle, "first": reading}
    if (seconds := interval()) is not None:
        stated.kept["sampler"] = Sampler(library, handle, seconds)


def interval() -> float | None:
    """Seconds between samples, as the environment asks; None where it asks for none."""
    try:
        seconds = float(os.environ.get(INTERVAL, ""))
    except ValueError:
        return None
    return seconds if 0.01 <= seconds <= 3600 else None


def device() -> str | None:
    """The UUID of the device that this process computes on, by torch's own word; None where it does not tell."""
    if not imported.part("torch.cuda", "_initialized"):
        return None
    current = imported.part("torch.cuda", "current_device")()
    identity = getattr(imported.part("torch.cuda", "get_device_properties")(current), "uuid", None)
    if identity is None:
        return None
    text = str(identity)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def _last(stated: ProbeOutput) -> None:
    library, handle, first = stated.kept["library"], stated.kept["handle"], stated.kept["first"]
    sampler: Sampler | None = stated.kept.get("sampler")
    samples = sampler.stop() if sampler is not None else []
    last = DeviceSample(library, handle)
    last.violated(library, handle)
    held = {
        name: last.violations[name] - before for name, before in first.violations.items() if name in last.violations
    }
    reasons = {name for reading in (*samples, last) for name in reading.reasons or ()}
    if held or last.reasons is not None:
        raised = reasons | {name for name, nanoseconds in held.items() if nanoseconds > 0}
        stated.put("measurement.health.throttle_reasons", sorted(raised))
    temperatures = [item.temperature for item in (first, *samples, last) if item.temperature is not None]
    if temperatures:
        stated.put("measurement.health.temperature_celsius", max(temperatures))
    if len(samples) >= 3:
        from statistics import median

        for name in ("clock_mhz", "power_watts"):
            values = [getattr(item, name) for item in samples if getattr(item, name) is not None]
            if values:
                stated.put(f"measurement.health.{name}", float(median(values)))
        _energy(stated, [item for item in samples if item.at >= stated.kept.get("measured_from", 0.0)])
    seen: dict[str, bool | int | float | str] = {f"violation_seconds.{n}": ns / 1e9 for n, ns in held.items()}
    if first.energy_millijoules is not None and last.energy_millijoules is not None:
        seen["energy_joules"] = (last.energy_millijoules - first.energy_millijoules) / 1000
    for when, reading in (("start", first), ("end", last)):
        for name in ("clock_mhz", "power_watts", "temperature"):
            if getattr(reading, name) is not None:
                seen[f"{when}.{name}"] = getattr(reading, name)
    seen["samples"] = len(samples)
    version = imported.part("pynvml", "__version__")
    stated.evidence("nvml", producer="pynvml", version=None if version is None else str(version), observed=seen)


def _energy(stated: ProbeOutput, samples: list[DeviceSample]) -> None:
    """Mean power of the measured steps: by the driver's own count of joules, else by what lies between two samples."""
    from itertools import pairwise

    if len(samples) < 2 or (seconds := samples[-1].at - samples[0].at) <= 0:
        return
    counted = [item.energy_millijoules for item in samples]
    first, last = counted[0], counted[-1]
    if first is not None and last is not None:
        joules = (last - first) / 1000
    else:
        power = [(item.at, item.power_watts) for item in samples if item.power_watts is not None]
        if len(power) < len(samples):
            return
        joules = sum((b - a) * (p + q) / 2 for (a, p), (b, q) in pairwise(power))
    for leaf, value in (("watts_per_chip", joules / seconds), ("seconds", seconds), ("samples", len(samples))):
        stated.put(f"measurement.energy.{leaf}", value)
    stated.put("measurement.energy.meter", "chip")


def _ask(library: Any, name: str, *given: Any) -> Any:
    """What NVML says; None where this device, driver or binding does not know."""
    call = getattr(library, name, None)
    try:
        return None if call is None else call(*given)
    except Exception:
        return None
