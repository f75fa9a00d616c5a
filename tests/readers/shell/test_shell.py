"""Launch scripts and files of settings: flags as they were asked for, without secrets, places and guesses."""

from __future__ import annotations

from pathlib import Path

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

SCRIPT = """#!/usr/bin/env bash
set -euo pipefail
export XLA_FLAGS="--xla_tpu_scoped_vmem_limit_kib=98304 \\
  --xla_tpu_enable_async_collective_fusion=true $EXTRA"
LIBTPU_INIT_ARGS='--xla_enable_async_all_gather=true' PJRT_DEVICE=TPU python3 train.py --steps 30
export HF_TOKEN=hf_abcdefghijklmnop  # never read
export XLA_COMPILATION_CACHE_DIR=/mnt/cache
export MBS=${MBS:-8}
export NCCL_ALGO=Tree
export NCCL_ALGO=Ring
if [ "$MODE" = "x" ]; then echo "FOO=1"; fi
"""
SETTINGS = """# a lane's settings
CG_FLAGS=NONE
EP_SIZE_OVERRIDE=4
SOME_INDEX_CACHE=1
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
MAX_TOKENS=4096
"""


def settings(folder: Path, text: str) -> Reading | None:
    """The reading of settings."""
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    return next((item for item in read(path).readings if item.source == "launch"), None)


def flags(reading: Reading | None) -> dict[str, object]:
    assert reading is not None
    return {path.removeprefix("flags."): item.value for path, item in reading.stated.items()}


def test_a_launch_script_states_its_flags(tmp_path: Path) -> None:
    found = settings(tmp_path, SCRIPT)
    assert flags(found) == {
        "XLA_FLAGS.xla_tpu_scoped_vmem_limit_kib": "98304",
        "XLA_FLAGS.xla_tpu_enable_async_collective_fusion": True,
        "LIBTPU_INIT_ARGS.xla_enable_async_all_gather": True,
        "PJRT_DEVICE": "TPU",
        "XLA_COMPILATION_CACHE_DIR": "set",
        "NCCL_ALGO": "Ring",
    }
    assert found is not None
    assert found.stated["flags.PJRT_DEVICE"].place.line == 5
    assert [item.text.split()[0] for item in found.remarks] == ["MBS"]


def test_a_file_of_settings_states_its_flags(tmp_path: Path) -> None:
    assert flags(settings(tmp_path, SETTINGS)) == {
        "CG_FLAGS": "NONE",
        "EP_SIZE_OVERRIDE": "4",
        "SOME_INDEX_CACHE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "MAX_TOKENS": "4096",
    }


def test_a_log_with_an_assignment_in_it_is_no_script(tmp_path: Path) -> None:
    assert settings(tmp_path, "begin\nNCCL_DEBUG=INFO\n" + "step 1 done\n" * 20) is None


def test_an_open_quote_ends_no_reader(tmp_path: Path) -> None:
    found = settings(tmp_path, "#!/bin/sh\nexport NCCL_ALGO=Ring\nexport XLA_FLAGS='--xla_a=1\n" + "x\n" * 2000)
    assert flags(found) == {"NCCL_ALGO": "Ring"}
