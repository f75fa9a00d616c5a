"""Memory lines: MiB of Megatron-LM, decimal gigabytes of Megatron-Bridge, several ranks on one line."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.megatron.log import Megatron

ROW = (
    "(after 2 iterations) memory (MB) | allocated: 100.5 | max allocated: 200.25 | reserved: 300.0"
    " | max reserved: 300.0"
)


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [Megatron])
    return found


def test_megabytes_are_of_1024_squared() -> None:
    (row,) = read(f"[Rank 3] {ROW}\n").memory
    assert (row.chip, row.step, row.bytes_used) == (3, 2, 105_381_888)
    assert (row.peak_bytes, row.peak_reserved_bytes) == (209_977_344, 314_572_800)


def test_ranks_glued_on_one_line_are_rows_of_their_own() -> None:
    rows = read(f"[Rank 3] {ROW}[Rank 1] {ROW}[Rank 2] {ROW}\n\n\n").memory
    assert [row.chip for row in rows] == [3, 1, 2]


@pytest.mark.parametrize("width", [50, 80, 100, 120])
def test_a_wrapped_row_is_read_to_its_end(width: int) -> None:
    text = f"[Rank 3] {ROW}"
    wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    (row,) = read(wrapped + "\n").memory
    assert row.peak_reserved_bytes == 314_572_800


def test_the_first_version_names_no_rank_and_calls_it_cached() -> None:
    text = " after 100 iterations memory (MB) | allocated: 1.0 | max allocated: 2.0 | cached: 3.0 | max cached: 4.0\n"
    (row,) = read(text).memory
    assert (row.chip, row.step, row.peak_reserved_bytes) == (None, 100, 4 << 20)


def test_bridge_counts_in_powers_of_ten_by_its_own_names() -> None:
    text = (
        "job/0 [Rank 8] (after 5 iterations) memory (GB) | mem-allocated-gigabytes: 51.5 | mem-active-gigabytes: 51.5"
        " | mem-reserved-gigabytes: 70.25 | mem-max-allocated-gigabytes: 61.25 | mem-max-active-gigabytes: 62.0"
        " | mem-max-reserved-gigabytes: 70.25 | mem-alloc-retires: 2 | mem-allocated-count: 571"
        "[Rank 9] (after 5 iterations) memory (GB) | mem-allocated-gigabytes: 1.0 | mem-max-allocated-gigabytes: 2.0"
        " | mem-max-reserved-gigabytes: 3.0 | mem-alloc-retires: 0 | mem-allocated-count: 3\n"
    )
    found = read(text)
    assert found.source == "megatron-bridge"
    assert [(row.chip, row.peak_bytes) for row in found.memory] == [(8, 61_250_000_000), (9, 2_000_000_000)]
    assert found.counters["mem-alloc-retires"] == 2


def test_zeros_are_no_memory() -> None:
    row = "memory (MB) | allocated: 0.00 | max allocated: 0.00 | reserved: 0.00 | max reserved: 0.00"
    text = f"[Rank 0] (after 1 iterations) {row}\n"
    world = "using world size: 1, data-parallel size: 1\n"
    found = read(world + text)
    assert found.memory == []
    assert found.memory_unavailable


def test_an_estimate_is_a_prediction_and_no_memory() -> None:
    world = "using world size: 1, data-parallel size: 1\n"
    text = "Theoretical memory footprints: weight and optimizer=100.50 MB, activation=10.00 MB, total=110.50 MB\n"
    found = read(world + text)
    assert found.memory == []
    assert found.predicted == {"weight and optimizer": 105_381_888, "activation": 10_485_760, "total": 115_867_648}
    assert found.counters == {}
