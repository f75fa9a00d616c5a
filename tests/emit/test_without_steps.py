"""A process that was to train and made no step: no receipt of it says that it went well, or takes another's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs import environment, read, recorder
from receipts.emit.merge import load_part, merge

_WORKERS = """
import multiprocessing, sys, time
from receipts.emit import Recorder

rec = Recorder("cpu-torch", probes=False).start()

def item(number):
    return number * number

def stay(pipe):
    pipe.send(True)
    time.sleep(60)

def train():
    context = multiprocessing.get_context(sys.argv[1])
    if sys.argv[2] == "pool":
        with context.Pool(2) as pool:
            assert pool.map(item, range(4)) == [0, 1, 4, 9]
            pool.close()
            pool.join()
    elif sys.argv[2] == "terminated":
        ours, its = context.Pipe()
        child = context.Process(target=stay, args=(its,), daemon=True)
        child.start()
        assert ours.recv()
        child.terminate()
        child.join()
    else:
        child = context.Process(target=item, args=(3,), daemon=sys.argv[2] == "daemon")
        child.start()
        child.join()
    for _ in range(4):
        with rec.step(tokens=8):
            pass

if __name__ == "__main__":
    train()
"""
_AGENT = """
import subprocess, sys
from receipts.emit import Recorder

rec = Recorder("cpu-torch", probes=False).start()
if sys.argv[1:]:
    for _ in range(4):
        with rec.step(tokens=8):
            pass
else:
    subprocess.run([sys.executable, __file__, "train"], check=True)
"""


def _run(folder: Path, script: str, *words: str, **variables: str) -> str:
    (folder / "train.py").write_text(script, encoding="utf-8")
    env = {**environment(), **variables}
    command = [sys.executable, "train.py", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "train.py").unlink()
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("kind", ["pool", "daemon", "terminated", "child"])
def test_a_worker_that_runs_the_script_again_leaves_nothing(tmp_path: Path, start: str, kind: str) -> None:
    said = _run(tmp_path, _WORKERS, start, kind)
    assert os.listdir(tmp_path) == ["run.json"]
    assert len(read(tmp_path / "run.json")["measurement"]["step_durations_seconds"]) == 4
    assert "no step" not in said


@pytest.mark.slow
def test_a_worker_of_a_rank_leaves_the_part_to_it(tmp_path: Path) -> None:
    _run(tmp_path, _WORKERS, "spawn", "pool", RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
    assert os.listdir(tmp_path) == ["run.rank00000.part.json"]


@pytest.mark.slow
def test_an_agent_that_waits_for_the_process_that_trains_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    said = _run(tmp_path, _AGENT)
    assert os.listdir(tmp_path) == ["run.json"]
    assert "no step ended, so there is no receipt" in said


def test_who_ends_the_recorder_without_a_step_has_a_receipt_of_a_failure(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        rec.state("model.depth", 4)
    tree = read(rec.written)
    assert tree["run"]["outcome"] == "crash"
    assert tree["failure"]["phase"] == "startup"
    assert "before its first step" in tree["failure"]["message"]
    assert tree["model"]["depth"] == 4


def test_a_run_of_another_kind_needs_no_step(tmp_path: Path) -> None:
    with recorder(tmp_path, kind="microbench") as rec:
        pass
    assert read(rec.written)["run"]["outcome"] == "ok"


@pytest.mark.parametrize(("steps", "outcome"), [((0, 0), "crash"), ((0, 3), "ok")])
def test_ranks_without_a_step_are_a_launch_only_beside_one_that_made_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[int, int], outcome: str
) -> None:
    written = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, count in enumerate(steps):
        monkeypatch.setenv("RANK", str(rank))
        with recorder(tmp_path, launch="one") as rec:
            for _ in range(count):
                with rec.step(tokens=8):
                    pass
        written.append(rec.written)
    tree: dict[str, Any] = merge([load_part(path) for path in written]).tree
    assert tree["run"]["outcome"] == outcome
