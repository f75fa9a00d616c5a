"""Kept evidence under kills and full disks: what was acknowledged is there whole, and nothing else looks kept."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from receipts.base.errors import ReceiptsError, StoreError, UsageError
from receipts.store.address import address
from receipts.store.evidence import LIMIT, files_beside, kept_files
from thorough import unless_thorough

KILLS = unless_thorough(20, 300)


def _keep_for_ever(folder: Path, log: Path, first: int) -> None:
    """Keep one file after another, and acknowledge each."""
    kept, number = files_beside(folder / "s.sqlite"), first
    with log.open("w") as stream:
        while True:
            file = folder / f"{number}.log"
            file.write_text(f"step {number}\n" * 2000)
            stream.write(f"{kept.put(file)}\n")
            stream.flush()
            number += 1


def test_a_killed_writer_keeps_what_it_acknowledged_and_leaves_nothing_half(tmp_path: Path) -> None:
    draw, kept = random.Random(22), files_beside(tmp_path / "s.sqlite")
    for kill in range(KILLS):
        log = tmp_path / "acknowledged"
        log.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                _keep_for_ever(tmp_path, log, kill * 1000)
            finally:
                os._exit(1)
        while not log.exists():
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        acknowledged = [line.strip() for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        assert kept.held(acknowledged) == set(acknowledged)
    assert kept.all()
    for item in kept.all():
        with kept.file(item.digest):  # which checks the digest
            pass


def test_a_full_disk_keeps_nothing_and_leaves_what_was_kept(tmp_path: Path) -> None:
    kept = files_beside(tmp_path / "s.sqlite")
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_text("step 1\n")
    large.write_bytes(random.Random(22).randbytes(1 << 20))
    first = kept.put(small)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on the size of files stands in for a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(ReceiptsError, match="cannot be kept"):
            kept.put(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [item.digest for item in kept.all()] == [first]
    assert not list((tmp_path / "s.sqlite.evidence").glob("*/.*"))
    assert kept.held([kept.put(large)])


def test_more_than_the_limit_is_refused_until_something_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, files = address(str(tmp_path / "s.sqlite")), [tmp_path / "a.log", tmp_path / "b.log"]
    for seed, file in enumerate(files):
        file.write_bytes(random.Random(seed).randbytes(40_000))
    monkeypatch.setenv(LIMIT, "64 KiB")
    kept = kept_files(place)
    assert kept is not None
    first = kept.put(files[0])
    assert kept.put(files[0]) == first  # what is kept already takes no more
    with pytest.raises(StoreError, match=r"b.log: 39.1. KiB packed, beside 39.1. KiB .*\(64.00 KiB\).*evidence gc"):
        kept.put(files[1])
    kept.remove(first)
    assert kept.held([kept.put(files[1])])
    for wrong in ("much", "0", "1,5 GiB"):
        monkeypatch.setenv(LIMIT, wrong)
        with pytest.raises(UsageError, match="write it like 200 GiB"):
            kept_files(place)
