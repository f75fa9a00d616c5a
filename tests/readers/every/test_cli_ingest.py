"""``receipts ingest``, with logs that a reader knows, and with input that nobody should give."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from command_line import Shell

LOG = "2026-03-02 09:00:00,125 - root - INFO - [GC] Initial GC collection\n" + "".join(
    f"[titan] 2026-03-02 09:00:{step:02d},512 - root - INFO - step: {step:2d}  loss: {9 - step / 10:8.5f}  "
    f"grad_norm:  1.2{step:02d}0  memory: 40.25GiB(50.31%)  tps: {8000 + step:,}  tflops: 251.20  mfu: 25.40%\n"
    for step in range(1, 41)
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use. Of the "
    "allocated memory 75.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
)


@pytest.fixture
def log(shell: Shell) -> Path:
    """A log of forty steps."""
    path = shell.folder / "run.log"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_a_log_becomes_a_receipt_that_check_reads(shell: Shell, log: Path) -> None:
    said = shell("ingest", "run.log", "-o", "run.json")
    assert said.code == 0, said.err
    assert "wrote run.json; next: receipts check run.json" in said.out
    assert "torchtitan (40 steps" in said.out
    assert shell("check", "run.json").code in (1, 3)
    assert json.loads((shell.folder / "run.json").read_bytes())["evidence"][0]["uri"] == "run.log"


def test_without_a_name_nothing_is_written(shell: Shell, log: Path) -> None:
    shell.unmade()
    said = shell("ingest", "run.log")
    assert said.code == 0
    assert "nothing was written" in said.out
    assert [item.name for item in shell.folder.iterdir()] == ["run.log"]


def test_an_existing_file_is_kept(shell: Shell, log: Path) -> None:
    (shell.folder / "run.json").write_text("mine", encoding="utf-8")
    assert shell("ingest", "run.log", "-o", "run.json").code == 2
    assert (shell.folder / "run.json").read_text(encoding="utf-8") == "mine"


def test_the_receipt_alone_goes_to_standard_output(shell: Shell, log: Path) -> None:
    said = shell("ingest", "run.log", "-o", "-")
    assert said.json["schema_version"] == "1.1"
    assert "Found" in said.err


def test_submitting_stores_it(shell: Shell, log: Path) -> None:
    said = shell("ingest", "run.log", "--submit", "--set", "run.label=forty steps")
    assert said.code == 0, said.err
    assert "forty steps" in shell("list").out


def test_everything_is_there_as_data(shell: Shell, log: Path) -> None:
    found = shell("ingest", "run.log", "--json").json
    assert found["files"][0]["readings"][0]["steps"] == 40
    assert {"receipt", "found", "missing", "contradictions", "remarks"} <= set(found)


def test_a_packed_log_reads_like_the_plain_one(shell: Shell, log: Path) -> None:
    (shell.folder / "packed").write_bytes(gzip.compress(LOG.encode()))
    one, other = (shell("ingest", name, "--json").json["receipt"]["measurement"] for name in ("run.log", "packed"))
    assert one == other


def test_standard_input_is_read(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    found = shell("ingest", "-", "--json").json
    assert found["receipt"]["evidence"][0]["uri"] == "standard input"


def test_a_folder_stands_for_its_files(shell: Shell, log: Path) -> None:
    (shell.folder / "out" / "deep").mkdir(parents=True)
    log.rename(shell.folder / "out" / "deep" / "console.txt")
    (shell.folder / "out" / "loop").symlink_to(shell.folder / "out")
    found = shell("ingest", "out", "--json").json
    assert [item["name"] for item in found["files"]] == ["deep/console.txt"]


def test_a_file_that_is_named_twice_is_read_once(shell: Shell, log: Path) -> None:
    found = shell("ingest", "run.log", "./run.log", str(log), "--json").json
    assert len(found["files"]) == 1


def test_files_of_one_name_are_told_apart(shell: Shell) -> None:
    for rank in (0, 1):
        (shell.folder / f"rank_{rank}").mkdir()
        (shell.folder / f"rank_{rank}" / "stdout.log").write_text(LOG, encoding="utf-8")
    names = [str(shell.folder / f"rank_{rank}" / "stdout.log") for rank in (0, 1)]
    found = shell("ingest", *names, "--json").json
    assert [item["name"] for item in found["files"]] == ["rank_0/stdout.log", "rank_1/stdout.log"]


def test_settings_and_lane_stand(shell: Shell, log: Path) -> None:
    words = ("--lane", "nvidia-torchtitan", "--set", "hardware.chips=8", "--witness-for", "abc", "--kind", "profile")
    receipt = shell("ingest", "run.log", *words, "--json").json["receipt"]
    assert receipt["hardware"]["chips"] == 8
    assert (receipt["run"]["lane"], receipt["run"]["witness_for"]) == ("nvidia-torchtitan", "abc")
    assert receipt["run"]["kind"] == "profile"


def test_a_mistyped_lane_is_answered_with_those_near_it(shell: Shell, log: Path) -> None:
    said = shell("ingest", "run.log", "--lane", "nvidia-torchtita")
    assert said.code == 2
    assert "did you mean nvidia-torchtitan" in said.err


def test_all_mistyped_settings_are_told(shell: Shell, log: Path) -> None:
    said = shell("ingest", "run.log", "--set", "hardware.chip=8", "--set", "batch.micro_batch=two")
    assert said.code == 2
    assert len(said.err.splitlines()) == 2


def test_a_run_that_ended_in_a_failed_allocation(shell: Shell) -> None:
    (shell.folder / "run.log").write_text(LOG + OOM, encoding="utf-8")
    receipt = shell("ingest", "run.log", "--json").json["receipt"]
    assert receipt["run"]["outcome"] == "oom"
    assert receipt["failure"]["requested_bytes"] == 2 << 30


def test_a_run_that_went_on_after_a_failed_allocation(shell: Shell) -> None:
    half = LOG.splitlines(keepends=True)
    (shell.folder / "run.log").write_text("".join([*half[:20], OOM, *half[20:]]), encoding="utf-8")
    receipt = shell("ingest", "run.log", "--json").json["receipt"]
    assert receipt["run"]["outcome"] == "unknown"
    assert "failure" not in receipt


def test_nothing_that_a_reader_knows_is_an_error(shell: Shell) -> None:
    (shell.folder / "notes.txt").write_text("2026-03-02 09:00:00 lunch\n", encoding="utf-8")
    said = shell("ingest", "notes.txt", "-o", "run.json")
    assert said.code == 2
    assert "no reader knows" in said.err
    assert not (shell.folder / "run.json").exists()


def test_a_log_without_a_date_has_that_of_its_file_and_from_a_pipe_asks_for_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "run.log").write_text(LOG.replace("2026-03-02 ", ""), encoding="utf-8")
    assert "the day is that of the file" in " ".join(shell("ingest", "run.log").out.split())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.replace("2026-03-02 ", "").encode())))
    said = shell("ingest", "-")
    assert said.code == 2
    assert "--set run.started=" in said.err
    assert shell("ingest", "run.log", "--set", "run.started=2026-03-02T09:00:00Z").code == 0


HOSTILE = {
    "empty": b"",
    "gzip cut in the middle": gzip.compress(LOG.encode())[:-200],
    "a gzip head alone": b"\x1f\x8b",
    "binary": bytes(range(256)) * 4000,
    "no UTF-8": b"\xff\xfe\xfa" + LOG.encode() + b"\xff" * 1000,
    "no line end": LOG.encode() + b"step: " * 400_000,
    "JSON cut in the middle": b'{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "du',
    "JSON that nests": b"[" * 200_000,
    "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "absurd numbers": LOG.replace("8,0", "9" * 5000).replace("25.40%", "1e999%").encode(),
    "control signs": b"\x1b]0;title\x07\x1b[2J" + LOG.replace("root", "\x1b[31mroot").encode(),
    "carriage returns": LOG.replace("\n", "\r").encode(),
    "half surrogates": LOG.encode() + b'{"loss": 1.0, "step": 3, "name": "\\ud800"}\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_read_as_far_as_they_go(shell: Shell, name: str) -> None:
    (shell.folder / "run.log").write_bytes(HOSTILE[name])
    said = shell("ingest", "run.log")
    assert said.code in (0, 2)
    assert "Traceback" not in said.err
    assert "\x1b" not in said.out


def test_a_cut_gzip_keeps_what_stands_before_the_break(shell: Shell) -> None:
    (shell.folder / "run.log").write_bytes(HOSTILE["gzip cut in the middle"])
    said = shell("ingest", "run.log")
    assert "breaks off" in said.out


def test_what_is_not_there_or_no_file_is_refused(shell: Shell) -> None:
    os.mkfifo(shell.folder / "pipe")
    for word in ("none.log", "pipe", "a\0b"):
        said = shell("ingest", word)
        assert said.code == 2
        assert len(said.err.splitlines()) == 1


def test_a_pipe_in_a_folder_is_passed_over(shell: Shell, log: Path) -> None:
    os.mkfifo(shell.folder / "pipe")
    said = shell("ingest", ".", "--json")
    assert said.code == 0
    assert any("pipe of ." in item["text"] for item in said.json["remarks"])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_that_may_not_be_read_is_refused(shell: Shell, log: Path) -> None:
    log.chmod(0)
    said = shell("ingest", "run.log")
    assert said.code == 2
    assert "permissions" in said.err


def test_a_folder_of_far_too_many_files_is_refused(shell: Shell) -> None:
    (shell.folder / "many").mkdir()
    for number in range(2_001):
        (shell.folder / "many" / f"{number}.log").touch()
    said = shell("ingest", "many")
    assert said.code == 2
    assert "more than 2,000 files" in said.err


@pytest.mark.slow
def test_one_line_of_100_megabytes_takes_no_more_memory_than_a_short_one(shell: Shell) -> None:
    import subprocess

    path = shell.folder / "run.log"
    with path.open("wb") as stream:
        stream.write(LOG.encode())
        for _ in range(100):
            stream.write(b"step: 1  loss: 2.0  tps: " * 41_944)
    program = (
        "import sys; from receipts.cli import main; code = main(['ingest', 'run.log', '--json']);"
        "high = open('/proc/self/status').read().split('VmHWM:')[1].split()[0];"
        "print(code, int(high) // 1024, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=shell.folder, capture_output=True, text=True, check=True)
    code, megabytes = map(int, done.stderr.split()[-2:])
    assert code == 0
    assert megabytes < 150
