"""nvidia-smi: tables of one moment, and monitors that ran along."""

from __future__ import annotations

import pytest

from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.nvidia.smi import NvidiaSmiReader

MIB = 1 << 20
TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 575.51.03              Driver Version: 575.51.03      CUDA Version: 12.9     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |
| N/A   30C    P0             76W /  700W |    1024MiB / 143771MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    On  |   00000000:3B:00.0 Off |                    0 |
| N/A   29C    P0             75W /  700W |       4MiB / 143771MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|=========================================================================================|
|    0   N/A  N/A          4242      C   /usr/bin/python3                        1010MiB  |
|    1   N/A  N/A          4343      G   /usr/lib/xorg/Xorg                         4MiB  |
+-----------------------------------------------------------------------------------------+
step 1
"""
QUERY = """\
index, name, memory.used [MiB], memory.total [MiB], power.draw [W], clocks.sm [MHz], temperature.gpu, \
clocks_event_reasons.sw_power_cap
0, NVIDIA H200, 100 MiB, 143771 MiB, 600.00 W, 1900 MHz, 60, Active
1, NVIDIA H200, 300 MiB, 143771 MiB, 620.00 W, 1710 MHz, 66, Not Active
0, NVIDIA H200, 250 MiB, 143771 MiB, 600.00 W, 1900 MHz, 61, Active
1, NVIDIA H200, 200 MiB, 143771 MiB, [N/A], 1710 MHz, 64, Not Active
"""
DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb
# Idx      W      C      C      %      %    MHz    MHz     MB
    0    117     31     40     99     50   2619   1980   1000
    1    119     35     41     98     51   2619   1980      -
# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb
    0    121     33     40     99     50   2619   1980   3000
"""


def readings(text: str, kind: type[LineReader] = NvidiaSmiReader) -> list[Reading]:
    return scan([text.encode()], [kind])


def test_a_table_tells_the_gpus_the_driver_and_where_processes_compute() -> None:
    (reading,) = readings(TABLE)
    stated = {path: item.value for path, item in reading.stated.items()}
    assert stated == {"platform.driver": "575.51.03", "hardware.accelerator": "NVIDIA H200", "hardware.chips": 1}
    assert reading.counters["gpus"] == 2


def test_the_cuda_of_a_driver_is_not_the_runtimes() -> None:
    (reading,) = readings(TABLE)
    assert "platform.cuda" not in reading.stated
    assert any("CUDA 12.9" in remark.text for remark in reading.remarks)


def test_what_one_moment_shows_as_used_is_no_measurement_of_the_run() -> None:
    (reading,) = readings(TABLE)
    assert not reading.memory
    assert reading.counters["gpu.0.bytes_used"] == 1024 * MIB
    assert reading.counters["gpu.1.bytes_limit"] == 143771 * MIB


def test_newer_drivers_name_their_versions_otherwise() -> None:
    (reading,) = readings("| NVIDIA-SMI 590.44.01      KMD Version: 590.44.01     CUDA UMD Version: 13.1 |\n")
    assert reading.stated["platform.driver"].value == "590.44.01"


def test_a_list_of_gpus_names_them() -> None:
    (reading,) = readings("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0c4a3b41-1111-2222-3333-444455556666)\n")
    assert reading.stated["hardware.accelerator"].value == "NVIDIA H100 80GB HBM3"


def test_a_repeated_query_keeps_the_most_that_was_used_by_gpu() -> None:
    (reading,) = readings(QUERY)
    rows = {row.chip: (row.bytes_used, row.bytes_limit, row.place.line) for row in reading.memory}
    assert rows == {0: (250 * MIB, 143771 * MIB, 4), 1: (300 * MIB, 143771 * MIB, 3)}


def test_a_repeated_query_tells_the_health_of_the_gpus() -> None:
    (reading,) = readings(QUERY)
    health = {path.rpartition(".")[2]: item.value for path, item in reading.stated.items() if ".health." in path}
    assert health["clock_mhz"] == 1805.0
    assert health["clock_spread"] == pytest.approx(0.1)
    assert health["power_watts"] == 600.0
    assert health["temperature_celsius"] == 66.0
    assert health["throttle_reasons"] == ["sw_power_cap"]


def throttles(head: str, *rows: str) -> object:
    (reading,) = readings(
        "\n".join([f"index, clocks.sm [MHz], {head}", *(f"0, 1980 MHz, {row}" for row in rows)]) + "\n"
    )
    stated = reading.stated.get("measurement.health.throttle_reasons")
    return None if stated is None else stated.value


@pytest.mark.parametrize("family", ["clocks_event_reasons", "clocks_throttle_reasons"])
def test_the_mask_of_throttle_reasons_is_read(family: str) -> None:
    head = f"{family}.active"
    assert throttles(head, "0x0000000000000000", "0x0000000000000040") == ["hw_thermal_slowdown"]
    assert throttles(head, "0x0000000000000024", "0x0000000000000088") == [
        *("hw_power_brake_slowdown", "hw_slowdown"),
        *("sw_power_cap", "sw_thermal_slowdown"),
    ]
    # Idle, and clocks that an application set.
    assert throttles(head, "0x0000000000000001", "0x0000000000000002") == []


def test_reasons_that_were_not_looked_at_are_no_statement_that_nothing_throttled() -> None:
    assert throttles("clocks_event_reasons.active", "[N/A]", "[N/A]") is None
    assert throttles("clocks_event_reasons.active", "0x0000000000000000", "[N/A]") is None
    assert throttles("clocks_event_reasons.sw_power_cap", "Not Active", "Not Active") is None
    assert throttles("clocks_event_reasons.sw_power_cap", "Not Active", "Active") == ["sw_power_cap"]
    every = ", ".join(f"clocks_event_reasons.{name}" for name in ("hw_slowdown", "sw_power_cap", "sw_thermal_slowdown"))
    assert throttles(every, *["Not Active, Not Active, Not Active"] * 2) == []


def test_dmon_is_a_monitor_with_heads_in_between() -> None:
    (reading,) = readings(DMON)
    assert [(row.chip, row.bytes_used) for row in reading.memory] == [(0, 3000 * MIB)]
    assert reading.stated["measurement.health.power_watts"].value == 119.0


def test_rows_end_where_other_text_begins() -> None:
    (reading,) = readings(
        QUERY + "iteration 1, loss 2.5\niteration 2, loss 2.4\niteration 3, loss 2.3\n" + "0, x\n" * 9
    )
    assert reading.counters == {"gpus": 2}
