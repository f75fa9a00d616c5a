"""Spans of an export of Nsight Systems: launches, NVTX ranges, graphs, two processes, and what a table lacks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from receipts.ingest.source import Source
from receipts.plugins.why.profile import Profile, read_profiles
from receipts.readers.nvidia.nsys import NsysDatabaseReader

RANK = 1 << 24  # the globalPid of the first process; threads are below it
US = 1000


class Export:
    """An export of two-kernel steps of 100 µs: a product, and a sum that the host launches late."""

    def __init__(self, path: Path, *, runtime: bool = True, graph: bool = False) -> None:
        self.path = path
        self._runtime, self._graph = runtime, graph
        self._texts: list[str] = []
        work = "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT"
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(
                "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({work}, demangledName INT, shortName INT);"
                f"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({work}, bytes INT, copyKind INT);"
                f"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ({work}, graphId INT);"
                "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);"
            )
            if runtime:
                database.execute(
                    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME"
                    " (start INT, end INT, globalTid INT, correlationId INT, nameId INT)"
                )

    def steps(self, count: int, *, process: int = 1, device: int = 0, late: int = 0) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:

            def text(value: str) -> int:
                if value not in self._texts:
                    self._texts.append(value)
                    database.execute("INSERT INTO StringIds VALUES (?, ?)", (len(self._texts), value))
                return self._texts.index(value) + 1

            def launch(name: str, at: int) -> int:
                number = database.execute("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0] * 10 + at
                row = (at, at + US, process * RANK + 5, number, text(name))
                if self._runtime:
                    database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)", row)
                return number

            def nvtx(name: str, begin: int, end: int) -> None:
                row = (begin, end, 59, name, None, process * RANK + 5)
                database.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?)", row)

            kernel = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)"
            for step in range(count):
                begin = 100 * US * step + late
                nvtx(f"step {step}", begin, begin + 95 * US)
                nvtx("aten::linear, seq = 5, op_id = 12", begin, begin + 9 * US)
                number = launch("cudaLaunchKernel_v7000", begin + 2 * US)
                name = text("what_is_it")
                database.execute(
                    kernel, (begin + 5 * US, begin + 45 * US, device, 7, number, process * RANK, name, name)
                )
                if self._graph:
                    number = launch("cudaGraphLaunch_v10000", begin + 60 * US)
                    row = (begin + 65 * US, begin + 85 * US, device, 7, number, process * RANK, 3)
                    database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?,?,?,?,?,?,?)", row)
                else:
                    number = launch("cudaLaunchKernel_v7000", begin + 60 * US)
                    name = text("void at::native::vectorized_elementwise_kernel<4>(int)")
                    database.execute(
                        kernel, (begin + 65 * US, begin + 85 * US, device, 7, number, process * RANK, name, name)
                    )

    def profiles(self) -> list[Profile]:
        (reading,) = NsysDatabaseReader().read(Source(self.path, self.path.name))
        (raw,) = reading.extracts.values()
        return read_profiles(raw)


def classes(profile: Profile) -> list[dict[str, int]]:
    return [dict(zip(profile.classes, (time // US for time in step.times), strict=True)) for step in profile.steps]


def test_a_kernel_has_the_range_and_the_step_of_its_launch(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite")
    export.steps(4)
    (profile,) = export.profiles()
    assert (profile.producer, profile.device, profile.marks, len(profile.kept)) == ("nsys", "0", 4, 3)
    # The gap before the second kernel: 15 µs until the host launched it; 5 µs on the device.
    assert classes(profile)[0] == {"gemm": 40, "elementwise": 20, "launch-bound": 15 + 17, "queued, not started": 8}


def test_a_graph_that_is_one_row_is_a_class_of_its_own(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite", graph=True)
    export.steps(4)
    (profile,) = export.profiles()
    assert classes(profile)[0]["CUDA graph"] == 20


def test_two_processes_have_steps_of_their_own(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite")
    export.steps(4)
    export.steps(4, process=2, device=1, late=70 * US)
    first, second = export.profiles()
    assert (first.device, second.device) == ("0", "1")
    assert classes(first) == classes(second)


def test_processes_that_share_a_device_are_told_apart(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite")
    export.steps(4)
    export.steps(4, process=2, late=7 * US)
    assert [profile.device for profile in export.profiles()] == ["0.0", "0.1"]


def test_without_calls_of_the_runtime_no_kernel_is_laid_to_a_step(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite", runtime=False)
    export.steps(4)
    (profile,) = export.profiles()
    assert "CUPTI_ACTIVITY_KIND_RUNTIME" in profile.broken
    assert not profile.steps


@pytest.mark.parametrize("column", ["demangledName", "streamId", "correlationId", "globalPid", "deviceId"])
def test_an_export_without_a_column_is_read_as_far_as_it_goes(tmp_path: Path, column: str) -> None:
    export = Export(tmp_path / "x.sqlite")
    export.steps(4)
    with closing(sqlite3.connect(export.path)) as database:
        database.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    (profile,) = export.profiles()
    assert profile.marks in (0, 4)


def test_the_nodes_of_a_graph_are_kernels_of_its_one_launch(tmp_path: Path) -> None:
    export = Export(tmp_path / "x.sqlite")
    export.steps(4)
    with closing(sqlite3.connect(export.path)) as database, database:
        # As --cuda-graph-trace=node has it: both kernels of a step are of the first call.
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        first = f"SELECT MAX(other.correlationId) FROM {table} AS other WHERE other.start = {table}.start - 60 * {US}"
        database.execute("DELETE FROM NVTX_EVENTS WHERE text LIKE 'aten%'")  # a graph is launched by no operator
        database.execute(f"ALTER TABLE {table} ADD COLUMN graphNodeId INT DEFAULT 7")
        database.execute(f"UPDATE {table} SET correlationId = ({first}) WHERE EXISTS ({first} HAVING COUNT(*))")
    (profile,) = export.profiles()
    # Nothing is late between them: the host launched the whole graph before.
    assert classes(profile)[0] == {"other": 40, "elementwise": 20, "launch-bound": 17, "queued, not started": 23}
