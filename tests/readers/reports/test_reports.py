"""Reports of an environment: versions, drivers and accelerators, of which a launch's own word stands above."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ingest_evidence import at
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.ingest.scan import scan

COLLECT = """Collecting environment information...
PyTorch version: 2.6.0+cu124
CUDA used to build PyTorch: 12.4
OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.11.9 (main) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration: GPU 0: NVIDIA H200
GPU 1: NVIDIA H200
Nvidia driver version: 560.35.03
cuDNN version: Could not collect
[pip3] nvidia-nccl-cu12==2.21.5
[pip3] triton==3.2.0
"""
REPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "collect-env": (
        COLLECT,
        {"wheels.torch": "2.6.0+cu124", "platform.cuda": "12.4", "platform.driver": "560.35.03", "hardware.chips": 2}
        | {"hardware.accelerator": "NVIDIA H200", "platform.nccl": "2.21.5", "wheels.triton": "3.2.0"},
    ),
    "transformers-env": (
        "- `transformers` version: 4.52.4\n- Platform: Linux-5.15\n- PyTorch version (GPU?): 2.6.0 (True)\n"
        "- GPU type: NVIDIA A100-SXM4-80GB\n- GPU number: 8\n",
        {"wheels.transformers": "4.52.4", "wheels.torch": "2.6.0", "hardware.chips": 8},
    ),
    "ds-report": (
        "torch version .................... 2.6.0\ndeepspeed info ................... 0.16.4, unknown, unknown\n",
        {"wheels.torch": "2.6.0", "wheels.deepspeed": "0.16.4"},
    ),
    "unsloth-banner": (
        "==((====))==  Unsloth 2025.3.19: Fast Llama patching. Transformers: 4.51.1.\n"
        "   \\\\   /|    NVIDIA A100-SXM4-80GB. Num GPUs = 1. Max memory: 79.151 GB. Platform: Linux.\n"
        "O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 8.0. CUDA Toolkit: 12.4. Triton: 3.2.0\n",
        {"wheels.unsloth": "2025.3.19", "wheels.torch": "2.6.0+cu124", "hardware.chips": 1},
    ),
    "jax-environment": (
        "jax:    0.4.35\njaxlib: 0.4.34\nnumpy:  1.26.4\ndevice info: TPU v4-8, 4 local devices\n",
        {"wheels.jax": "0.4.35", "hardware.accelerator": "TPU v4", "hardware.chips": 8},
    ),
    "axlearn-aot": (
        "Input memory: 4.4GB\nOutput memory: 4.4GB\nTemp memory: 170.9GB\n",
        {"compile.argument_bytes": 4_400_000_000, "compile.temp_bytes": 170_900_000_000},
    ),
}


@pytest.mark.parametrize("source", REPORTS)
def test_a_report_states_what_its_lines_say(source: str) -> None:
    text, wanted = REPORTS[source]
    reading = next(item for item in scan([text.encode()]) if item.source == source)
    assert {path: reading.stated[path].value for path in wanted} == wanted


def test_what_could_not_be_collected_is_not_stated() -> None:
    (reading,) = scan([COLLECT.encode()])
    assert "platform.cudnn" not in reading.stated


def test_a_line_that_another_program_prints_too_is_no_report() -> None:
    assert scan([b"PyTorch version: 2.6.0\nTemp memory: 1.0GB\n"]) == []


def test_the_chips_of_a_launch_stand_above_those_of_a_host(tmp_path: Path) -> None:
    (tmp_path / "env.txt").write_text(COLLECT)
    (tmp_path / "run.log").write_text(
        " > using world size: 16, data-parallel size: 16\n"
        " iteration        1/     100 | elapsed time per iteration (ms): 800.0 | global batch size: 16 | "
        "lm loss: 9.0 |\n"
    )
    found = assemble([read(tmp_path / "run.log"), read(tmp_path / "env.txt")], Options())
    assert at(found, "hardware.chips") == 16
    assert at(found, "wheels.torch") == "2.6.0+cu124"
