"""Memory as runtimes print it, and the compiler's plans."""

from __future__ import annotations

import json

import pytest

from receipts.ingest.reader import LineReader
from receipts.ingest.reading import MemoryRow, Reading
from receipts.ingest.scan import scan
from receipts.readers.xla.memory import MemoryInfoReader

STATS = {"num_allocs": 3, "bytes_in_use": 10, "peak_bytes_in_use": 20, "bytes_limit": 100, "bytes_reserved": 0}


def reading(text: str, kind: type[LineReader] = MemoryInfoReader) -> Reading:
    found = scan([text.encode()], [kind])
    assert len(found) == 1
    return found[0]


def row(text: str, kind: type[LineReader] = MemoryInfoReader) -> MemoryRow:
    found = reading(text, kind).memory
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "used", "limit", "peak"),
    [
        ("{'kb_free': 1000, 'kb_total': 4000}", 3000 * 1024, 4000 * 1024, None),
        ("{'bytes_used': 7, 'bytes_limit': 9}", 7, 9, None),
        ("{'bytes_used': 7, 'bytes_limit': 9, 'peak_bytes_used': 8}", 7, 9, 8),
        (str(STATS), 10, 100, 20),
        (json.dumps(STATS), 10, 100, 20),
        ("mem bytes_in_use=10 peak_bytes_in_use=20 bytes_limit=100", 10, 100, 20),
    ],
)
def test_every_generation_of_statistics(text: str, used: int, limit: int, peak: int | None) -> None:
    found = row(text)
    assert (found.bytes_used, found.bytes_limit, found.peak_bytes) == (used, limit, peak)


@pytest.mark.parametrize(
    ("label", "chip", "step"),
    [
        ("TPU_3(process=0,(1,1,0,0)) ", 3, None),
        ("TpuDevice(id=2, process_index=0, coords=(0,1,0), core_on_chip=0): ", 2, None),
        ("cuda:1 ", 1, None),
        ("memory of chip 5: ", 5, None),
        ("Память на чипе 4: ", 4, None),
        ("step 20: ", None, 20),
        ("20: ", None, None),
        ("", None, None),
    ],
)
def test_the_words_before_a_dict_name_the_chip_or_the_step(label: str, chip: int | None, step: int | None) -> None:
    found = row(f"{label}{STATS}")
    assert (found.chip, found.step) == (chip, step)


@pytest.mark.parametrize("indent", [None, 1])
def test_devices_of_a_json_document(indent: int | None) -> None:
    document = {
        "after": [{"device": "tpu:1", "memory_stats": STATS}, {"device": "tpu:6", "memory_stats": {**STATS, "pool": 1}}]
    }
    assert [item.chip for item in reading(json.dumps(document, indent=indent)).memory] == [1, 6]


def test_a_dict_over_several_lines_is_one_row() -> None:
    text = "{'bytes_in_use': 10,\n 'bytes_limit': 100,\n 'peak_bytes_in_use': 20}\n"
    assert [item.peak_bytes for item in reading(text + text.replace("20", "30")).memory] == [20, 30]


def test_a_gpus_pool_is_what_is_reserved() -> None:
    assert row(str({**STATS, "pool_bytes": 50, "peak_pool_bytes": 60})).peak_reserved_bytes == 60


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Bad StatusOr access: UNIMPLEMENTED: GetAllocatorStats is not supported",
        "RuntimeError: Check failed: device (SPMD:0 vs. SPMD:0)MemoryInfo not supported for SPMD virtual device.",
        '{"device": "cpu:0", "memory_stats": null}',
        "cpu:0 memory_stats(): None",
    ],
)
def test_memory_that_the_runtime_does_not_tell_is_unavailable_and_not_zero(text: str) -> None:
    found = reading(text)
    assert found.memory_unavailable
    assert found.memory == []


def test_one_device_without_statistics_makes_the_others_no_less_known() -> None:
    found = reading(json.dumps([{"device": "a", "memory_stats": None}, {"device": "tpu:1", "memory_stats": STATS}]))
    assert found.memory_unavailable is None
    assert len(found.memory) == 1


@pytest.mark.parametrize("indent", [None, 2, "repr"])
def test_a_plan_is_no_memory_in_use(indent: int | str | None) -> None:
    plan = {"argument_size_in_bytes": 5, "output_size_in_bytes": 6, "temp_size_in_bytes": 7, "alias_size_in_bytes": 0}
    if isinstance(indent, str):
        text = "CompiledMemoryStats(" + ", ".join(f"{name}={value}" for name, value in plan.items()) + ")"
    else:
        text = json.dumps(plan, indent=indent)
    found = reading(text)
    assert found.counters == plan
    assert (found.compile.argument_bytes, found.compile.output_bytes, found.compile.temp_bytes) == (5, 6, 7)
    assert found.memory == []


def test_of_several_programs_the_largest_plan_stands() -> None:
    plans = [f"CompiledMemoryStats(argument_size_in_bytes={size}, temp_size_in_bytes=1)" for size in (3, 90, 7)]
    found = reading("\n".join(plans))
    assert found.compile.argument_bytes == 90
    assert found.remarks


@pytest.mark.parametrize(
    "text", ["{'bytes_limit': " + "9" * 500 + "}", "{" * 5000 + "bytes_limit", "bytes_in_use=1e999"]
)
def test_broken_statistics_are_no_row(text: str) -> None:
    assert not [item for found in scan([text.encode()], [MemoryInfoReader]) for item in found.memory]


def test_a_runtime_that_has_not_implemented_it_is_unavailable() -> None:
    text = b"RuntimeError: ./runtime/pjrt_client.h:137 : GetMemoryInfo not implemented\n"
    (reading,) = scan([text], [MemoryInfoReader])
    assert reading.memory == []
    assert reading.memory_unavailable is not None


def test_the_line_above_a_document_names_its_chip() -> None:
    assert row(f"device 3 memory_stats:\n{json.dumps(STATS, indent=2)}\n").chip == 3


def test_a_line_further_above_names_no_chip() -> None:
    assert row("device 3 memory_stats:\nstep\nstep\nstep\nbytes_in_use=10 bytes_limit=100\n").chip is None
