"""A page that a person wrote is no evidence of memory; what it quotes in a block, and a log with notes in it, are."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

PAGE = """# What ran out of memory

On the second day the launch with a micro batch of 10 failed again on the same host as before.
- `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.` was printed by rank 3.
- The launch with a micro batch of 8 went on, and its peak was about 115 GiB of the 140 GiB.

The retry classes are compile time, allocation and RESOURCE_EXHAUSTED: Out of memory allocating 1024 bytes.
We will not run this configuration again before the activations are recomputed in every layer.
"""
ERROR = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
    "of which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use. Of the "
    "allocated memory 75.20 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
)


def readings(folder: Path, text: str) -> tuple[Reading, ...]:
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    return read(path).readings


def test_a_page_of_prose_is_no_evidence_of_a_failure(tmp_path: Path) -> None:
    assert not readings(tmp_path, PAGE)


@pytest.mark.parametrize("block", ["```\n" + ERROR + "```\n", "    " + ERROR])
def test_a_block_that_a_page_quotes_is_evidence(tmp_path: Path, block: str) -> None:
    (found,) = readings(tmp_path, PAGE + block)
    (failure,) = found.failures
    assert failure.requested_bytes == 2 << 30


def test_a_log_with_sentences_is_a_log(tmp_path: Path) -> None:
    steps = "".join(f"it {number} 0.{number} ok\n" for number in range(40))
    (found,) = readings(
        tmp_path, "# run 7\nThe loader of the training data begins at the first shard.\n" + steps + ERROR
    )
    assert found.failures


def test_an_error_alone_is_evidence(tmp_path: Path) -> None:
    (found,) = readings(tmp_path, ERROR)
    assert found.failures
