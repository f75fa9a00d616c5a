"""Files are ranks of one launch where each step is printed at one time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ingest_evidence import at, told
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read

_LINE = (
    "[{clock}] iteration {step:8d}/     400 | elapsed time per iteration (ms): 5481.6 | global batch size: 256 | "
    "lm loss: 1.105E+01 |\n"
)


def _logs(folder: Path, *starts: str, clock: str = "2024-04-06 {}") -> Ingested:
    files = []
    for number, start in enumerate(starts):
        moment = datetime.fromisoformat(f"2024-04-06T{start}")
        text = "".join(
            _LINE.format(clock=clock.format(f"{moment + timedelta(seconds=5.5 * step):%H:%M:%S}"), step=step)
            for step in range(1, 5)
        )
        (path := folder / f"{number}.log").write_text(text)
        files.append(read(path))
    return assemble(files, Options())


@pytest.mark.parametrize("clock", ["2024-04-06 {}", "{}"])
@pytest.mark.parametrize(("second", "ranks"), [("02:51:53", True), ("02:53:30", False), ("02:57:51", False)])
def test_files_are_ranks_where_each_step_is_printed_at_one_time(
    tmp_path: Path, clock: str, second: str, ranks: bool
) -> None:
    found = _logs(tmp_path, "02:51:51", second, clock=clock)
    assert ("read as ranks" in told(found)) is ranks
    assert bool(found.contradictions) is not ranks


def test_clocks_of_two_zones_are_compared_as_one_time(tmp_path: Path) -> None:
    east = _LINE.format(clock="2024-04-06 11:51:51 JST", step=1)
    west = _LINE.format(clock="2024-04-05 19:51:53 PDT", step=1)
    (tmp_path / "a.log").write_text(east)
    (tmp_path / "b.log").write_text(west)
    found = assemble([read(tmp_path / "a.log"), read(tmp_path / "b.log")], Options())
    assert "read as ranks" in told(found)
    assert at(found, "run.started") == "2024-04-06T02:51:51Z"
