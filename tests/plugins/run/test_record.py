"""`receipts record`: a command as it is, its receipt with what the launcher saw of it, and two commands in turns.

The jobs of most tests record themselves, so that they need no framework; the last ones are loops of PyTorch without a
line of the recorder, where RECEIPTS_LAB_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import Said, Shell
from receipts.emit import Recorder
from receipts.emit.files import sha256
from receipts.emit.journal import HEAD, MARK
from receipts.emit.probes.environment import flags
from receipts.ingest.spans import span_service
from receipts.plugins.run import record
from receipts.plugins.run.outer_clock import ARMING, LaunchFolder, ObservedLaunch, OuterClock
from receipts.store import open_store
from span_traces import KinetoTrace

CHECKOUT = Path(record.__file__).parents[3]
# On a busy machine the launcher may look too seldom to state one.
RATIO = "measurement.outer_clock_ratio"
JOB = """
import os, signal, sys, time
from receipts.emit import Recorder
{before}
with Recorder("cpu-torch", warmup=2, probes=False) as rec:
    for step in range({steps}):
        with rec.step(tokens=8):
            time.sleep(0.05)
        {within}
{after}
"""
LOOP = """
import os, sys, time
if RATE := float(os.environ.get("RATE", 1)):
    for name in ("perf_counter", "monotonic", "time") if RATE != 1 else ():
        for name, kind in ((name, float), (name + "_ns", int)):
            setattr(time, name, lambda own=getattr(time, name), kind=kind: kind(own() * RATE))
import torch
torch.set_num_threads(1)
distributed = "RANK" in os.environ
model = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Linear(32, 64))
if distributed:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(40):
    tokens = torch.randint(0, 64, (4, 16))
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.06)
"""


def torch_python() -> str:
    """The interpreter that has PyTorch; without one the test is skipped."""
    return os.environ.get("RECEIPTS_LAB_PYTHON") or pytest.skip("RECEIPTS_LAB_PYTHON names no interpreter with torch")


def launched(shell: Shell, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`receipts record` in a process of its own, as the job's standard streams are its."""
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONSAFEPATH": "1", **env}
    return subprocess.run(
        [sys.executable, "-m", "receipts", "record", *words],
        cwd=shell.folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def script(shell: Shell, name: str = "job.py", steps: int = 60, **parts: str) -> list[str]:
    """The words that run a job, which is written into the folder."""
    body = JOB.format(steps=steps, **{"before": "", "within": "pass", "after": "", **parts})
    (shell.folder / name).write_text(body)
    return [sys.executable, name]


def stored(shell: Shell) -> list[dict[str, Any]]:
    """What the store holds, each with its leaves and the codes of its errors."""
    pages = [shell("show", row["id"], "--json").json for row in shell("list", "--json").json]
    return [
        {**page["stated"], "errors": [item["code"] for item in page["verdict"]["findings"] if item["level"] == "E"]}
        for page in pages
    ]


def test_the_launcher_counts_the_steps_of_a_journal_beyond_its_first_block(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    rec = Recorder("cpu-torch", out=str(tmp_path / "run.json"), probes=False, quiet=True, journal=str(tmp_path)).start()
    clock = OuterClock(tmp_path, tmp_path / "kept")
    for step in range(7000):
        with rec.step(tokens=8):
            pass
        if step % 500 == 0:
            rec.note(f"an event between blocks, {step}")
            clock.step()
    clock.close()
    (journal,) = clock.journals
    assert journal.steps == rec.steps == 7000
    assert [edge.steps for edge in (*journal.first, *journal.last)] == [*range(1, 7000, 500), 7000]
    assert journal.head["launch"] == rec.launch
    rec.finish()
    assert len(list((tmp_path / "kept").iterdir())) == 1, "the journal has a second name, which the recorder leaves"


def test_a_torn_journal_ends_what_is_followed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "a.journal").write_bytes(b"rJH\n" + b"\xff" * 200)
    (tmp_path / "b.journal").write_bytes(b"")
    for name, head in (("c", b"[1]"), ("d", b"[" * 100_000)):
        (tmp_path / f"{name}.journal").write_bytes(HEAD.pack(MARK, b"H", b"\n", len(head), 0) + head)
    clock = OuterClock(tmp_path, tmp_path / "kept")
    clock.close()
    assert [(item.steps, item.head) for item in clock.journals] == [(0, {})] * 4


def test_a_command_that_takes_longer_than_it_may_is_ended(tmp_path: Path) -> None:
    folder = LaunchFolder(tmp_path)
    assert ObservedLaunch(["sleep", "60"], folder, os.environ, limit=0.05).exit_code == -15


def test_the_launchers_folder_is_no_setting_of_the_job() -> None:
    assert flags({"PYTHONPATH": f"{ARMING}:/a"}) == {"PYTHONPATH": "/a"}
    assert flags({"PYTHONPATH": str(ARMING)}) == {}


@pytest.mark.parametrize(
    ("command", "words", "label", "sides"),
    [
        (("python", "a.sh"), (), "x", [("x", ("python", "a.sh"))]),
        (None, ("python", "a.sh"), None, [(None, ("python", "a.sh"))]),
        (None, ("a.sh", "b.py"), None, [("a", ("sh", "a.sh")), ("b", ("python", "b.py"))]),
        (None, ("python a.sh 1", "python a.sh 2"), None, [(f"python a.sh {n}", ("python", "a.sh", n)) for n in "12"]),
    ],
)
def test_what_stands_behind_dashes_is_one_command_and_scripts_are_sides(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...] | None,
    words: tuple[str, ...],
    label: str | None,
    sides: list[tuple[str | None, tuple[str, ...]]],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.sh", "b.py"):
        (tmp_path / name).write_text("")
    assert record._sides(command, words, label) == sides


def test_a_misspelt_lane_or_intent_gives_the_list_and_launches_nothing(shell: Shell) -> None:
    def refused(*words: str) -> Said:
        said = shell("record", *words, "--", "touch", "launched")
        assert said.code == 2
        assert not (shell.folder / "launched").exists()
        return said

    assert "did you mean cpu-torch" in refused("--lane", "cpu-torhc").err
    assert "did you mean attention" in refused("--intend", "atention=te_fused").err
    assert "--intend attention=VALUE" in refused("--intend", "attention=").err
    quoted = shell("record", "python -c 'x")
    assert (quoted.code, "No closing quotation" in quoted.err) == (2, True)


def test_what_plugins_made_of_the_trace_is_kept(shell: Shell) -> None:
    service = span_service()
    if service is None:
        pytest.skip("no plugin here makes extracts of traces")
    spans = KinetoTrace(deviceProperties=[])
    for at in range(4):
        spans.step(at, 1000 * at, 1000)
        spans.op("aten::mm", 1000 * at + 1, 900)
    trace = spans.write(shell.folder / "trace.json")
    entry = {"kind": "torch-profiler", "uri": str(trace), "sha256": sha256(str(trace))}
    shell.write("run", evidence=[entry])
    said = shell("record", "--", "sh", "-c", 'cp run.json "$RECEIPTS_OUT"')
    assert said.code == 0, said.err
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        (kept,) = store.extracts(shell("list", "--json").json[0]["id"], service.name)
    assert kept.digest == entry["sha256"]


@pytest.mark.slow
def test_an_honest_job_is_stored_with_the_rate_of_its_clock(shell: Shell) -> None:
    (shell.folder / "own").mkdir()
    (shell.folder / "own" / "sitecustomize.py").write_text("import sys; sys.was_here = True")
    words = script(shell, before="assert sys.was_here", after="print('its own words'); sys.exit(3)")
    done = launched(shell, "--intend", "gemm=aten_fp32", "--", *words, PYTHONPATH=f"{CHECKOUT}:{shell.folder}/own")
    assert (done.returncode, done.stdout) == (3, "its own words\n"), done.stderr
    (leaves,) = stored(shell)
    assert leaves.get(RATIO, 1) == pytest.approx(1, abs=0.002)
    assert 0.05 < leaves["measurement.outer_seconds_per_step"] < 0.5
    assert leaves["measurement.outer_cpu_seconds"] > 0
    assert (leaves["run.outcome"], leaves["run.exit_code"]) == ("crash", 3), "its recorder could not know"
    assert leaves["path.intended.gemm"] == "aten_fp32"
    assert leaves["errors"] == []
    assert "run.session" not in leaves, "one launch declares none"


@pytest.mark.slow
def test_a_recorder_whose_clock_the_job_replaced_is_convicted_by_the_launcher(shell: Shell) -> None:
    slow = "import receipts.emit.steps as s; own = s.perf_counter_ns; s.perf_counter_ns = lambda: own() * 97 // 100"
    done = launched(shell, "--", *script(shell, before=slow))
    assert done.returncode == 0, done.stderr
    (leaves,) = stored(shell)
    assert leaves[RATIO] == pytest.approx(0.97, abs=0.002)
    assert "R207" in leaves["errors"]
    assert "R207" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "outcome", "code"), [(9, "crash", 137), (15, "preempted", 143)])
def test_a_job_that_was_killed_has_a_receipt(shell: Shell, number: int, outcome: str, code: int) -> None:
    kill = f"step == 20 and os.kill(os.getpid(), {number})"
    done = launched(shell, "--no-submit", "--", *script(shell, within=kill))
    assert done.returncode == code, done.stderr
    tree = json.loads((shell.folder / "run.json").read_bytes())
    assert (tree["run"]["outcome"], tree["run"]["exit_code"]) == (outcome, -number)
    assert len(tree["measurement"]["step_durations_seconds"]) == 21
    assert list((shell.folder / "run.evidence").glob("*.outer-clock.json"))


@pytest.mark.slow
def test_who_is_not_seen_is_told_why(shell: Shell) -> None:
    for words, why in (
        (["-I", "-c", "print()"], "-I, -E and -S"),
        (["-c", "import sys; sys.modules['torch'] = sys"], "no optimizer"),
        (["-c", "import sys; sys.modules['jax'] = sys"], "rec.jit"),
        (["-c", "print()"], "had imported torch or JAX"),
    ):
        done = launched(shell, "--", sys.executable, *words)
        assert done.returncode == 0
        assert why in done.stderr


@pytest.mark.slow
def test_two_scripts_run_in_turns_as_one_session_and_are_compared(shell: Shell) -> None:
    for name in "ab":
        run = f"{sys.executable} job.py" if script(shell, steps=12) else ""
        (shell.folder / f"{name}.sh").write_text(f"{run}\n")
    done = launched(shell, "-n", "2", "a.sh", "b.sh")
    rows = sorted(stored(shell), key=lambda row: str(row["run.started"]))
    assert [row["run.label"] for row in rows] == ["a", "b", "a", "b"]
    assert len({row["run.session"] for row in rows}) == 1
    assert done.returncode == 3, done.stderr
    assert "UNDECIDED" in done.stdout
    (shell.folder / "b.sh").write_text("exit 4\n")
    failed = launched(shell, "-n", "2", "a.sh", "b.sh")
    assert failed.returncode == 4
    assert "nothing more is launched" in failed.stderr
    assert len(stored(shell)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["1", "0.97", "0.5"])
def test_a_loop_of_pytorch_is_recorded_without_a_line_changed(shell: Shell, rate: str) -> None:
    python = torch_python()
    (shell.folder / "train.py").write_text(LOOP)
    done = launched(shell, "--name", "plain", "--", python, "train.py", RATE=rate)
    assert done.returncode == 0, done.stderr
    (leaves,) = stored(shell)
    assert leaves[RATIO] == pytest.approx(1, abs=0.002), "the job's clock is not the recorder's"
    assert ("R207" in leaves["errors"]) == (rate != "1")
    assert leaves.get("measurement.job_clock_ratio", 1.0) == pytest.approx(float(rate), abs=1e-3)
    assert (leaves["run.lane"], leaves["run.label"]) == ("cpu-torch", "plain")
    assert leaves["flags.PYTHONPATH.value"] == str(CHECKOUT)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["    loss = ", "    optimizer.step()"])
def test_a_job_out_of_memory_in_its_first_step_is_recorded_with_its_batch(shell: Shell, where: str) -> None:
    python = torch_python()
    (shell.folder / "train.py").write_text(LOOP.replace(where, f"    torch.empty(1 << 50)\n{where}"))
    assert launched(shell, "--", python, "train.py").returncode == 1
    (leaves,) = stored(shell)
    assert (leaves["run.outcome"], leaves["failure.phase"], leaves["failure.class"]) == ("oom", "startup", "host")
    assert (leaves["batch.micro_batch"], leaves["batch.sequence_length"]) == (4, 16)


@pytest.mark.slow
def test_another_failure_before_the_first_step_is_recorded_by_nobody(shell: Shell) -> None:
    python = torch_python()
    (shell.folder / "train.py").write_text(LOOP.replace("    loss = ", "    raise KeyError('lr')\n    loss = "))
    done = launched(shell, "--", python, "train.py")
    assert (done.returncode, stored(shell)) == (1, [])
    assert "no optimizer of torch made a step" in done.stderr


@pytest.mark.slow
def test_two_ranks_of_torchrun_are_one_receipt(shell: Shell) -> None:
    python = torch_python()
    (shell.folder / "train.py").write_text(LOOP)
    run = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    done = launched(shell, "--", *run)
    assert done.returncode == 0, done.stderr
    (leaves,) = stored(shell)
    assert leaves["run.outcome"] == "ok"
    assert len(leaves["run.processes"]) == 2
    assert leaves.get(RATIO, 1) == pytest.approx(1, abs=0.002)


@pytest.mark.slow
def test_launchers_of_one_step_of_slurm_join_their_ranks_and_name_each_launch_alike(shell: Shell) -> None:
    job = script(shell, steps=4)
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}
    first = launched(shell, "-n", "2", "--", *job, **step, SLURM_PROCID="0")
    assert first.stderr.count("1 of 2 parts are here; rank 1 missing") == 2
    assert not shell("list", "--json").json
    launched(shell, "-n", "2", "--", *job, **step, SLURM_PROCID="1")
    rows = stored(shell)
    assert [row["run.job.id"] for row in rows] == ["7", "7"]
    assert [len(row["run.processes"]) for row in rows] == [2, 2]
    assert len({row["run.session"] for row in rows}) == 1
