"""What a launch was started with, as files of commands, scripts, trackers and printed configurations say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.arguments import launch_of_command, launch_of_script
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options, receipt_file
from receipts.ingest.evidence import read

SCRIPT = """#!/bin/bash
GPUS=8
TP=${TP:-4}
LAUNCHER=(
    --nproc_per_node $GPUS   # of this host
    --master_addr $MASTER_ADDR
)
MODEL_ARGS="
    --num-layers 24 \\
    --no-bias --lr 6.0e-5"
pip install -e .
python tools/preprocess.py --input $1
torchrun ${LAUNCHER[@]} pretrain_gpt.py \\
    $MODEL_ARGS \\
    --tensor-model-parallel-size $TP --data-path "$DATA" 2>&1 | tee log.txt
"""


def ingested(folder: Path, **texts: str) -> Ingested:
    files = []
    for name, text in texts.items():
        path = folder / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
        files.append(read(path))
    return assemble(files)


def inputs(folder: Path, **texts: str) -> dict[str, Any]:
    return dict(ingested(folder, **texts).tree.get("inputs", {}))


def test_a_file_of_one_command_says_what_was_started(tmp_path: Path) -> None:
    found = ingested(tmp_path, command__txt="env NLAYERS=1 OMP_NUM_THREADS=2 torchrun --nnodes 1 t.py a --lr=1e-2\n")
    said = found.tree["inputs"]
    assert (said["program"], said["options"]) == ("t.py", {"#0": "a", "lr": "1e-2"})
    assert said["environment"] == {"NLAYERS": "1"}
    assert said["launcher"]["torchrun.nnodes"] == "1"
    assert found.tree["flags"] == {"OMP_NUM_THREADS": "2"}
    assert found.tree["run"]["command"].startswith("env NLAYERS=1")
    assert said["capture"] == "read in command.txt:1: its files and variables were not seen"


@pytest.mark.parametrize(
    "text",
    ["echo done\n", "Run `python train.py --x 1` to start, and wait.\n", "loss 3.0\nstep 2\n", "# python t.py\n", ""],
)
def test_prose_and_logs_start_nothing(text: str) -> None:
    assert launch_of_command(text) is None


def test_what_is_left_to_fill_in_is_no_redirection() -> None:
    launch = launch_of_command("PYTHONPATH=<the checkout> torchrun t.py --lr <rate> < in.txt > out.txt")
    assert launch is not None
    assert (launch.line.program, launch.line.options) == ("t.py", {"lr": "<rate>"})


def test_a_script_starts_what_its_launcher_is_given_with_what_it_assigned() -> None:
    launch = launch_of_script(SCRIPT)
    assert launch is not None
    assert launch.line.program == "pretrain_gpt.py"
    assert launch.line.options == {
        "num_layers": "24",
        "bias": "false",
        "lr": "6.0e-5",
        "tensor_model_parallel_size": "4",
        "data_path": "$DATA",
    }
    assert launch.line.launcher["torchrun.nproc_per_node"] == "8"
    assert launch.place.line == 13


def test_a_script_that_starts_several_programs_names_none() -> None:
    assert launch_of_script("#!/bin/bash\npython a.py --x 1\npython b.py --x 2\n") is None


def test_two_files_of_commands_that_differ_name_no_launch(tmp_path: Path) -> None:
    found = ingested(tmp_path, a__txt="python t.py --lr 1\n", b__txt="python t.py --lr 2\n")
    assert "inputs" not in found.tree
    assert any("start other programs, or give them other options" in message.text for message in found.messages)
    assert inputs(tmp_path, a__txt="python t.py --lr 1\n", b__txt="python t.py --lr=1.0\n")["options"] == {"lr": "1"}


def test_secrets_of_a_command_stay_out(tmp_path: Path) -> None:
    token = "hf_0123456789abcdefghijklmn"
    line = f"WANDB_API_KEY=abcdef0123456789 MINE={token} python t.py --hub_token {token} --lr 3\n"
    found = ingested(tmp_path, command__txt=line)
    assert token not in found.raw.decode()
    assert "abcdef0123456789" not in found.raw.decode()
    assert found.tree["inputs"]["options"] == {"hub_token": "[redacted]", "lr": "3"}


def test_a_receipt_that_has_inputs_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "command.txt").write_text("python t.py --lr 1\n", encoding="utf-8")
    required = {"run.lane": "cpu-torch", "run.outcome": "ok", "run.started": "2026-03-02T09:00:00Z"}
    first = assemble([read(tmp_path / "command.txt")], Options(settings=required))
    assert first.problems == ()
    (tmp_path / "run.json").write_bytes(first.raw)
    (tmp_path / "other.txt").write_text("python t.py --lr 2\n", encoding="utf-8")
    receipt = receipt_file(tmp_path / "run.json", "run.json")
    assert receipt is not None
    again = assemble([receipt, read(tmp_path / "other.txt")])
    assert again.tree["inputs"] == first.tree["inputs"]
