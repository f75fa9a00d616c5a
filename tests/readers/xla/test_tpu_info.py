"""The tables of `tpu-info`, in the drawings of its versions."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.xla.memory import TpuInfoReader

GIB = 1 << 30

BOXES = """TPU Chips
┏━━━━━━━━━━━━━┳━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━┓
┃ Chip        ┃ Type        ┃ Devices ┃ PID    ┃
┡━━━━━━━━━━━━━╇━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━┩
│ /dev/vfio/0 │ TPU v5e chip│ 1       │ 77     │
│ /dev/vfio/1 │ TPU v5e chip│ 1       │ 77     │
└─────────────┴─────────────┴─────────┴────────┘
TPU Runtime Utilization
┏━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
┃ Device ┃ {column} ┃ Duty cycle ┃
┡━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
│ 8      │ 1.50 GiB / 15.75 GiB │     99.00% │
│ 13     │ 512.00 MiB / 15.75 GiB │            │
└────────┴──────────────────────┴────────────┘
TensorCore Utilization
┏━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ Chip ID ┃ TensorCore Utilization ┃
┡━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━┩
│ 0       │                  13.60%│
└─────────┴────────────────────────┘
"""
MARKDOWN = """Libtpu version: 0.0.21
Accelerator type: v6e

TPU Runtime Utilization

| Chip | HBM Usage (GiB)       | Duty cycle |
|------|-----------------------|------------|
| 0    | {used} GiB / 31.25 GiB |    100.00% |

TensorCore Utilization

| Core ID | TensorCore Utilization |
|---------|------------------------|
| 0       | 13.60%                 |
"""


def reading(text: str) -> Reading:
    found = scan([text.encode()], [TpuInfoReader])
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("column", ["Memory usage        ", "HBM usage           ", "HBM Usage (GiB)     "])
def test_the_runtimes_devices_keep_their_own_numbers(column: str) -> None:
    found = reading(BOXES.replace("{column}", column))
    assert [(item.chip, item.bytes_used) for item in found.memory] == [(8, round(1.5 * GIB)), (13, GIB // 2)]
    assert {item.bytes_limit for item in found.memory} == {round(15.75 * GIB)}


def test_chips_are_those_of_the_host() -> None:
    stated = reading(BOXES).stated
    assert stated["hardware.chips"].value == 2
    assert stated["hardware.accelerator"].value == "TPU v5e"


def test_the_header_names_versions() -> None:
    found = reading(MARKDOWN.replace("{used}", "3.00"))
    assert found.stated["platform.libtpu"].value == "0.0.21"
    assert found.stated["hardware.accelerator"].value == "TPU v6e"
    assert found.memory[0].bytes_used == 3 * GIB


def test_a_stream_keeps_the_last_figures_and_tells_the_highest() -> None:
    found = reading(MARKDOWN.replace("{used}", "9.00") + MARKDOWN.replace("{used}", "4.00"))
    assert [item.bytes_used for item in found.memory] == [4 * GIB]
    assert f"{9 * GIB:,}" in found.remarks[0].text


def test_the_list_of_versions() -> None:
    found = reading("- tpu-info version: 0.8.0\n- libtpu version: 0.0.18\n- accelerator type: v6e\n")
    assert found.version == "0.8.0"
    assert found.stated["platform.libtpu"].value == "0.0.18"


def test_a_version_that_it_cannot_tell_is_not_stated() -> None:
    assert reading("- libtpu version: N/A (incompatible environment)\n").stated == {}


def test_no_runtime_is_unavailable_and_not_zero() -> None:
    found = reading("| Device | HBM Usage (GiB) |\n|---|---|\n| 0      | N/A             |\n")
    assert found.memory == []
    assert found.memory_unavailable


def test_rows_that_lost_their_frame_and_head_are_read() -> None:
    text = "TPU Runtime Utilization\n│ 4 │ 1.50 GiB / 15.75 GiB │ 99.00% │\nTensorCore Utilization\n│ 0 │ 13.60% │\n"
    (reading,) = scan([text.encode()], [TpuInfoReader])
    assert [(row.chip, row.bytes_used) for row in reading.memory] == [(4, round(1.5 * GIB))]


def test_a_page_that_lost_the_bars_between_cells_is_read() -> None:
    box = BOXES.replace("{column}", "HBM usage           ")
    lines = [
        f"{line[0]}{line[1:-1].replace('│', ' ').replace('┃', ' ')}{line[-1]}" if line[0] in "│┃" else line
        for line in box.splitlines()
    ]
    found, whole = reading("\n".join(lines)), reading(box)
    assert [(item.chip, item.bytes_used) for item in found.memory] == [(8, round(1.5 * GIB)), (13, GIB // 2)]
    assert found.stated["hardware.chips"].value == whole.stated["hardware.chips"].value == 2
