"""A journal outlives its process: kill -9, SIGTERM, exceptions, forks; and what `recover` makes of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from command_line import Shell
from jobs import job, only, read, recorder
from receipts.emit import recovery, termination
from receipts.receipt import parse
from receipts.receipt import read as read_document

pytestmark = pytest.mark.slow

STEPS = """
with Recorder("cpu-torch", context="c", warmup=5, probes=False, out="run.json") as rec:
    rec.state("model", {"depth": 8, "hidden": 64})
    for number in range(5000):
        with rec.step(tokens=512):
            if number == 4321:
                %s
        rec.loss(9.0 - number / 1000)
"""


def test_after_kill_9_every_step_is_recovered(shell: Shell) -> None:
    done = job(shell.folder, STEPS % "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    assert not (shell.folder / "run.json").exists()
    said = shell("recover", only(shell.folder, "*.journal").name)
    assert said.code == 0, said.err
    assert "wrote run.json: 4321 steps, crash" in said.out
    found = parse(read_document(shell.folder / "run.json")).stated
    assert len(found["measurement.step_durations_seconds"]) == 4321
    assert found["model.hidden"] == 64
    assert found["failure.step"] == 4321
    assert found["failure.phase"] == "steady"
    assert "without a word" in found["failure.message"]
    # Of each step's loss some are kept; the last one stands in the gauges.
    assert found["measurement.loss.last"] == 9.0 - 4320 / 1000
    assert found["run.finished"] > found["run.started"]
    assert shell("check", "run.json").code in (1, 3)


def test_a_recovered_receipt_says_what_the_run_itself_would_have_said(shell: Shell) -> None:
    job(shell.folder, STEPS % "raise RuntimeError('CUDA error: an illegal memory access')")
    whole = read(shell.folder / "run.json")
    job(shell.folder, STEPS.replace("probes=False", "probes=False, keep_journal=True") % "raise ValueError('x')")
    journal = only(shell.folder, "*.journal")
    other = next(path for path in shell.folder.glob("run.*.json"))
    assert shell("recover", journal.name, "-o", "again.json").code == 0
    assert (shell.folder / "again.json").read_bytes() == other.read_bytes()
    assert whole["failure"]["class"] == "not_oom"


def test_sigterm_ends_the_process_as_it_would_have_and_writes_a_receipt(shell: Shell) -> None:
    done = job(shell.folder, STEPS % "os.kill(os.getpid(), signal.SIGTERM)")
    assert done.returncode == -signal.SIGTERM
    found = read(shell.folder / "run.json")
    assert (found["run"]["outcome"], found["run"]["exit_code"]) == ("preempted", -15)
    assert len(found["measurement"]["step_durations_seconds"]) == 4321
    assert "failure" not in found


def test_a_second_sigterm_does_not_cut_the_receipt_short(shell: Shell) -> None:
    twice = """
from receipts.emit import files
write = files.write
def slow(*given):
    os.kill(os.getpid(), signal.SIGTERM)
    return write(*given)
files.write = slow
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = job(shell.folder, STEPS % f"exec({twice!r})")
    assert done.returncode == -signal.SIGTERM
    assert read(shell.folder / "run.json")["run"]["outcome"] == "preempted"
    assert not list(shell.folder.glob("*.journal"))


def test_killed_after_sigterm_it_was_preempted(shell: Shell) -> None:
    body = STEPS % "os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGKILL)"
    job(shell.folder, "signal.signal(signal.SIGTERM, lambda *_: None)\n" + body)
    assert shell("recover", only(shell.folder, "*.journal").name).code == 0
    assert read(shell.folder / "run.json")["run"]["outcome"] == "preempted"


def test_a_forked_child_that_is_terminated_ends_nothing(shell: Shell) -> None:
    child = """
child = os.fork()
                if not child:
                    with rec.step():
                        rec.loss(1.0)
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(60)
                assert os.waitpid(child, 0)[1] == signal.SIGTERM
"""
    done = job(shell.folder, STEPS % child.strip())
    assert done.returncode == 0, done.stderr
    found = read(shell.folder / "run.json")
    assert found["run"]["outcome"] == "ok"
    assert len(found["measurement"]["step_durations_seconds"]) == 5000
    assert found["measurement"]["loss"]["last"] == 9.0 - 4999 / 1000


def test_a_recorder_that_was_made_before_a_fork_and_starts_behind_it_takes_sigterm(shell: Shell) -> None:
    child = """
rec = Recorder("cpu-torch", probes=False, out="run.json")
if not (child := os.fork()):
    rec.start()
    with rec.step():
        pass
    os.kill(os.getpid(), signal.SIGTERM)
os.waitpid(child, 0)
"""
    job(shell.folder, child)
    assert recovery.recover(str(only(shell.folder, "*.journal"))).signal == signal.SIGTERM


def test_without_a_with_block_the_end_of_the_process_writes_it(shell: Shell) -> None:
    start = 'rec = Recorder("cpu-torch", probes=False, quiet=True).start()\n'
    job(shell.folder, start + "with rec.step():\n    pass\n")
    assert read(shell.folder / "run.json")["run"]["outcome"] == "ok"
    job(shell.folder, start.replace("probes", "out='b.json', probes") + "raise MemoryError('x')\n")
    assert read(shell.folder / "b.json")["run"]["outcome"] == "oom"


def test_the_exit_code_is_that_of_the_script(shell: Shell) -> None:
    assert job(shell.folder, STEPS % "sys.exit(3)").returncode == 3
    found = read(shell.folder / "run.json")
    assert (found["run"]["outcome"], found["run"]["exit_code"]) == ("crash", 3)


def test_a_full_disk_costs_the_journal_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int, _start: int, _size: int) -> None:
        raise OSError(28, "No space left on device")

    with recorder(tmp_path) as rec:
        monkeypatch.setattr("receipts.emit.journal.reserve", full)
        for _ in range(9000):
            with rec.step(tokens=8):
                pass
    found = read(rec.written)
    assert len(found["measurement"]["step_durations_seconds"]) == 9000
    assert "No space left on device" in found["notes"]["recorder"][0]


def test_a_journal_that_was_given_up_goes_with_the_receipt_and_is_named_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    for name, journals in (("written", 0), ("lost", 1)):
        folder = tmp_path / name
        with monkeypatch.context() as patch, recorder(folder, quiet=False) as rec:
            with rec.step(tokens=8):
                pass
            patch.setattr("receipts.emit.journal.Journal.event", full)
            rec.note("the disk is full from here on")
            if journals:
                patch.setattr("receipts.emit.files.write", full)
                rec.finish()
        assert len(list(folder.glob("*.journal"))) == journals
    journal = only(tmp_path / "lost", "*.journal")
    assert f"receipts recover {journal} makes what the journal still has of it" in capsys.readouterr().err
    assert recovery.recover(str(journal)).steps == 1


def test_an_out_of_memory_kill_is_seen_in_the_kernels_count(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    job(shell.folder, STEPS % "os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr(termination, "more_kills", lambda _before: 1)
    journal = only(shell.folder, "*.journal")
    # Where the control group tells nothing there is nothing to compare with.
    record = recovery.recover(str(journal))
    if isinstance(record.head.get("oom_kills"), dict):
        assert (record.outcome, record.failure["class"]) == ("oom", "host")


def test_kills_are_counted_in_both_versions_of_control_groups(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 1\noom_kill 2\n", encoding="ascii")
    assert termination.more_kills({str(events): 1}) == 1
    assert termination.more_kills({str(events): 2, str(tmp_path / "gone"): 3}) == 0


def test_kills_are_counted_where_a_host_has_both_versions_and_the_first_counts_memory(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("9:name=systemd:/\n4:cpu,memory:/jobs/1\n0::/\n", encoding="ascii")
    counted = tmp_path / "memory" / "jobs" / "1" / "memory.oom_control"
    counted.parent.mkdir(parents=True)
    counted.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", encoding="ascii")
    before = termination.oom_kills(f"..{tmp_path}", str(tmp_path))
    assert before == {str(counted): 0}
    counted.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", encoding="ascii")
    assert termination.more_kills(before) == 1


CUDA = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which 1.05 GiB is free. Process 77 has 30.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "48.04 GiB memory in use. Of the allocated memory 45.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by "
    "PyTorch but unallocated."
)


def test_the_last_words_are_read_by_the_engines_readers(shell: Shell) -> None:
    job(
        shell.folder,
        STEPS.replace("probes=False", "probes=False, keep_journal=True") % f"raise RuntimeError({CUDA!r})",
    )
    assert shell("recover", only(shell.folder, "*.journal").name, "-o", "again.json").code == 0
    found = read(shell.folder / "again.json")
    assert found["run"]["outcome"] == "oom"
    assert found["failure"]["class"] == "foreign_process"
    assert found["failure"]["chip"] == 0
    assert found["failure"]["step"] == 4321


def test_a_log_says_how_it_ended(shell: Shell) -> None:
    job(shell.folder, STEPS % "os.kill(os.getpid(), signal.SIGKILL)")
    log = "[12.5] Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB\n"
    (shell.folder / "dmesg").write_text(log, encoding="utf-8")
    said = shell("recover", only(shell.folder, "*.journal").name, "--log", "dmesg", "--json")
    assert said.json["outcome"] == "oom"
    assert said.json["failure"]["class"] == "host"


def test_a_person_may_say_how_it_ended(shell: Shell) -> None:
    job(shell.folder, STEPS % "os.kill(os.getpid(), signal.SIGKILL)")
    journal = only(shell.folder, "*.journal").name
    assert shell("recover", journal, "--outcome", "hang").code == 0
    assert read(shell.folder / "run.json")["run"]["outcome"] == "hang"
    assert shell("recover", journal).code == 2


def test_a_run_that_is_still_going_is_not_recovered(shell: Shell) -> None:
    with recorder(shell.folder) as rec, rec.step():
        said = shell("recover", str(only(shell.folder, "*.journal")))
    assert said.code == 2
    assert "still running" in said.err


def test_what_is_no_journal_is_told(shell: Shell) -> None:
    (shell.folder / "x.journal").write_bytes(b"{}")
    (shell.folder / "y.journal").write_bytes(b"rJH\n" + bytes(40))
    for name in ("x.journal", "y.journal", "none.journal"):
        said = shell("recover", name)
        assert said.code == 2
        assert name in said.err


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The journal of a run that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    job(folder, STEPS % "os.kill(os.getpid(), signal.SIGKILL)")
    return only(folder, "*.journal").read_bytes()


@pytest.mark.parametrize("cut", [60, 700, 900, 4096, 5000, 9000, 40_000, 70_000])
def test_a_torn_journal_gives_what_stands_before_the_tear(tmp_path: Path, killed: bytes, cut: int) -> None:
    path = tmp_path / "torn.journal"
    path.write_bytes(killed[:cut])
    try:
        record = recovery.recover(str(path))
    except recovery.NotAJournal:
        assert cut < 900
        return
    assert 0 <= record.steps <= 4321


def test_a_hole_in_a_journal_loses_its_events_alone(tmp_path: Path, killed: bytes) -> None:
    at = killed.index(b'["put","model.depth"')
    path = tmp_path / "hole.journal"
    path.write_bytes(killed[:at] + bytes(6) + killed[at + 6 :])
    record = recovery.recover(str(path))
    assert record.steps == 4321
    assert record.facts.get("model.depth") is None
    assert record.facts.get("model.hidden") == 64
    assert "torn" in " ".join(record.facts.notes["recorder"])


def test_any_byte_may_be_wrong(tmp_path: Path, killed: bytes) -> None:
    path = tmp_path / "bad.journal"
    for at in [*range(200), *range(200, min(len(killed), 12_000), 97)]:
        path.write_bytes(killed[:at] + bytes([killed[at] ^ 0x55]) + killed[at + 1 :])
        try:
            recovery.recover(str(path))
        except recovery.NotAJournal:
            continue


def test_the_journal_grows_with_the_run_and_not_before(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for _ in range(10_000):
            with rec.step(tokens=8):
                pass
        size = only(tmp_path, "*.journal").stat().st_size
    assert size < 1 << 20
    assert os.path.exists(rec.written)
