"""Memory as torch prints it: its summary, its statistics, and pairs of a name and a figure."""

from __future__ import annotations

from receipts.ingest.reading import MemoryRow, Reading
from receipts.ingest.scan import scan
from receipts.readers.torch.memory import TorchMemoryReader

TABLE = """
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 2                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 4         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |    512 KiB |      3 GiB |     90 GiB |     89 GiB |
|       from large pool |    500 KiB |      3 GiB |     90 GiB |     89 GiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |      5 MiB |      6 GiB |     70 GiB |     64 GiB |
|---------------------------------------------------------------------------|
"""


def readings(text: str) -> list[Reading]:
    return scan([text.encode()], [TorchMemoryReader])


def reading(text: str) -> Reading:
    (found,) = readings(text)
    return found


def row(text: str) -> MemoryRow:
    (found,) = reading(text).memory
    return found


def test_torchs_summary_is_read_for_its_device() -> None:
    found = row(TABLE)
    assert (found.chip, found.bytes_used, found.peak_bytes) == (2, 512 << 10, 3 << 30)
    assert found.peak_reserved_bytes == 6 << 30
    assert reading(TABLE).counters == {"num_ooms": 1, "num_alloc_retries": 4}


def test_torchs_statistics_are_a_dict_of_dotted_names() -> None:
    text = (
        "OrderedDict([('allocated_bytes.all.current', 5), ('allocated_bytes.all.peak', 7), "
        "('reserved_bytes.all.peak', 21)])"
    )
    found = row(text)
    assert (found.bytes_used, found.peak_bytes, found.peak_reserved_bytes) == (5, 7, 21)


def test_a_printed_peak_counts_where_its_unit_stands() -> None:
    found = row("[rank2]: torch.cuda.max_memory_allocated() = 12.5 GiB")
    assert (found.chip, found.peak_bytes) == (2, round(12.5 * (1 << 30)))
    assert readings("max_memory_allocated: 55\n") == []


def test_a_pair_without_a_unit_in_its_key_is_not_guessed() -> None:
    assert readings("rank=1 peak_alloc_gb=12.5\n") == []


def test_pairs_with_a_binary_unit_are_a_row_of_their_rank() -> None:
    (reading,) = readings("[mem] rank=9 device=1 step=40 peak_alloc_gib=1.5 peak_reserved_mib=2048\n")
    (row,) = reading.memory
    assert (row.chip, row.step, row.peak_bytes, row.peak_reserved_bytes) == (9, 40, 3 << 29, 2 << 30)


def test_pairs_in_bytes_are_bytes() -> None:
    (reading,) = readings("rank=0 peak_reserved_bytes=91000000000\n")
    assert [row.peak_reserved_bytes for row in reading.memory] == [91_000_000_000]
