"""The lines of docs/recorder.md, "In your framework", added to jobs: of the frameworks themselves, else of stand-ins.

RECEIPTS_LAB_PYTHON names the interpreter of an environment that has them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework_jobs import NEEDS, RAN, STAND_IN
from jobs import environment, read
from receipts.emit import Recorder
from receipts.emit.integrations import composer_callback, jax_step, maxtext_step, patch_megatron, record_torchtitan
from receipts.receipt import parse
from receipts.receipt import read as load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recorder.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## In your framework")[2].partition("\n## ")[0]
SNIPPETS = dict(re.findall(r"^### (.+?)\n+```python\n(.*?)```", SECTION, re.MULTILINE | re.DOTALL))
STEPS = 6
# Tokens of a step, by what the jobs are.
TOKENS = {"transformers": 512, "Lightning": 8192, "torchtitan": 128, "JAX": 8192}
TOKENS |= {"Composer": 512, "Megatron-LM": 512, "MaxText": 512}
FRAMEWORK = {"transformers": "hf-trainer", "Lightning": "lightning", "torchtitan": "torchtitan", "JAX": "jax"}
FRAMEWORK |= {"Composer": "composer", "Megatron-LM": "megatron-lm", "MaxText": "maxtext"}


def lab(module: str) -> str:
    """The interpreter of the environment that has a module; skips where there is none."""
    python = os.environ.get("RECEIPTS_LAB_PYTHON", "")
    if not python:
        pytest.skip("RECEIPTS_LAB_PYTHON names no interpreter with the frameworks")
    done = subprocess.run(
        [python, "-W", "ignore", "-c", f"import {module}"], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        pytest.skip(f"{module} cannot be imported there: {done.stderr.strip().splitlines()[-1]}")
    return python


def recorded(folder: Path, python: str, name: str, before: str) -> dict[str, Any]:
    """The receipt of a job with the page's lines in it; it must also read as a receipt."""
    (folder / "job.py").write_text(f"{before}\n{SNIPPETS[name]}", encoding="utf-8")
    env = environment(CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    if extra := os.environ.get("PYTHONPATH"):
        env["PYTHONPATH"] += os.pathsep + extra
    done = subprocess.run(
        [python, "job.py"], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    parse(load(folder / "run.json"))
    return read(folder / "run.json")


def holds(found: dict[str, Any], name: str) -> None:
    """What is true of every framework: six steps, their tokens, the framework's name, a loss, and no fault."""
    measured = found["measurement"]
    assert len(measured["step_durations_seconds"]) == STEPS
    assert measured["tokens_per_step"] == TOKENS[name]
    assert measured["loss"]["finite"] is True
    assert found["path"]["witnessed"]["framework"] == FRAMEWORK[name]
    faults = [
        text
        for text in found["notes"].get("recorder", [])
        if "Error" in text or text.startswith(f"{FRAMEWORK[name]}: ")
    ]
    assert faults == []


@pytest.mark.parametrize("name", list(STAND_IN))
def test_the_lines_of_the_page_record_a_stand_in(name: str, tmp_path: Path) -> None:
    holds(recorded(tmp_path, sys.executable, name, STAND_IN[name]), name)


@pytest.mark.parametrize("name", list(RAN))
def test_the_lines_of_the_page_record_the_framework_itself(name: str, tmp_path: Path) -> None:
    found = recorded(tmp_path, lab(NEEDS[name]), name, RAN[name])
    holds(found, name)
    spans = found["measurement"].get("goodput", {})
    if name == "transformers":
        batch = found["batch"]
        assert (batch["micro_batch"], batch["accumulation"], batch["global_batch"]) == (2, 2, 4)
        model = found["model"]
        assert (model["depth"], model["hidden"], model["heads"], model["kv_heads"]) == (2, 32, 4, 2)
        assert found["numerics"]["seed"] == 7
    if name == "torchtitan":
        batch = found["batch"]
        assert (batch["micro_batch"], batch["accumulation"], batch["global_batch"]) == (2, 2, 4)
        assert batch["sequence_length"] == 32
        assert found["parallelism"]["shard"] == 1
        assert found["measurement"]["loss"]["last"] < found["measurement"]["loss"]["first"]
    if name in ("Megatron-LM", "MaxText"):
        assert found["model"]["depth"] == 2
        assert found["measurement"]["loss"]["last"] < found["measurement"]["loss"]["first"]
    if name in ("transformers", "Lightning", "torchtitan", "Megatron-LM"):
        assert spans["eval_seconds"] > 0
    if name in ("transformers", "Lightning", "torchtitan"):
        assert spans["checkpoint_seconds"] > 0


def test_every_framework_of_the_page_has_a_job() -> None:
    assert sorted(SNIPPETS) == sorted({**RAN, **STAND_IN})


def recorder(folder: Path) -> Recorder:
    return Recorder("cpu-torch", out=folder / "run.json", probes=False, quiet=True, journal=False)


class Broken:
    """An object whose every attribute fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def test_a_hook_that_fails_is_a_note_and_no_exception(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        callback = composer_callback(rec)
        callback.fit_start(Broken(), None)
        record_torchtitan(rec, Broken())
        patch_megatron(rec, Broken())
        maxtext_step(rec, lambda: None, Broken())()
        rec.state("model.depth", 2)
    notes = " ".join(read(rec.written)["notes"]["recorder"])
    assert "composer: fit_start: RuntimeError: torch is not imported" in notes
    assert "torchtitan: configuration: RuntimeError" in notes
    assert "maxtext: loss: TypeError" in notes


def test_an_exception_of_the_step_is_the_jobs_and_the_step_is_none(tmp_path: Path) -> None:
    def fails(batch: int) -> int:
        if batch == 2:
            raise ValueError("the job's own")
        return batch

    with recorder(tmp_path) as rec:
        step = jax_step(rec, fails)
        assert [step(batch) for batch in range(2)] == [0, 1]
        with pytest.raises(ValueError, match="the job's own"):
            step(2)
        assert step(3) == 3
    assert len(read(rec.written)["measurement"]["step_durations_seconds"]) == 3


def test_a_wrapped_step_keeps_the_attributes_of_the_function(tmp_path: Path) -> None:
    def inner() -> None:
        pass

    inner.lower = lambda *given: given  # type: ignore[attr-defined]
    assert jax_step(recorder(tmp_path), inner).lower(1, 2) == (1, 2)


def test_what_the_caller_states_stands_above_the_framework(tmp_path: Path) -> None:
    class Config:
        num_decoder_layers = 3

    with recorder(tmp_path) as rec:
        rec.state("model.depth", 12)
        maxtext_step(rec, lambda: (None, {"scalar": {}}), Config)()
    assert read(rec.written)["model"]["depth"] == 12


def test_a_patch_of_megatron_is_taken_back(tmp_path: Path) -> None:
    class Training:
        def __repr__(self) -> str:
            return "training"

        @staticmethod
        def train_step() -> int:
            return 1

    module = Training()
    inner = module.train_step
    with recorder(tmp_path) as rec:
        restore = patch_megatron(rec, module)
        assert module.train_step() == 1
        assert module.train_step is not inner
        restore()
        assert module.train_step is inner
    found = read(rec.written)
    assert len(found["measurement"]["step_durations_seconds"]) == 1
    assert "training has no training_log: what it did is not recorded" in str(found["notes"])
