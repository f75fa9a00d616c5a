"""Templates of job files: each renders, is what its program reads, and that of Slurm runs under a small srun."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import Shell
from receipts.base.errors import NotFound, UsageError
from receipts.emit import identity
from receipts.plugins.run import record
from receipts.plugins.run.template import rendered, templates

CHECKOUT = Path(record.__file__).parents[3]
SRUN = """#!/usr/bin/env python3
import os, subprocess, sys
command = [word for word in sys.argv[1:] if not word.startswith("--")]
step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1"}
tasks = [
    subprocess.Popen(command, env={**os.environ, **step, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)})
    for rank in range(2)
]
sys.exit(max(task.wait() for task in tasks))
"""
JOB = """
import time
from receipts.emit import Recorder
with Recorder("cpu-torch", context="c", probes=False) as rec:
    for _ in range(5):
        with rec.step(tokens=8):
            time.sleep(0.02)
"""


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.slow
def test_a_batch_of_slurm_gives_one_receipt_of_all_its_tasks(shell: Shell) -> None:
    program(shell.folder, "srun", SRUN)
    program(shell.folder, "scontrol", "#!/bin/sh\necho node-1\n")
    program(shell.folder, "receipts", f'#!/bin/sh\nexec {sys.executable} -m receipts "$@"\n')
    (shell.folder / "job.py").write_text(JOB)
    store = next(shell.folder.glob("*.sqlite"), shell.folder / "store.sqlite")
    text = rendered(
        "sbatch", {"store": os.environ.get("RECEIPTS_STORE", str(store)), "command": f"{sys.executable} job.py"}
    )
    (shell.folder / "train.sh").write_text(text)
    batch = {"SLURM_JOB_ID": "811", "SLURM_JOB_NAME": "train", "SLURM_JOB_NODELIST": "node-1", "SLURM_PROCID": "0"}
    path = os.pathsep.join((str(shell.folder), os.environ["PATH"]))
    variables = {**os.environ, **batch, "PATH": path, "PYTHONPATH": str(CHECKOUT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        ["bash", "train.sh"], cwd=shell.folder, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 2 parts are here" in done.stderr
    (row,) = shell("list", "--json").json
    stated = shell("show", row["id"], "--json").json["stated"]
    assert (stated["run.job.name"], stated["run.job.id"], len(stated["run.processes"])) == ("train", "811", 2)


def manifest(**values: str) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(rendered("jobset", values))
    return tree


def test_the_pods_of_a_jobset_know_their_place() -> None:
    tree = manifest(nodes="4", name="llama")
    job = tree["spec"]["replicatedJobs"][0]["template"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    plain = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    asked = {"NODE_RANK": "3", "JOBSET_UID": "7f0c", "JOBSET_RESTART_ATTEMPT": "1"}
    assert asked.keys() < {item["name"] for item in container["env"]}
    pod = {**plain, **asked}
    assert (job["completionMode"], job["completions"], identity.among_several(pod)) == ("Indexed", 4, True)
    assert identity.attempt_of(pod) == ("jobset", "7f0c", "1")
    rank = {**pod, "RANK": "9", "WORLD_SIZE": "32", "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500"}
    assert identity.launch_of(rank) == identity.launch_of({**rank, "RANK": "1", "NODE_RANK": "0"})


def _misfits(kind: str, value: Any) -> Iterator[str]:
    """Fields that Kubernetes does not know, and values of another type, by its own Python models."""
    models = json.loads(Path(__file__).with_name("kubernetes_job.json").read_text(encoding="utf-8"))["models"]
    for name, item in value.items():
        if (wanted := models[kind].get(name)) is None:
            yield f"{kind}.{name}"
            continue
        inner = re.sub(r"List\[(.*)\]|Dict\[str, (.*)\]", r"\1\2", wanted)
        kinds = {"str": str, "int": int, "bool": bool}
        for one in item if wanted.startswith("List") else item.values() if wanted.startswith("Dict") else [item]:
            if inner in models:
                yield from _misfits(inner, one)
            elif type(one) is not kinds.get(inner):
                yield f"{kind}.{name}: {one!r}"


def test_the_job_of_a_jobset_is_one_to_the_schema_of_kubernetes() -> None:
    tree = manifest(command="echo 'a: \"b\"' && python train.py")
    (replicated,) = tree["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", **replicated["template"]}
    assert list(_misfits("V1Job", job)) == []
    job["spec"]["completions"] = "2"
    job["spec"]["template"]["spec"]["container"] = []
    assert list(_misfits("V1Job", job)) == ["V1JobSpec.completions: '2'", "V1PodSpec.container"]


def test_every_template_is_whole_and_takes_what_is_set(tmp_path: Path) -> None:
    hostile = "python train.py --name 'a b' \"$HOME\""
    task = ast.parse(rendered("nemo-run", {"command": hostile}))
    assert hostile in {node.value for node in ast.walk(task) if isinstance(node, ast.Constant)}
    sky = yaml.safe_load(rendered("skypilot", {"nodes": "3", "gpus": "4"}))
    assert (sky["num_nodes"], sky["resources"]["accelerators"]) == (3, "H200:4")
    assert subprocess.run(["bash", "-n"], input=sky["run"], text=True, check=False).returncode == 0
    # What xpk is called with.
    program(tmp_path, "xpk", '#!/bin/sh\nfor word; do echo "$word"; done\n')
    program(tmp_path, "uuidgen", "#!/bin/sh\necho 1-2\n")
    variables = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "RECEIPTS_TOKEN": "t"}
    text = rendered("xpk", {"command": hostile, "slices": "2"})
    words = subprocess.run(["sh"], input=text, env=variables, capture_output=True, text=True, check=True).stdout
    assert words.splitlines()[-2:] == ["--command", hostile]
    assert "RECEIPTS_LAUNCH=1-2" in words


def test_a_key_or_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    assert set(templates()) == {"sbatch", "jobset", "xpk", "skypilot", "nemo-run"}
    with pytest.raises(NotFound, match="sbatch"):
        rendered("sbach", {})
    with pytest.raises(UsageError, match="nodes"):
        rendered("sbatch", {"node": "2"})
    with pytest.raises(UsageError, match="characters"):
        rendered("jobset", {"name": "a\n  b: c"})


def test_the_command_prints_it_as_it_is(shell: Shell) -> None:
    assert shell("template", "jobset").out == rendered("jobset", {})
    assert "sbatch" in shell("template").out
    assert shell("template", "sbatch", "--set", "nodes").code == 2
