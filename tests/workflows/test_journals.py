"""A receipt against the journal of its recorder, and the sources that it names for its leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from receipts.base.errors import InputError
from receipts.emit import Recorder
from receipts.emit.merge import load_part, merge
from receipts.ingest.draft import Options
from receipts.publish.receipt import Origins
from receipts.receipt import Document, parse, read
from receipts.receipt.parse import UNWRITTEN, intact, sealed
from receipts.workflows.evidence import amended, by_digest, verify
from rule_cases import rulebook

Tree = dict[str, Any]


@pytest.fixture
def journaled(tmp_path: Path) -> Path:
    """The receipt of a job that kept its journal."""
    out = tmp_path / "job" / "run.json"
    with Recorder("cpu-torch", out=out, probes=False, quiet=True, keep_journal=True) as rec:
        rec.state("model.head_dim", 64)
        for _ in range(3):
            with rec.step(tokens=512):
                pass
    return out


def _added(tree: Tree) -> None:
    tree["batch"] = {"sequence_length": 4096}


def _faster(tree: Tree) -> None:
    tree["measurement"]["step_durations_seconds"] = [0.01, 0.01, 0.01]


def _removed(tree: Tree) -> None:
    del tree["model"]


@pytest.mark.parametrize(
    ("forge", "path", "why"),
    [
        (_added, "batch.sequence_length", "4096 is stated, and its journal says nothing"),
        (_removed, "model.head_dim", "nothing is stated, and its journal says 64"),
        (_faster, "measurement.step_durations_seconds", r"\[0.01, 0.01, 0.01\] is stated, and its journal says"),
    ],
)
def test_an_edit_with_its_digest_computed_again_is_contradicted_by_the_journal(
    journaled: Path, forge: Callable[[Tree], None], path: str, why: str
) -> None:
    tree = json.loads(journaled.read_bytes())
    forge(tree)
    tree["run"]["recorded"]["digest"] = UNWRITTEN
    raw = sealed(json.dumps(tree).encode())
    assert intact(parse(Document(raw, "forged.json")))
    (forged := journaled.with_name("forged.json")).write_bytes(raw)
    (journal,) = journaled.parent.glob("*.journal")
    with pytest.raises(InputError, match=f"(?s){path}.*{why}"):
        amended(str(forged), [str(journal)])
    done = verify(parse(read(forged)), rulebook().lanes.of("cpu-torch"), by_digest(journal))
    assert (done.exit_code, [item.what for item in done.checks if item.word == "other"]) == (1, [path])


def halved(tree: Tree) -> None:
    """Every step takes half of its time, and the rest is called idle."""
    measurement = tree["measurement"]
    for name in ("step_durations_seconds", "step_wall_seconds"):
        measurement[name] = [seconds / 2 for seconds in measurement[name]]
    goodput = measurement["goodput"]
    goodput["step_seconds"] /= 2
    goodput["idle_seconds"] += goodput["step_seconds"]


def test_steps_that_end_at_other_moments_than_their_launcher_saw_are_refused(tmp_path: Path) -> None:
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True, journal=False) as rec:
        for _ in range(40):
            with rec.step(tokens=8):
                sum(range(20_000))
    honest = tmp_path / "run.json"
    tree = json.loads(honest.read_bytes())
    ends = [0, *accumulate(round(seconds * 1e9) for seconds in tree["measurement"]["step_wall_seconds"])]
    edges = [[count, end, [end - 1000, end + 1000]] for count, end in enumerate(ends)][3:]
    clock = {"receipts_outer_clock": 1, "clocks": ["CLOCK_BOOTTIME"], "launch": tree["run"]["launch"], "edges": edges}
    (seen := tmp_path / "outer-clock.json").write_text(json.dumps(clock))
    assert amended(str(honest), [str(seen)]).files
    halved(tree)
    tree["run"]["recorded"]["digest"] = UNWRITTEN
    for waits in ("none", "device"):
        tree["measurement"]["synchronisation"] = waits
        (forged := tmp_path / "forged.json").write_bytes(sealed(json.dumps(tree).encode()))
        with pytest.raises(InputError, match=r"step_wall_seconds: 0.5 times what the launcher saw"):
            amended(str(forged), [str(seen)])


def test_steps_that_ended_after_their_dispatch_are_those_that_the_launcher_saw(tmp_path: Path) -> None:
    with Recorder("cpu-jax", out=tmp_path / "run.json", probes=False, quiet=True, journal=False) as rec:
        for _ in range(40):
            with rec.step(tokens=8):
                sum(range(20_000))
    tree = json.loads((tmp_path / "run.json").read_bytes())
    walls = tree["measurement"]["step_wall_seconds"]
    ends = [0, *accumulate(round(seconds * 1e9) for seconds in walls)]
    # Dispatched in pairs: every second step at once with the one before it.
    edges = [[count, ends[count - count % 2], [end - 1000, end + 1000]] for count, end in enumerate(ends)][3:]
    clock = {"receipts_outer_clock": 1, "clocks": ["CLOCK_BOOTTIME"], "launch": tree["run"]["launch"], "edges": edges}
    (seen := tmp_path / "outer-clock.json").write_text(json.dumps(clock))
    tree["measurement"]["synchronisation"] = "device"
    tree["run"]["recorded"]["digest"] = UNWRITTEN
    (landed := tmp_path / "landed.json").write_bytes(sealed(json.dumps(tree).encode()))
    assert amended(str(landed), [str(seen)]).files


def test_a_journal_is_kept_with_its_receipt_and_read_again(journaled: Path, tmp_path: Path) -> None:
    (journal,) = journaled.parent.glob("*.journal")
    (tmp_path / "other.journal").write_bytes(journal.read_bytes()[:-4096])
    whole = amended(str(journaled), [str(journal)])
    assert whole.document.raw == journaled.read_bytes()
    assert [path.name for path in whole.files] == [journal.name]
    lane = rulebook().lanes.of("cpu-torch")
    done = verify(parse(whole.document), lane, by_digest(journal))
    assert {item.what: item.word for item in done.checks} == {"bytes": "same", "journal": "same"}
    without = verify(parse(whole.document), lane, by_digest(tmp_path / "other.journal"))
    assert (without.exit_code, [item.what for item in without.checks]) == (0, ["bytes"])


def test_ranks_journals_are_replayed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEIPTS_LAUNCH", "9b2d7c1e-0000-4000-8000-000000000001")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with Recorder(
            "cpu-torch", out=tmp_path / rank / "run.json", probes=False, quiet=True, keep_journal=True
        ) as rec:
            rec.state("model.hidden", 64)
            with rec.step(tokens=512):
                pass
    parts = [load_part(str(path)) for path in sorted(tmp_path.glob("*/*.part.json"))]
    merged, lane = parse(Document(merge(parts).text().encode(), "run.json")), rulebook().lanes.of("cpu-torch")
    assert {item.what: item.word for item in verify(merged, lane, by_digest(tmp_path)).checks}["journal"] == "same"
    alone = verify(merged, lane, by_digest(tmp_path / "1"))
    assert [(item.word, item.why[:6]) for item in alone.checks if item.what == "journal"] == [("missing", "1 of 2")]


def test_show_tells_a_probe_the_recorder_and_the_job_apart(tmp_path: Path) -> None:
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        rec.state("model.depth", 8)
        rec.stated_by("jax").put("compile.posture", "jit")
        rec.stated_by("environment").flag("A", "1")
        rec.stated_by("environment").flag("B", "1")
        rec.state("flags", {"C": "1"})
        with rec.step(tokens=8):
            pass
    options = Options(settings={"model.hidden": 64})
    own = Origins(parse(amended(str(tmp_path / "run.json"), options=options).document))
    assert {
        path: own.of(path)
        for path in ("model.depth", "model.hidden", "compile.posture", "flags.B", "flags.C", "run.started")
    } == {
        "model.depth": "the job",
        "model.hidden": "stated to ingest",
        "compile.posture": "probe jax",
        "flags.B": "probe environment",
        "flags.C": "the job",
        "run.started": "the recorder",
    }


def test_a_launchers_file_that_is_broken_is_no_step_of_the_launch(journaled: Path, tmp_path: Path) -> None:
    launch = json.loads(journaled.read_bytes())["run"]["launch"]
    clock = {"receipts_outer_clock": 1, "clocks": ["CLOCK_BOOTTIME"], "launch": launch}
    for broken in ({}, {"edges": [1]}, {"edges": [[1]]}, {"edges": [["one", 1]] * 20}, {"edges": [[1, 1, []]] * 20}):
        (seen := tmp_path / "outer-clock.json").write_text(json.dumps(clock | broken))
        assert amended(str(journaled), [str(seen)]).document.raw
