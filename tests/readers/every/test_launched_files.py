"""What a launch was started with, as scripts, trackers and printed arguments say it that readers know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from receipts.ingest.assembly import assemble
from receipts.ingest.evidence import read

SCRIPT = """#!/bin/bash
GPUS=8
MODEL_ARGS="
    --num-layers 24 \\
    --no-bias --lr 6.0e-5"
torchrun --nproc_per_node $GPUS pretrain_gpt.py $MODEL_ARGS 2>&1 | tee log.txt
"""


def inputs(folder: Path, **texts: str) -> dict[str, Any]:
    files = []
    for name, text in texts.items():
        path = folder / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
        files.append(read(path))
    return dict(assemble(files).tree.get("inputs", {}))


def test_a_script_s_line_is_the_launch_s(tmp_path: Path) -> None:
    found = inputs(tmp_path, train__sh=SCRIPT)
    assert found["program"] == "pretrain_gpt.py"
    assert found["options"]["num_layers"] == "24"


def test_what_a_tracker_keeps_goes_before_a_script(tmp_path: Path) -> None:
    metadata: dict[str, Any] = {"python": "3.11.7", "executable": "/usr/bin/python", "program": "/home/me/x/t.py"}
    metadata |= {"codePath": "x/t.py", "args": ["--lr", "3"]}
    found = inputs(tmp_path, wandb_metadata__json=json.dumps(metadata), train__sh=SCRIPT)
    assert (found["program"], found["options"]) == ("x/t.py", {"lr": "3"})


def test_arguments_that_a_program_printed_are_resolved(tmp_path: Path) -> None:
    log = """------------------------ arguments ------------------------
  bf16 ............................................ True
  lr .............................................. 0.0003
  num_layers ...................................... 24
  save ............................................ None
-------------------- end of arguments ---------------------
"""
    found = inputs(tmp_path, run__log=log)
    assert found == {"resolved": {"bf16": "True", "lr": "0.0003", "num_layers": "24", "save": "None"}}
