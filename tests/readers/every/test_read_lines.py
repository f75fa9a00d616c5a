"""Lines that readers know: read once with their file's digest, and beside lines that a person's map names."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from command_line import Shell
from receipts.ingest.evidence import read
from receipts.ingest.scan import scan

HOSTILE = (
    b"step: " + b"1" * (1 << 20),
    b"{'loss': " * (1 << 17),
    b"iteration 1/ 2 | " * (1 << 16),
    b"completed step: 1, seconds: " * (1 << 15),
    b"tps: 1,2" * (1 << 17),
    b" " * (1 << 20) + b"step: 1",
    (b"step: 1  loss: 2.5  grad_norm: 1.0  memory: 1.00GiB(1.0%)  tps: 1,000  tflops: 1.00  mfu: 1.00" + b"\n") * 9_000,
    (b" iteration        1/  10 | elapsed time per iteration (ms): 1.0 | lm loss: 1.0 |" + b"\n") * 9_000,
)


def test_a_file_is_read_once_for_its_lines_and_its_digest(tmp_path: Path) -> None:
    text = b"".join(b"iter %d: loss 2.5, time 130.5ms, mfu 31.5%%\n" % n for n in range(1, 50_000))
    for name, content in (("plain.log", text), ("packed.log.gz", gzip.compress(text)), ("open.log", text[:-1])):
        place = tmp_path / name
        place.write_bytes(content)
        found = read(place)
        assert found.sha256 == hashlib.sha256(content).hexdigest()
        assert len(found.readings[0].steps) == 49_999


def test_lines_of_a_log_are_read_beside_what_libraries_print(shell: Shell) -> None:
    lines = "".join(f"it {step} took {100 + step} ms, loss {3 - step / 50:.3f}\n" for step in range(1, 21))
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 "
        "GiB of which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use. Of the "
        "allocated memory 75.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
    )
    entry = (
        "pattern = 'it (?P<n>\\d+) took (?P<t>\\d+ ms), loss (?P<loss>\\S+)'\n"
        '[files.steps]\nstep = "n"\nstep_seconds = "t"\nloss = "loss"\n'
    )
    (shell.folder / "out.log").write_text(lines + oom, encoding="utf-8")
    (shell.folder / "steps.toml").write_text(f'[[files]]\nname = "out.log"\n{entry}', encoding="utf-8")
    started = "run.started=2026-03-02T09:00:00Z"
    outcome = shell("ingest", "out.log", "--map", "steps.toml", "--set", started, "--json")
    assert outcome.code == 0, outcome.err
    receipt = outcome.json["receipt"]
    assert receipt["measurement"]["step_durations_seconds"][0] == 0.101
    assert receipt["run"]["outcome"] == "oom"


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:16].decode())
def test_hostile_lines_are_read(text: bytes) -> None:
    lines = b"".join(
        b"step: %d  loss: 2.5  grad_norm: 1.0  memory: 1.00GiB(1.0%%)  tps: 1,000  tflops: 1.00  mfu: 1.00%%\n" % n
        for n in range(1, 2_000)
    )
    (first, *_) = [reading for reading in scan([lines, text, b"\n" * 100_000, lines]) if reading.source == "torchtitan"]
    assert first.records >= 1_999
