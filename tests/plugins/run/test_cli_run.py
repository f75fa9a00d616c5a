"""`receipts run`: every attempt is a receipt, memory alone steps down the ladder, and a killed runner loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell

pytestmark = pytest.mark.slow

# A job whose memory is really limited: each sequence of the micro batch holds 100 MB.
JOB = """
import resource, sys, time
from receipts.emit import Recorder
micro = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
with Recorder(lane="cpu-torch", kind="training", probes=False) as rec:
    for step in range(3):
        with rec.step(tokens=micro * 256):
            held = bytearray(micro * 100 << 20)
            del held
print("done", micro)
"""
COMPILE_OOM = (
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory "
    "space hbm. Used 40.10G of 31.25G hbm. Exceeded hbm capacity by 8.85G."
)
CUDA_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB "
    "of which 1.06 GiB is free. Process 4711 has 138.74 GiB memory in use. Of the allocated memory 130.00 GiB is "
    "allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated."
)


def plan(shell: Shell, name: str = "plan.json", **leaves: Any) -> str:
    tree: dict[str, Any] = {
        "schema_version": "1.0",
        "run": {"lane": "cpu-torch", "kind": "training", "context": "toy"},
        "code": {"commit": "c0ffee", "dirty": False},
        "hardware": {"accelerator": "cpu", "chips": 1, "hosts": 1},
        "model": {"family": "dense", "pattern": "A", "alphabet": "nam", "depth": 4, "hidden": 64, "heads": 4},
        "batch": {"micro_batch": 8, "global_batch": 8, "accumulation": 1, "sequence_length": 256},
    }
    for path, value in leaves.items():
        section, _, leaf = path.partition("__")
        tree[section][leaf] = value
    (shell.folder / name).write_text(json.dumps(tree))
    return name


def script(shell: Shell, body: str, name: str = "job.py") -> list[str]:
    (shell.folder / name).write_text(body)
    return [sys.executable, str(shell.folder / name)]


def receipts_of(shell: Shell, folder: str = "w") -> list[dict[str, Any]]:
    places = sorted((shell.folder / folder).glob("attempt-*/receipt.json"))
    return [json.loads(place.read_bytes()) for place in places]


def state(shell: Shell, folder: str = "w") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shell.folder / folder / "state.json").read_bytes())
    return found


def test_a_job_that_really_runs_out_of_memory_is_launched_smaller(shell: Shell) -> None:
    said = shell("run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, JOB), "{batch.micro_batch}")
    assert said.code == 0, said.err
    assert "done 4" in said.out
    first, second = receipts_of(shell)
    assert (first["run"]["outcome"], first["failure"]["phase"]) == ("oom", "first_window")
    assert first["batch"]["micro_batch"] == 8
    assert first["failure"]["ladder"] == [{"launch": second["run"]["launch"], "rung": "device_batch"}]
    assert (second["run"]["outcome"], second["batch"]) == (
        "ok",
        {"micro_batch": 4, "global_batch": 8, "accumulation": 2, "sequence_length": 256},
    )
    assert len(second["measurement"]["step_durations_seconds"]) == 3
    assert [row["outcome"] for row in shell("list", "--json").json] == ["ok", "oom"]
    assert "batch.micro_batch 8 → 4" in said.err


def test_what_failed_is_not_paid_for_again_unless_forced(shell: Shell) -> None:
    command = ["--", *script(shell, JOB), "{batch.micro_batch}"]
    shell("run", "--dir", "w", "--plan", plan(shell), *command)
    again = shell("run", "--dir", "again", "--plan", "plan.json", *command)
    assert again.code == 0
    assert "not launched" in again.err
    assert [item["batch"]["micro_batch"] for item in receipts_of(shell, "again")] == [4]
    forced = shell("run", "--force", "--retries", "0", "--dir", "forced", "--plan", "plan.json", *command)
    assert forced.code == 1
    assert [item["batch"]["micro_batch"] for item in receipts_of(shell, "forced")] == [8]


def test_a_compile_time_failure_replayed_walks_to_the_end_of_the_ladder(shell: Shell) -> None:
    body = f"import sys\nprint({COMPILE_OOM!r}, file=sys.stderr)\nsys.exit(1)\n"
    words = ["{batch.micro_batch}", "{batch.sequence_length}"]
    name = plan(shell, run__lane="tpu-maxtext", hardware__accelerator="tpu-v6e", batch__micro_batch=2)
    said = shell("run", "--dir", "w", "--plan", name, "--", *script(shell, body), *words)
    assert said.code == 1
    found = receipts_of(shell)
    tried = [(item["batch"]["micro_batch"], item["batch"]["sequence_length"]) for item in found]
    assert tried == [(2, 256), (1, 256), (1, 128)]
    assert {item["failure"]["class"] for item in found} == {"compile_hbm"}
    assert [item["failure"]["ladder"][0]["rung"] for item in found] == ["device_batch", "sequence_length", "stop"]
    assert "no rung is left" in said.err
    assert state(shell)["over"] is True
    (folder, *_) = sorted((shell.folder / "w").glob("attempt-*/receipt.json"))
    assert found[0]["wheels"]["pytest"]["version"] == pytest.__version__
    assert "R411" not in shell("check", str(folder), "-v").out


def test_a_failure_whose_phase_nothing_tells_is_kept_and_not_retried(shell: Shell) -> None:
    body = f"import sys\nprint({CUDA_OOM!r}, file=sys.stderr)\nsys.exit(1)\n"
    name = plan(shell, run__lane="nvidia-torchtitan", hardware__accelerator="h200-sxm")
    said = shell("run", "--dir", "w", "--plan", name, "--", *script(shell, body), "{batch.micro_batch}")
    assert said.code == 1
    (only,) = receipts_of(shell)
    assert only["run"]["outcome"] == "oom"
    assert "ladder" not in only["failure"]
    assert "record its steps" in said.err


def test_only_memory_steps_down(shell: Shell) -> None:
    crash = script(shell, "raise SystemExit('no tokenizer at data/tok.json')")
    said = shell("run", "--dir", "w", "--plan", plan(shell), "--", *crash, "{batch.micro_batch}")
    assert said.code == 1
    (only,) = receipts_of(shell)
    assert only["run"]["outcome"] == "crash"
    assert only["run"]["exit_code"] == 1
    assert only["failure"]["class"] == "not_oom"


def test_a_command_that_cannot_be_told_the_change_is_not_launched_again(shell: Shell) -> None:
    said = shell("run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, JOB), "8")
    assert said.code == 1
    assert "the command takes no {batch.micro_batch}" in said.err
    assert len(receipts_of(shell)) == 1


def test_a_command_may_read_the_plan_itself(shell: Shell) -> None:
    reads = JOB.replace("int(sys.argv[1])", "__import__('json').load(open(sys.argv[1]))['batch']['micro_batch']")
    said = shell("run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, reads), "{plan}")
    assert said.code == 0
    assert [item["batch"]["micro_batch"] for item in receipts_of(shell)] == [8, 4]


def test_silence_is_a_hang_and_what_ignores_the_term_signal_is_killed(shell: Shell) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    options = ["--silence", "1", "--grace", "0.3"]
    said = shell("run", "--dir", "w", *options, "--plan", plan(shell), "--", *script(shell, deaf))
    assert said.code == 128 + signal.SIGKILL
    (only,) = receipts_of(shell)
    assert only["run"]["outcome"] == "hang"
    assert state(shell)["attempts"][0]["ended_by"] == "silence"


def outside(shell: Shell, *words: str) -> subprocess.Popen[bytes]:
    """The program as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "receipts", *words],
        cwd=shell.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def until(what: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def printed(shell: Shell, words: bytes) -> bool:
    log = shell.folder / "w" / "attempt-1" / "log.txt"
    return log.exists() and words in log.read_bytes()


def test_a_runner_that_is_killed_is_taken_up_with_how_its_command_ended(shell: Shell) -> None:
    slow = JOB.replace("with Recorder", "print('up', flush=True)\ntime.sleep(1.5)\nwith Recorder")
    command = [*script(shell, slow), "{batch.micro_batch}"]
    runner = outside(shell, "run", "--dir", "w", "--plan", plan(shell), "--", *command)
    until(lambda: printed(shell, b"up"))
    runner.kill()
    runner.wait()
    early = shell("run", "--resume", "w")
    assert early.code == 2
    assert "still runs" in early.err
    until(lambda: (shell.folder / "w" / "attempt-1" / "log.exit").exists())
    said = shell("run", "--resume", "w")
    assert said.code == 0, said.err
    first, second = receipts_of(shell)
    assert (first["run"]["exit_code"], first["run"]["outcome"]) == (1, "oom")
    assert first["failure"]["ladder"][0]["launch"] == second["run"]["launch"]
    assert shell("run", "--resume", "w").code == 2  # it is over


def test_a_runner_killed_behind_the_receipt_writes_the_same_one(shell: Shell) -> None:
    shell("run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, JOB), "{batch.micro_batch}")
    before = receipts_of(shell)
    content = state(shell)
    content["over"] = False
    content["attempts"] = content["attempts"][:1]
    content["attempts"][0] |= {"receipt": None, "outcome": None, "stored": False}
    (shell.folder / "w" / "state.json").write_text(json.dumps(content))
    said = shell("run", "--resume", "w")
    assert said.code == 0, said.err
    assert receipts_of(shell) == before
    assert len(shell("list", "--json").json) == 2


def test_a_signal_goes_to_the_command_and_is_no_failure_of_its_memory(shell: Shell) -> None:
    waits = "import time\nprint('up', flush=True)\ntime.sleep(60)"
    runner = outside(shell, "run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, waits))
    until(lambda: printed(shell, b"up"))
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(timeout=60) == 128 + signal.SIGTERM
    (only,) = receipts_of(shell)
    assert only["run"]["outcome"] == "preempted"


def test_two_runners_are_not_let_into_one_folder(shell: Shell) -> None:
    waits = "import time\nprint('up', flush=True)\ntime.sleep(60)"
    runner = outside(shell, "run", "--dir", "w", "--plan", plan(shell), "--", *script(shell, waits))
    until(lambda: printed(shell, b"up"))
    second = shell("run", "--dir", "w", "--plan", "plan.json", "--", "true")
    assert second.code == 2
    assert "exists and is kept" in second.err
    runner.send_signal(signal.SIGTERM)
    runner.wait(timeout=60)


def test_all_nodes_step_down_together_and_none_waits_for_the_one_that_failed(shell: Shell) -> None:
    body = f"""
import os, sys, time
micro, node = int(sys.argv[1]), os.environ["NODE"]
print("node", node, "micro", micro, flush=True)
if micro > 4 and node == "1":
    sys.exit({COMPILE_OOM!r})
time.sleep(60 if micro > 4 else 0.2)  # node 0 waits in a collective
"""
    command = [*script(shell, body), "{batch.micro_batch}"]
    name = plan(shell, run__lane="tpu-maxtext", hardware__accelerator="tpu-v6e", hardware__chips=8)
    program = [sys.executable, "-m", "receipts", "run", "--dir", "w", "--plan", name, "--grace", "1"]
    both = [
        subprocess.Popen(
            [*program, "--nodes", "2", "--node-rank", str(rank), "--", *command],
            cwd=shell.folder,
            env={**os.environ, "NODE": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in (0, 1)
    ]
    assert [item.wait(timeout=90) for item in both] == [0, 0]
    first, second = receipts_of(shell)
    assert (first["run"]["outcome"], first["failure"]["class"]) == ("oom", "compile_hbm")
    assert second["run"]["outcome"] == "ok"
    assert second["batch"]["micro_batch"] == 4
    assert "node 1 micro 4" in (shell.folder / "w" / "attempt-2" / "log.node-1.txt").read_text()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--plan", "plan.json"], "name the command after --"),
        (["--", "true"], "name what to launch"),
        (["--resume", "none"], "name the folder that receipts run made"),
        (["--resume", "none", "--", "true"], "--resume goes on"),
        (["--plan", "plan.json", "--nodes", "2", "--", "true"], "--nodes needs --dir"),
        (["--plan", "plan.json", "--dir", "w", "--nodes", "2", "--node-rank", "2", "--", "true"], "ranks count from 0"),
        (["--plan", "plan.json", "--dir", "w", "--", "no-such-program-here"], "there is no such program"),
        (["--plan", "plan.json", "--dir", "w", "--", "true", "{model.experts}", "{model.top_k}"], "model.experts"),
        (["--plan", "plan.json", "--dir", "absent/" * 3 + "\0", "--", "true"], "--dir"),
    ],
)
def test_a_wrong_call_is_told_and_leaves_nothing(shell: Shell, words: list[str], what: str) -> None:
    plan(shell)
    said = shell("run", *words)
    assert said.code == 2
    assert what in said.err
    assert "Traceback" not in said.err
    assert not list(shell.folder.glob("*/attempt-*/receipt.json"))


def test_every_leaf_that_the_plan_lacks_is_named_at_once(shell: Shell) -> None:
    said = shell("run", "--plan", plan(shell), "--", "true", "{model.experts}", "{model.top_k}", '{"json": [1]}')
    assert "model.experts" in said.err
    assert "model.top_k" in said.err
    assert not list(shell.folder.glob("receipts-run-*"))


def test_json_tells_every_attempt_and_nothing_of_the_command(shell: Shell) -> None:
    words = ["--json", "--dir", "w", "--plan", plan(shell), "--", *script(shell, JOB), "{batch.micro_batch}"]
    said = shell("run", *words)
    assert [(item["number"], item["outcome"], item["rung"]) for item in said.json["attempts"]] == [
        (1, "oom", None),
        (2, "ok", "device_batch"),
    ]
    assert said.json["exit_code"] == 0


def test_a_receipt_stays_where_the_store_cannot_be_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RECEIPTS_STORE", str(shell.folder / "file" / "store.sqlite"))
    said = shell("run", "--force", "--dir", "w", "--plan", plan(shell, batch__micro_batch=1), "--", "true")
    assert said.code == 0
    assert "receipts submit" in said.err
    assert len(receipts_of(shell)) == 1


TORCH = """
import resource, sys
import torch
from receipts.emit import Recorder
micro = int(sys.argv[1])
size = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (size + (700 << 20), size + (700 << 20)))
with Recorder(lane="cpu-torch", kind="training") as rec:
    for step in range(3):
        with rec.step(tokens=micro * 256):
            torch.ones(micro, 25 << 20).sum().item()
"""


def test_torch_out_of_memory_under_a_limit_steps_down(shell: Shell) -> None:
    python = os.environ.get("RECEIPTS_LAB_PYTHON")
    if not python:
        pytest.skip("RECEIPTS_LAB_PYTHON names no interpreter with torch")
    words = ["--", "env", f"PYTHONPATH={Path(__file__).parents[3]}", python, *script(shell, TORCH)[1:]]
    said = shell("run", "--dir", "w", "--plan", plan(shell), *words, "{batch.micro_batch}")
    assert said.code == 0, said.err
    found = receipts_of(shell)
    assert [item["run"]["outcome"] for item in found] == ["oom", "ok"]
    assert found[0]["failure"]["requested_bytes"] == 8 * (25 << 20) * 4


def test_a_slip_in_braces_is_told_before_anything_is_launched(shell: Shell) -> None:
    told = shell("run", "--dir", "w", "--plan", plan(shell), "--", "echo", "{batch.micro_btch}", "{other.words}")
    assert told.code == 2
    assert "{batch.micro_btch}: there is no such leaf; did you mean batch.micro_batch" in told.err
    assert "other.words" not in told.err
    assert not (shell.folder / "w").exists()
    assert "no run can be gone on with here" in shell("run", "--resume", "none").err
