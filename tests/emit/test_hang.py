"""A run that stopped stepping: found when it is told to stop, when somebody looks, by its words, and by its ranks."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import Shell
from jobs import HEAD, environment, job, only, read
from receipts.emit import ending, run_record
from receipts.receipt import parse
from receipts.receipt import read as read_document
from test_merge import part, write

pytestmark = pytest.mark.slow

STUCK = """
import threading
from receipts.emit import run_record
run_record.MIN_STALL_SECONDS = 0.3
with Recorder("cpu-torch", context="c", warmup=2, probes=False, out="run.json", quiet=True) as rec:
    for number in range(30):
        with rec.step(tokens=512):
            if number == 20:
                %s
"""
TOLD = "threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.%s)).start(); time.sleep(60)"


def test_a_step_that_is_stuck_when_sigterm_comes_is_a_hang(shell: Shell) -> None:
    done = job(shell.folder, STUCK % TOLD % "SIGTERM")
    assert done.returncode == -signal.SIGTERM, done.stderr
    found = parse(read_document(shell.folder / "run.json")).stated
    assert (found["run.outcome"], found["run.exit_code"]) == ("hang", -15)
    assert (found["failure.step"], found["failure.phase"], found["failure.class"]) == (20, "steady", "not_oom")
    assert "step 20 had been running for 1 s" in found["failure.message"]


def test_a_step_that_is_stuck_when_somebody_interrupts_it_is_a_hang(shell: Shell) -> None:
    job(shell.folder, STUCK % TOLD % "SIGINT")
    assert read(shell.folder / "run.json")["run"]["outcome"] == "hang"


def test_a_run_that_steps_when_it_is_told_to_stop_is_preempted(shell: Shell) -> None:
    job(shell.folder, STUCK % "os.kill(os.getpid(), signal.SIGTERM)")
    assert read(shell.folder / "run.json")["run"]["outcome"] == "preempted"


def test_a_long_checkpoint_inside_a_step_is_no_hang(shell: Shell) -> None:
    inside = f'rec.span("checkpoint").__enter__(); {TOLD}'
    job(shell.folder, STUCK % inside % "SIGTERM")
    assert read(shell.folder / "run.json")["run"]["outcome"] == "preempted"


def test_a_step_that_went_on_after_all_was_no_hang(shell: Shell) -> None:
    heard = "signal.signal(signal.SIGTERM, lambda *_: None)\n"
    slow = "threading.Timer(0.6, lambda: os.kill(os.getpid(), signal.SIGTERM)).start(); time.sleep(1.0)"
    job(shell.folder, heard + STUCK % slow)
    found = read(shell.folder / "run.json")
    assert (found["run"]["outcome"], "failure" in found) == ("preempted", False)
    assert len(found["measurement"]["step_durations_seconds"]) == 30
    killed = (heard + STUCK).replace("                %s", "                %s\n            if number == 25: %s")
    job(shell.folder, killed.replace("run.json", "killed.json") % (slow, "os.kill(os.getpid(), signal.SIGKILL)"))
    assert shell("recover", only(shell.folder, "*.journal").name).code == 0
    assert read(shell.folder / "killed.json")["run"]["outcome"] == "preempted"


def test_a_run_that_is_stuck_is_recovered_when_somebody_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    script = shell.folder / "job.py"
    script.write_text(HEAD + STUCK % "time.sleep(600)", encoding="utf-8")
    child = subprocess.Popen([sys.executable, str(script)], cwd=shell.folder, env=environment())
    try:
        journal = waited_for(shell.folder)
        said = shell("recover", journal)
        assert said.code == 2
        assert "is still running; recover it when it has ended" in said.err
        monkeypatch.setattr(run_record, "MIN_STALL_SECONDS", 0.3)
        time.sleep(0.5)
        said = shell("recover", journal)
        assert said.code == 2
        assert "--outcome hang" in said.err
        assert shell("recover", journal, "--outcome", "hang").code == 0
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
    found = read(shell.folder / "run.json")
    assert found["run"]["outcome"] == "hang"
    assert "step 20 had been running for" in found["failure"]["message"]


def waited_for(folder: Path) -> str:
    """The journal of a run that has ended twenty steps."""
    from receipts.emit.recovery import recover

    for _ in range(300):
        for path in folder.glob("*.journal"):
            try:
                if recover(str(path)).steps == 20:
                    return str(path)
            except Exception:  # its first frame may not be written yet
                continue
        time.sleep(0.05)
    raise AssertionError("no journal with twenty steps came")


@pytest.mark.parametrize(
    "words",
    [
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE) ran for 600 s",
        "WorkNCCL(SeqNum=9, OpType=BROADCAST, Timeout(ms)=1000) ran for 1092 milliseconds before timing out.",
        "[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 3000ms for recv operation to",
        "Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.",
        "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect",
    ],
)
def test_who_gives_up_waiting_for_others_says_so(words: str) -> None:
    assert ending.failure_of_text(f"RuntimeError: {words}") == ("hang", {"class": "not_oom"})


def test_a_time_out_of_something_else_is_no_hang() -> None:
    assert ending.failure_of_text("ConnectionError: the request timed out after 30 s")[0] == "crash"
    assert ending.failure_of_text("RuntimeError: CUDA out of memory. watchdog timed out")[0] == "oom"


def test_a_log_says_of_a_silent_end_that_it_was_a_hang(shell: Shell) -> None:
    job(shell.folder, STUCK % "os.kill(os.getpid(), signal.SIGKILL)")
    log = shell.folder / "job.log"
    log.write_text("step 19\n[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=20)\n")
    assert shell("recover", only(shell.folder, "*.journal").name, "--log", str(log)).code == 0
    found = read(shell.folder / "run.json")
    assert found["run"]["outcome"] == "hang"
    assert found["failure"]["message"].startswith("[Rank 0] Watchdog caught")


def test_the_rank_that_others_waited_for_is_named(shell: Shell) -> None:
    stuck = {"class": "not_oom", "message": "step 3 had been running for 900 s", "step": 3, "phase": "steady"}
    hung = {"run__outcome": "hang", "failure": stuck}
    silent = {"message": "the process ended without a word", "step": 2, "phase": "steady"}
    behind = part(1, 3, run__outcome="crash", failure=silent, measurement__step_durations_seconds=[5.0, 1.1])
    files = write(shell.folder, part(0, 3, **hung), behind, part(2, 3, **hung))
    assert shell("merge", *files, "-o", "run.json").code == 0
    found = read(shell.folder / "run.json")
    assert found["run"]["outcome"] == "hang"
    assert (found["failure"]["rank"], found["failure"]["step"]) == (1, 2)
    assert "ranks 0, 2 waited in step 3, and rank 1 had ended 2 steps" in found["failure"]["message"]


def test_where_all_wait_in_one_step_nobody_is_blamed(shell: Shell) -> None:
    stuck = {"class": "not_oom", "message": "step 3 had been running for 900 s", "step": 3, "phase": "steady"}
    files = write(shell.folder, *(part(rank, 2, run__outcome="hang", failure=stuck) for rank in range(2)))
    assert shell("merge", *files, "-o", "run.json").code == 0
    assert "waited" not in read(shell.folder / "run.json")["failure"]["message"]


def test_with_few_steps_nothing_is_usual(shell: Shell) -> None:
    job(shell.folder, STUCK.replace("number == 20", "number == 3") % TOLD % "SIGTERM")
    assert read(shell.folder / "run.json")["run"]["outcome"] == "preempted"
