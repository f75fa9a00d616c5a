"""Whose the lines are: MaxText's, or a loop's that prints its form."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import at, file
from receipts.axes.lane import Lane
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.scan import scan
from receipts.readers.maxtext.log import MaxText


def on(framework: str, log: FileEvidence) -> Ingested:
    lane = Lane(
        name="mine", version=1, title="one way", frameworks=(framework,), path={"runtime": ("cuda",)},
        postures=("eager",), witness=("framework",),
    )  # fmt: skip
    return assemble((log,), Options(lane.name, None, {}, (lane,)))


def test_lines_in_maxtexts_form_are_maxtexts_with_its_configuration_or_on_its_lane(tmp_path: Path) -> None:
    line = (
        "completed step: {}, seconds: 0.5, TFLOP/s/device: 1.5, Tokens/s/device: 64.0, total_weights: 32, loss: 2.5\n"
    )
    bare = "".join(line.format(step) for step in range(12))
    for text, lane, host in (
        (bare, "jax", None),
        (bare, "maxtext", "maxtext"),
        (f"Config param run_name: a\n{bare}", "jax", "maxtext"),
    ):
        (log,) = scan([text.encode()], [MaxText])
        assert at(on(lane, file(tmp_path, log)), "path.witnessed.framework") == host
