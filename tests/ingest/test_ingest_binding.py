"""Files that show the path are read beside a receipt only where they are of its launch."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import file
from receipts.ingest.draft import Base, ReceiptDraft
from receipts.ingest.identity import of_this_launch
from receipts.ingest.reading import Reading

RUN = {"started": "2026-03-02T09:00:00Z", "finished": "2026-03-02T09:10:00Z"}


def trace(between: tuple[float, float] | None = None) -> Reading:
    reading = Reading("jax-profiler", records=1, between=between)
    reading.see("runtime", "cpu", "kernels")
    return reading


def test_a_trace_without_a_clock_is_of_the_launch_of_the_file_that_was_written_with_it(tmp_path: Path) -> None:
    files = [
        file(tmp_path, trace(), name="old/vm.trace.json.gz"),
        file(tmp_path, trace((0.0, 1.0)), name="old/vm.xplane.pb"),
        file(tmp_path, trace(), name="own/vm.trace.json.gz"),
    ]
    draft = ReceiptDraft({"run": RUN}, base=Base("run.json", b"", {"run": RUN}))
    assert [item.name for item in of_this_launch(draft, files)] == ["own/vm.trace.json.gz"]
    assert draft.strangers.keys() == {"old/vm.trace.json.gz", "old/vm.xplane.pb"}
