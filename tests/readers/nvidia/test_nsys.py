"""Nsight Systems: tables of `nsys stats`, and exports to SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.nvidia.nsys import NsysDatabaseReader, NsysStatsReader

ENGINE = "void transformer_engine::normalization::rmsnorm_fwd_general_kernel<float>(float *)"
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_1x1x1_kernel0_0"
FP8 = "nvjet_sm90_qqtst_64x8_64x16_1x2_h_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HEAD = " Time (%)  Total Time ({unit})  Instances  Avg ({unit})  {name}"


def table(unit: str, rows: list[tuple[float, str, int, str]], name: str = "Name") -> list[str]:
    head = f" Time (%)  Total Time ({unit})  Instances  Avg ({unit})  {name.center(60)}"
    dashes = f" --------  ---------------  ---------  --------  {'-' * 60}"
    body = [f" {share:8.1f}  {total:>15}  {count:9d}  {1.0:8.1f}  {kernel}" for share, total, count, kernel in rows]
    return ["", " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):", "", head, dashes, *body, ""]


def stats(*lines: str) -> Reading:
    (reading,) = scan(["\n".join((*lines, "")).encode()], [NsysStatsReader])
    return reading


def values(reading: Reading, leaf: str) -> set[str]:
    return {item.value for item in reading.seen if item.leaf == leaf}


@pytest.mark.parametrize(("unit", "total"), [("ns", "1,500,000"), ("us", "1500"), ("ms", "1.5")])
def test_times_are_of_the_unit_in_the_head(unit: str, total: str) -> None:
    reading = stats(*table(unit, [(90.0, total, 3, FP8)]))
    timing = reading.timings["kernel.gemm.cublas.fp8"]
    assert (timing.samples, timing.seconds) == (3, pytest.approx(1.5e-3))


def test_kernels_of_a_table_are_what_ran() -> None:
    reading = stats(*table("ns", [(50.0, "900", 3, FP8), (30.0, "500", 2, CUDNN[:58] + "…"), (1.0, "5", 9, ENGINE)]))
    assert (values(reading, "attention"), values(reading, "gemm")) == ({"te_fused"}, {"te_fp8"})
    assert {item.level for item in reading.seen} == {"kernels"}
    assert reading.steps_covered is None


def test_a_csv_table_is_read_with_its_quoted_names() -> None:
    name = '"void pytorch_flash::flash_fwd_kernel<T<(int)64, (int)128>>(P, int)"'
    reading = stats("Time (%),Total Time (ns),Instances,Avg (ns),Name", f"80.0,5000,10,500.0,{name}", "", "other text")
    assert values(reading, "attention") == {"sdpa_flash"}
    assert reading.records == 1


def test_ranges_of_nvtx_are_no_kernels() -> None:
    head = " Time (%)  Total Time (ns)  Instances  Avg (ns)   Style                                Range"
    dashes = " --------  ---------------  ---------  --------  -------  ------------------------------"
    row = "    100.0              900          3     300.0  PushPop  :flash_fwd_kernel of the model "
    assert scan(["\n".join((head, dashes, row, "")).encode()], [NsysStatsReader]) == []


def export(path: Path, kernels: list[tuple[str, int, int, int]], *, marks: tuple[str, ...] = ()) -> Path:
    names = sorted({name for name, *_ in kernels})
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"
            " (start INT, end INT, deviceId INT, demangledName INT, shortName INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, bytes INT, copyKind INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, nameId INT);"
            "CREATE TABLE TARGET_INFO_GPU (name TEXT, computeMajor INT, computeMinor INT);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, textId INT);"
            "INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H200', 9, 0);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1, 4, 2), (1, 2, 900000, 1), (2, 3, 8, 2);"
        )
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(names)))
        rows = [(begin, end, device, names.index(name), 0) for name, device, begin, end in kernels]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)", rows)
        database.executemany("INSERT INTO NVTX_EVENTS VALUES (0, 1, ?, NULL)", [(mark,) for mark in marks])
        database.commit()
    return path


def test_an_export_tells_kernels_copies_steps_and_devices(tmp_path: Path) -> None:
    kernels = [(FP8, 0, 0, 1_000_000), (CUDNN, 0, 0, 500_000), (ENGINE, 0, 0, 10), (FP8, 0, 5, 1_000_005)]
    path = export(tmp_path / "any", kernels, marks=("ProfilerStep#1", "ProfilerStep#2", "forward"))
    (reading,) = read(path).readings
    assert (values(reading, "attention"), values(reading, "gemm")) == ({"te_fused"}, {"te_fp8"})
    assert (reading.steps_covered, reading.host_transfers, reading.fallbacks) == (2, 2, {})
    assert reading.stated["hardware.accelerator"].value == "NVIDIA H200"
    assert reading.timings["kernel.gemm.cublas.fp8"].seconds == pytest.approx(2e-3)


def test_an_export_tells_exposed_communication(tmp_path: Path) -> None:
    kernels = [(NCCL, 0, 0, 4_000_000), (FP8, 0, 1_000_000, 2_000_000)]
    (reading,) = read(export(tmp_path / "any", kernels)).readings
    assert any("device 0: 0.003 s" in remark.text for remark in reading.remarks)


def test_an_export_says_on_which_host_in_which_process_and_when_its_kernels_ran(tmp_path: Path) -> None:
    path = export(tmp_path / "any", [(FP8, 0, 1_000_000_000, 1_000_001_000), (ENGINE, 0, 3_000_000_000, 3_000_000_010)])
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);"
            "CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INT, name TEXT, value TEXT);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1772442000000000000, '', '');"
            "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'CpuCores', '8'), (1, 'Hostname', 'node-3');"
            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN globalPid INT;"
            f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = {(1 << 56) + (4711 << 24)};"
        )
        database.commit()
    (reading,) = read(path).readings
    assert (reading.host, reading.processes) == ("node-3", {4711})
    assert reading.between == pytest.approx((1772442001.0, 1772442003.0), abs=1e-5)
    (bare,) = read(export(tmp_path / "bare", [(FP8, 0, 0, 1)])).readings
    assert (bare.host, bare.processes, bare.between) == ("", set(), None)


def test_reading_leaves_the_export_as_it_was(tmp_path: Path) -> None:
    path = export(tmp_path / "any", [(FP8, 0, 0, 1)])
    before = path.read_bytes()
    read(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["any"]


def test_a_view_in_place_of_the_table_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INT, value TEXT); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE "
            "c(start) AS (SELECT 1 UNION ALL SELECT start FROM c) SELECT start, 1 AS end, 0 AS demangledName FROM c;"
        )
    (reading,) = read(path).readings
    assert {remark.kind for remark in reading.remarks} == {"missing"}


def test_a_damaged_export_is_remarked(tmp_path: Path) -> None:
    path = export(tmp_path / "any", [(FP8, 0, 0, 1)])
    path.write_bytes(path.read_bytes()[:5000])
    (reading,) = read(path).readings
    assert "broken" in {remark.kind for remark in reading.remarks}


def test_a_database_of_another_program_is_not_claimed() -> None:
    assert not NsysDatabaseReader.claims(b"SQLite format 3\0" + b"CREATE TABLE receipts (id TEXT)")
