"""Devices and chips: where a chip is two devices, counts and rates of devices become those of chips."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import at
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read

_STEP = "completed step: {}, seconds: 1.500, TFLOP/s/device: 160.250, Tokens/s/device: 3000.500, loss: 9.100\n"


def _log(folder: Path, chip: str) -> Ingested:
    (path := folder / "run.log").write_text(
        f"System Information: Jax Backend: PJRT C API\nTFRT {chip}\nNum_devices: 16, shape (16,)\n"
        + "".join(map(_STEP.format, range(3, 9)))
        + "".join(f"\tUsing (GB) 10.0 / 94.75 (10.6%) on TPU_{at}(process=0)\n" for at in range(16))
    )
    return assemble([read(path)], Options())


def test_devices_of_a_chip_of_two_are_half_as_many_chips_of_twice_the_rate(tmp_path: Path) -> None:
    found = _log(tmp_path, "TPU7x")
    assert at(found, "hardware.chips") == 8
    assert at(found, "measurement.stated.tflops_per_second_per_chip") == 320.5
    assert at(found, "measurement.step_tokens_per_second") == [3000.5 * 16] * 6
    rows = at(found, "memory.chips")
    assert [row["chip"] for row in rows] == list(range(8))
    alone = at(_log(tmp_path, "TPU v6 lite"), "memory.chips")
    assert rows[0]["bytes_used"] == 2 * alone[0]["bytes_used"]


def test_devices_of_a_chip_of_one_are_chips(tmp_path: Path) -> None:
    found = _log(tmp_path, "TPU v6 lite")
    assert at(found, "hardware.chips") == 16
    assert at(found, "measurement.stated.tflops_per_second_per_chip") == 160.25


def test_reading_a_file_twice_halves_it_once(tmp_path: Path) -> None:
    _log(tmp_path, "TPU7x")
    evidence = [read(tmp_path / "run.log")]
    first, second = assemble(evidence, Options()), assemble(evidence, Options())
    assert at(first, "hardware.chips") == at(second, "hardware.chips") == 8
