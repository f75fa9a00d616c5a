"""Words that look like a failure or a missing memory, in logs and in what people wrote beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Shell
from receipts.receipt.leaves import counted_entries

STEP = "I0504 09:00:0{0}.100000 140 metric_logger.py:180] completed step: {0}, seconds: 0.50{0}, loss: 9.{0}\n"
REMAT = (
    "2026-05-04 09:00:00.100000: W external/xla/xla/service/hlo_rematerialization.cc:3005] Can't reduce memory use "
    "below 12.50GiB (13421772800 bytes) by rematerialization; only reduced to 14.20GiB (15247133900 bytes)\n"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use. Of the "
    "allocated memory 75.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
)


def said(shell: Shell, text: str, name: str = "run.log") -> str:
    (shell.folder / name).write_text(text, encoding="utf-8")
    return shell("ingest", name).out


def test_a_warning_about_memory_is_no_failure(shell: Shell) -> None:
    out = said(shell, REMAT)
    assert "failure" not in out.partition("Found")[0].replace("words like a failure's, and none", "")
    assert "words like a failure's, and none" in out


def test_an_ingested_receipt_counts_its_entries_and_one_taken_out_leaves_it_open(shell: Shell) -> None:
    (shell.folder / "run.log").write_text("".join(STEP.format(step) for step in range(6)), encoding="utf-8")
    shell("ingest", "run.log", "--lane", "tpu-maxtext", "--set", "run.started=2026-03-02T09:00:00Z", "-o", "run.json")
    tree = json.loads((shell.folder / "run.json").read_text(encoding="utf-8"))
    assert tree["run"]["entries"] == counted_entries(tree)
    assert "R120" not in shell("check", "run.json").out
    tree["measurement"]["step_durations_seconds"].pop()
    (shell.folder / "run.json").write_text(json.dumps(tree), encoding="utf-8")
    assert "R120 entries_lost" in shell("check", "run.json").out


def test_an_allocation_that_failed_is_one(shell: Shell) -> None:
    assert "oom (1 failure" in said(shell, OOM)


@pytest.mark.parametrize("prose", ["- memory: 'Memstats unavailable' on CPU\n", "Memstats unavailable on this host.\n"])
def test_prose_about_memory_is_no_statement_of_a_program(shell: Shell, prose: str) -> None:
    text = "".join(STEP.format(step) for step in range(6))
    assert "memory could not be had" not in said(shell, text + prose)


def test_the_error_behind_the_words_is_told(shell: Shell) -> None:
    text = "".join(STEP.format(step) for step in range(6))
    line = "I0504 09:00:01.1 140 max_utils.py:90] Memstats unavailable, error: 'NoneType' object is not subscriptable\n"
    assert "memory could not be had: error: 'NoneType'" in said(shell, text + line)


def test_a_real_run_with_a_page_about_it_tells_the_programs_own_words(cases: Path, shell: Shell) -> None:
    out = shell("ingest", str(cases / "real" / "maxtext" / "dev1_cache_warm")).out
    assert "memory could not be had: ' on CPU" not in out
    assert "1 failure" not in out
