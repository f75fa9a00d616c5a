"""NVML, from a module that stands in for pynvml."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from probe_stage import Stage, StandIn, stand_in
from receipts.emit.probes import nvml

__all__ = ["stand_in"]


class Library:
    """Stands in for pynvml: one device whose counters grow with every reading of its energy."""

    def __init__(self, mask: int = 0x1, thermal: int = 0) -> None:
        self.mask, self.thermal = mask, thermal
        self.open = 0
        self.energy = 1_000_000
        self.identity = ""

    def put(self, stand_in: StandIn) -> None:
        names = [name for name in dir(self) if name.startswith("nvml")]
        stand_in("pynvml", __version__="13.0", **{name: getattr(self, name) for name in names})
        uuid = SimpleNamespace(uuid="1234-abcd")
        cuda: dict[str, Any] = {"current_device": lambda: 0, "get_device_properties": lambda device: uuid}
        stand_in("torch.cuda", _initialized=True, **cuda)

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's own name)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, identity: str) -> str:  # noqa: N802
        self.identity = identity
        return identity

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return 61

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 650_500

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        self.energy += 500_000
        return self.energy

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return self.mask

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> Any:  # noqa: N802
        if policy == 5:
            raise RuntimeError("Not Supported")
        return SimpleNamespace(violationTime=self.energy * self.thermal if policy == 1 else 0)


def run(stand_in: StandIn, library: Library, wait: float = 0.0) -> Stage:
    library.put(stand_in)
    stage = Stage("nvml")
    nvml.at_phase(stage.stated, "post_init")
    nvml.at_phase(stage.stated, "post_step0")
    time.sleep(wait)
    nvml.at_end(stage.stated)
    return stage


def test_a_healthy_device_has_no_reason_and_no_clock_of_a_moment(stand_in: StandIn) -> None:
    library = Library()
    stage = run(stand_in, library)
    assert stage.get("measurement.health.throttle_reasons") == []
    assert stage.get("measurement.health.temperature_celsius") == 61
    assert stage.get("measurement.health.clock_mhz") is None
    assert stage.observed("nvml")["energy_joules"] == 500
    assert library.identity == "GPU-1234-abcd"
    assert library.open == 0
    assert stage.notes == ""


def test_reasons_of_the_end_and_violations_of_the_whole_run_are_raised(stand_in: StandIn) -> None:
    stage = run(stand_in, Library(mask=0x1 | 0x4, thermal=2))
    assert stage.get("measurement.health.throttle_reasons") == ["sw_power_cap", "thermal"]


def test_samples_are_taken_where_they_are_asked_for(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nvml.INTERVAL, "0.01")
    stage = run(stand_in, Library(), 0.3)
    assert stage.get("measurement.health.clock_mhz") == 1980
    assert stage.get("measurement.health.power_watts") == 650.5
    assert stage.observed("nvml")["samples"] >= 3


@pytest.mark.parametrize("counts", [True, False])
def test_energy_is_that_of_the_measured_steps_by_the_drivers_count_or_by_the_power(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    monkeypatch.setenv(nvml.INTERVAL, "0.01")
    library = Library()
    if not counts:
        monkeypatch.setattr(library, "nvmlDeviceGetTotalEnergyConsumption", lambda _: None)
    library.put(stand_in)
    stage = Stage("nvml")
    nvml.at_phase(stage.stated, "post_init")
    time.sleep(0.1)
    nvml.at_phase(stage.stated, "post_step0")
    before = len(stage.stated.kept["sampler"].readings)
    nvml.at_warm(stage.stated)
    time.sleep(0.2)
    nvml.at_end(stage.stated)
    samples, seconds = stage.get("measurement.energy.samples"), stage.get("measurement.energy.seconds")
    assert 2 <= samples <= stage.observed("nvml")["samples"] - before + 1
    watts = (samples - 1) * 500 / seconds if counts else 650.5
    assert stage.get("measurement.energy.watts_per_chip") == pytest.approx(watts)
    assert stage.get("measurement.energy.meter") == "chip"


@pytest.mark.parametrize(("text", "seconds"), [("", None), ("soon", None), ("0", None), ("nan", None), ("2", 2.0)])
def test_an_interval_is_a_sensible_number(text: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nvml.INTERVAL, text)
    assert nvml.interval() == seconds


def test_without_cuda_of_the_job_nvml_is_left_alone(stand_in: StandIn) -> None:
    library = Library()
    library.put(stand_in)
    stand_in("torch.cuda", _initialized=False)
    stage = Stage("nvml")
    nvml.at_phase(stage.stated, "post_init")
    nvml.at_end(stage.stated)
    assert (library.identity, stage.facts.values) == ("", {})
