"""Logs that a terminal or a page broke at its width."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from receipts.ingest import wrapping
from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

NANOTRON = """\
12/21 01:39:51 [INFO|DP=0|TP=0|node7]: iteration: 211364 / 1500000 | consumed_tokens: 480B | \
time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M | \
grad_norm: 0.112 | lm_loss: 2.04 | lr: 0.0001 | model_tflops_per_gpu: 15.4 | eta: 131 days, 1:45:39
12/21 01:40:00 [INFO|DP=0|TP=0|node7]: iteration: 211365 / 1500000 | consumed_tokens: 480B | \
time_per_iteration_ms: 8.74K | tokens_per_sec: 183K | tokens_per_sec_per_gpu: 703 | global_batch_size: 1.6M | \
grad_norm: 0.105 | lm_loss: 2.06 | lr: 0.0001 | model_tflops_per_gpu: 15.5 | eta: 130 days, 9:39:28
"""
MAXTEXT = """\
I0706 16:50:26.230209 139823 metric_logger.py:214] completed step: 11, seconds: 3.443, TFLOP/s/device: 413.433, \
Tokens/s/device: 7138.890, total_weights: 196608, loss: 2.136, lm_loss: 2.136, perplexity: 8.465
I0706 16:50:29.673209 139823 metric_logger.py:214] completed step: 12, seconds: 3.441, TFLOP/s/device: 413.673, \
Tokens/s/device: 7143.039, total_weights: 196608, loss: 2.129, lm_loss: 2.129, perplexity: 8.406
"""
DEEPSPEED = """\
[2024-05-11 12:00:01,001] [INFO] [config.py:1000:print]   train_batch_size ............. 32
[2024-05-11 12:01:10,501] [INFO] [timer.py:260:stop] epoch=0/micro_step=400/global_step=100, \
RunningAvgSamplesPerSec=12.803541987, CurrSamplesPerSec=12.91422817, MemAllocated=21.44GB, MaxMemAllocated=38.71GB
[2024-05-11 12:01:35,201] [INFO] [timer.py:260:stop] epoch=0/micro_step=440/global_step=110, \
RunningAvgSamplesPerSec=12.80921108, CurrSamplesPerSec=12.73010222, MemAllocated=21.44GB, MaxMemAllocated=38.71GB
"""
OOM = """\
RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (98.58G) exceeds available \
HBM (94.74G). HLO module: jit_fwd_bwd.
"""
TABLE = """\
TPU Runtime Utilization
┏━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
┃ Device ┃ HBM usage                ┃ Duty cycle ┃
┡━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
│ 0      │ 18.45 GiB / 31.25 GiB    │    100.00% │
│ 1      │ 10.40 GiB / 31.25 GiB    │    100.00% │
└────────┴──────────────────────────┴────────────┘
"""


def broken(text: str, width: int) -> str:
    """What a terminal of so many columns shows."""
    pieces = [line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width)]
    return "\n".join(pieces)


def said(tmp_path: Path, text: str) -> Reading:
    """The one reading of a log."""
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    (reading,) = read(path).readings
    return reading


def told(reading: Reading) -> object:
    """What a reading says, but for the lines."""
    steps = reading.steps
    return (
        reading.source,
        {step: [steps.get(step, name) for name in ("step_seconds", "tokens_per_second", "loss")] for step in steps},
        {path: stated.value for path, stated in reading.stated.items()},
        [(row.bytes_used, row.peak_bytes) for row in reading.memory],
        [(failure.class_, failure.used_bytes, failure.limit_bytes) for failure in reading.failures],
    )


@pytest.mark.parametrize("width", [50, 57, 64, 68, 79, 80, 81, 100, 132])
@pytest.mark.parametrize("text", [NANOTRON, MAXTEXT, DEEPSPEED, OOM], ids=["nanotron", "maxtext", "deepspeed", "oom"])
def test_a_terminal_of_any_width_changes_nothing(tmp_path: Path, text: str, width: int) -> None:
    assert told(said(tmp_path, broken(text, width))) == told(said(tmp_path, text))


@pytest.mark.parametrize("width", [50, 66, 80])
@pytest.mark.parametrize("text", [NANOTRON, MAXTEXT, OOM], ids=["nanotron", "maxtext", "oom"])
def test_a_page_that_broke_at_blanks_changes_nothing(tmp_path: Path, text: str, width: int) -> None:
    folded = "\n".join(textwrap.fill(line, width, break_long_words=False) for line in text.splitlines())
    assert told(said(tmp_path, folded)) == told(said(tmp_path, text))


def test_lines_that_begin_as_others_do_are_no_pieces_of_those_above(tmp_path: Path) -> None:
    # The longest lines have one length, and with the line below each would be a step's whole record.
    lines = [
        f"step {at}, loss: 5.0{at}\nstep {at}, step_time: 0.05s, tokens/s: {1024 * at:.1f}\n" for at in range(7, 30)
    ]
    path = tmp_path / "run.log"
    path.write_text("".join(lines))
    assert read(path).readings == ()


def test_blanks_at_the_column_may_be_gone(tmp_path: Path) -> None:
    text = NANOTRON.replace("TP=0|node7", "TP=0|node13")
    stripped = "\n".join(line.rstrip() for line in broken(text, 60).split("\n"))
    assert stripped != broken(text, 60)
    assert told(said(tmp_path, stripped)) == told(said(tmp_path, text))


def test_a_log_without_its_last_line_end_is_whole(tmp_path: Path) -> None:
    assert told(said(tmp_path, broken(MAXTEXT, 64).rstrip("\n"))) == told(said(tmp_path, MAXTEXT))


def test_colours_take_no_room_on_a_screen(tmp_path: Path) -> None:
    lines = broken(MAXTEXT, 64).split("\n")
    coloured = "\n".join(f"\x1b[32m{line}\x1b[0m" if at % 2 else line for at, line in enumerate(lines))
    assert told(said(tmp_path, coloured)) == told(said(tmp_path, MAXTEXT))


def test_places_are_lines_of_the_file(tmp_path: Path) -> None:
    reading = said(tmp_path, "\n" + broken(OOM, 50))
    (failure,) = reading.failures
    assert failure.place.line == 2
    stated = said(tmp_path, "\n\n" + broken(DEEPSPEED, 58)).stated["batch.global_batch"]
    assert stated.place.line == 3


def test_rows_of_one_length_stay_rows(tmp_path: Path) -> None:
    reading = said(tmp_path, TABLE)
    assert [(row.chip, row.place.line) for row in reading.memory] == [(0, 5), (1, 6)]


def test_lines_of_one_length_keep_their_places(tmp_path: Path) -> None:
    line = "Memory usage: 64.15MiB. Peak allocated {}.29MiB. Peak reserved: 496.00MiB iteration"
    text = "\n".join(line.format(number) for number in (300, 500, 400)) + "\n" + NANOTRON
    (row,) = said(tmp_path, text).memory
    assert (row.place.line, row.peak_bytes) == (2, round(500.29 * 2**20))


def test_on_a_page_a_record_that_begins_as_all_do_is_not_glued(tmp_path: Path) -> None:
    lines = [
        f"WARNING:2026-01-02 03:04:05,{at}:jax._src.dispatch:198: Finished XLA compilation of jit(part_{at}) "
        f"in {at / 1000:.9f} sec"
        for at in range(100, 160, 3)
    ]
    folded = "\n".join(textwrap.fill(line, 80, break_long_words=False, break_on_hyphens=False) for line in lines)
    assert said(tmp_path, folded).compile.compiles == len(lines)


@pytest.mark.parametrize("width", [52, 60])
def test_a_failure_without_figures_is_put_together(tmp_path: Path, width: int) -> None:
    text = "include/alloc.h:320 (ncclCuMemAlloc) NCCL WARN Cuda failure 2 'out of memory'\n"
    (failure,) = said(tmp_path, broken(text, width)).failures
    assert failure.class_ == "outside_allocator"


def test_what_is_unavailable_is_put_together(tmp_path: Path) -> None:
    text = "RuntimeError: Bad StatusOr access: UNIMPLEMENTED: GetAllocatorStats is not supported\n"
    assert said(tmp_path, broken(text, 66)).memory_unavailable


@pytest.mark.parametrize("margin", ["    ", "> ", "  > "])
def test_the_margin_of_a_page_is_no_part_of_what_was_broken(tmp_path: Path, margin: str) -> None:
    text = "\n".join(margin + line for line in broken(MAXTEXT, 80).split("\n"))
    assert told(said(tmp_path, text)) == told(said(tmp_path, MAXTEXT))


def test_a_warning_that_is_printed_again_and_again_is_no_line_that_goes_on(tmp_path: Path) -> None:
    log = (
        "[DEBUG    | DotProductAttention]: Selected backend = FusedAttention (sub-backend 1)",
        "[DEBUG    | DotProductAttention]: Available backends = {FlashAttention=False, FusedAttention=True}",
        "[INFO     | DotProductAttention]: Running with FusedAttention backend (sub-backend 1)",
    )
    warned = "[rank3]:W0302 10:00:00.123 torch/distributed/run.py:793] Warning: something\n"
    assert said(tmp_path, "".join(f"{line}\n{warned}" for line in log)).counters == {"FusedAttention": 1}


def test_of_widths_that_are_as_frequent_the_first_is_tried_whatever_the_hash_seed() -> None:
    lines = [f"{n:03}{'x' * (60 + n % 40)}" for n in range(120)]
    ways = next(wrapping._ways([*lines, "y" * 150]))  # readings show it of one hash seed in two
    assert [cast("partial[str]", way).args[0] for way in ways] == [150, len(lines[0])]
