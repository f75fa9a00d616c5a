"""What collectors and viewers put before every line hides nothing that takes several lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.wrapping import figures, margin

LOG = """\
INFO:root:Starting the run with 3 > 2 & "quotes"
TPU Runtime Utilization
┏━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
┃ Device ┃ HBM usage                ┃ Duty cycle ┃
┡━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
│ 0      │ 18.45 GiB / 31.25 GiB    │    100.00% │
│ 1      │ 10.40 GiB / 31.25 GiB    │    100.00% │
└────────┴──────────────────────────┴────────────┘
***** train metrics *****
  epoch                    =        0.5
  train_loss               =     2.6602
  train_runtime            = 0:08:58.11
  train_samples            =      28865
{'loss': 2.5, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'epoch': 0.5, 'step': 7}
"""


def at(n: int) -> str:
    return f"10:{n // 60:02d}:{n % 60:02d}"


MARGINS: dict[str, Callable[[int], str]] = {
    "Kubernetes": lambda n: f"2026-03-02T{at(n)}.12345678{n % 10}Z stdout F ",
    "GitHub": lambda n: f"2026-03-02T{at(n)}.1234567Z ",
    "kubectl": lambda n: "[pod/train-master-0/pytorch] ",
    "Docker Compose": lambda n: "trainer-1  | ",
    "a Python logger": lambda n: f"2026-03-02 {at(n)},123 - train - INFO - ",
    "journald": lambda n: f"Mar 02 {at(n)} node7 train.sh[4711]: ",
    "mpirun with times": lambda n: f"Mon Mar  2 {at(n)} 2026[1,0]<stdout>:",
    "grep of a file": lambda n: f"logs/run.log:{n + 1}:",
    "a quotation": lambda n: "> ",
    "numbered lines": lambda n: f"{n + 1:6d}\t",
}


def count(path: Path, text: str) -> int:
    path.write_text(text, encoding="utf-8")
    return figures(read(path).readings)


@pytest.mark.parametrize("name", MARGINS)
def test_a_log_behind_a_margin_tells_as_much(name: str, tmp_path: Path) -> None:
    lines = LOG.splitlines()
    text = "".join(f"{MARGINS[name](n)}{line}\n" for n, line in enumerate(lines))
    assert count(tmp_path / "margin.log", text) == count(tmp_path / "plain.log", LOG) > 10


@pytest.mark.parametrize("long", [1, 3000], ids=["short", "long"])
def test_lines_keep_their_numbers(long: int, tmp_path: Path) -> None:
    lines = [
        *LOG.splitlines(),
        *["nothing of note, as most lines of a log are, and not short, that it may take room"] * long,
    ]
    path = tmp_path / "margin.log"
    path.write_text("".join(f"{MARGINS['Kubernetes'](n)}{line}\n" for n, line in enumerate(lines)), encoding="utf-8")
    (reading,) = (item for item in read(path).readings if item.source == "tpu-info")
    assert [row.place.line for row in reading.memory] == [6, 7]


def test_a_margin_ends_before_a_rank() -> None:
    text = b"".join(b"Mar 02 10:00:0%d [rank%d]: %c is done\n" % (n, n % 4, 97 + n) for n in range(8))
    cut = margin(text)
    assert cut is not None
    assert cut(text).splitlines()[5] == b"[rank1]: f is done"


def test_indents_behind_a_margin_stay() -> None:
    text = b"".join(b"node-1: %s\n" % line for line in (b"model:", b"  depth: 4", b"", b"  heads: 8"))
    cut = margin(text)
    assert cut is not None
    assert cut(text).splitlines() == [b"model:", b"  depth: 4", b"", b"  heads: 8"]
    assert cut(b"node-1:\n") == b"\n"


def test_a_page_that_spaces_its_lines_doubly_tells_as_much(tmp_path: Path) -> None:
    assert count(tmp_path / "spaced.log", LOG.replace("\n", "\n\n")) == count(tmp_path / "plain.log", LOG)


def test_characters_that_a_page_escapes_are_read(tmp_path: Path) -> None:
    escaped = LOG.replace("&", "&amp;").replace("'", "&#39;").replace('"', "&quot;").replace(">", "&gt;")
    assert count(tmp_path / "page.log", escaped) == count(tmp_path / "plain.log", LOG)


def test_rows_of_one_length_that_are_numbered_are_not_one_broken_line(tmp_path: Path) -> None:
    record = "Step {0} | loss:2.5 tokens_per_second_per_gpu:4512.25 peak_memory_reserved:45.5"
    (tmp_path / "numbered.log").write_text("".join(f"{n:6d}\t{record.format(n)}\n" for n in range(1, 40)))
    (reading,) = read(tmp_path / "numbered.log").readings
    assert [row.peak_reserved_bytes for row in reading.memory] == [round(45.5 * 2**30)]
