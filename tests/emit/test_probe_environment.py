"""Flags of the environment: all of the list, one key a flag, in time or too late only where that can be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs import job, read
from probe_stage import Stage, StandIn, stand_in
from receipts.emit.probes import environment
from receipts.emit.probes.environment import Look, flags, nested

__all__ = ["stand_in"]
PLANTED = "hf_QwErTyUiOpAsDfGhJkLzXcVbNm"
RUN = """
with Recorder("cpu-jax", context="c", out="run.json", quiet=True, keep_journal=True) as rec:
    with rec.step(tokens=8):
        pass
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without flags, of a process whose beginnings are unknown."""
    for name in flags(os.environ):
        monkeypatch.delenv(name.partition(".")[0], raising=False)
    monkeypatch.setattr(environment, "at_exec", dict)
    for name in ("numpy", "torch", "jax", "jaxlib"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)


def test_every_sub_flag_has_a_key_of_its_own_and_the_last_of_one_name_counts() -> None:
    text = "--xla_a=1 --xla_b --xla_c='x y' --xla_a=2"
    assert nested(text) == [("xla_b", "true"), ("xla_c", "x y"), ("xla_a", "2")]
    found = flags({"XLA_FLAGS": text, "LIBTPU_INIT_ARGS": " --xla_tpu_x=false", "HOME": "/x"})
    assert found["XLA_FLAGS.xla_a"] == "2"
    assert found["LIBTPU_INIT_ARGS.xla_tpu_x"] == "false"
    assert "HOME" not in found


def test_of_a_place_that_is_written_to_only_that_it_is_set_is_kept() -> None:
    places = {"TORCHINDUCTOR_CACHE_DIR": "/scratch/me", "JAX_COMPILATION_CACHE_DIR": "gs://mine/cache"}
    found = flags({**places, "XLA_FLAGS": "--xla_dump_to=/home/me/dump --xla_dump_hlo_as_text", "NCCL_ALGO": "Ring"})
    assert found == {
        "TORCHINDUCTOR_CACHE_DIR": "set",
        "JAX_COMPILATION_CACHE_DIR": "set",
        "XLA_FLAGS.xla_dump_to": "set",
        "XLA_FLAGS.xla_dump_hlo_as_text": "true",
        "NCCL_ALGO": "Ring",
    }


def test_a_path_that_decides_what_is_loaded_is_kept() -> None:
    assert flags({"LD_LIBRARY_PATH": "/opt/a:/opt/b"}) == {"LD_LIBRARY_PATH": "/opt/a:/opt/b"}


def test_unclosed_quotes_in_flags_are_read_as_words() -> None:
    assert nested("--xla_a='x --xla_b=1") == [("xla_a", "'x"), ("xla_b", "1")]


def test_a_flag_that_the_process_was_executed_with_was_in_time(tmp_path: Path) -> None:
    variables = {"XLA_FLAGS": "--xla_a=1 --xla_b", "NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "2"}
    done = job(tmp_path, RUN, variables)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "run.json")["flags"]
    assert found["complete"] is True
    assert found["XLA_FLAGS.xla_a"] == {"value": "1", "before_runtime": True}
    assert found["XLA_FLAGS.xla_b"] == {"value": True, "before_runtime": True}
    assert found["NCCL_ALGO"] == {"value": "Ring", "before_runtime": True}


@pytest.mark.usefixtures("bare")
def test_a_flag_that_is_seen_before_its_reader_is_imported_was_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    look = Look()
    look.again(flags(os.environ))
    assert look.before["JAX_ENABLE_X64"] is True


@pytest.mark.usefixtures("bare")
def test_a_flag_that_comes_after_its_reader_is_too_late(monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> None:
    stand_in("jax")
    stage = Stage("environment")
    environment.at_start(stage.stated)
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    environment.at_phase(stage.stated, "post_step0")
    assert stage.get("flags.JAX_ENABLE_X64") == {"value": "1", "before_runtime": False}


@pytest.mark.usefixtures("bare")
def test_whether_a_flag_that_came_beside_its_reader_was_in_time_stays_open(
    monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    look = Look()
    look.again(flags(os.environ))
    stand_in("jax")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    look.again(flags(os.environ))
    assert look.before["JAX_ENABLE_X64"] is None


@pytest.mark.usefixtures("bare")
def test_a_flag_of_cuda_is_late_only_once_cuda_has_begun(monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> None:
    stand_in("torch")
    cuda = stand_in("torch.cuda", _initialized=False)
    look = Look()
    look.again(flags(os.environ))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    look.again(flags(os.environ))
    vars(cuda)["_initialized"] = True
    look.again(flags(os.environ))
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    look.again(flags(os.environ))
    assert look.before == {"CUDA_VISIBLE_DEVICES": None, "NCCL_ALGO": False}


@pytest.mark.usefixtures("bare")
def test_the_loaders_path_is_too_late_where_the_process_began_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "at_exec", lambda: {"NCCL_ALGO": "Ring"})
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    look = Look()
    look.again(flags(os.environ))
    assert look.before["LD_LIBRARY_PATH"] is False


@pytest.mark.usefixtures("bare")
def test_what_a_runtime_writes_for_itself_is_no_flag(monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> None:
    stage = Stage("environment")
    environment.at_start(stage.stated)
    stand_in("torch")
    monkeypatch.setenv("CUDA_MODULE_LOADING", "LAZY")
    environment.at_end(stage.stated)
    assert stage.get("flags.CUDA_MODULE_LOADING") is None
    assert "torch set CUDA_MODULE_LOADING=LAZY" in stage.notes


@pytest.mark.usefixtures("bare")
def test_a_flag_that_changes_or_goes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("NCCL_PROTO", "LL")
    stage = Stage("environment")
    environment.at_start(stage.stated)
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    monkeypatch.delenv("NCCL_PROTO")
    environment.at_end(stage.stated)
    assert stage.get("flags.NCCL_ALGO")["value"] == "Tree"
    assert "'Ring', and became 'Tree'" in stage.notes
    assert "not at the end: NCCL_PROTO" in stage.notes


def test_no_planted_token_reaches_the_receipt_or_the_journal(tmp_path: Path) -> None:
    planted = {
        "HF_TOKEN": PLANTED,
        "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
        "NCCL_AUTH_TOKEN": "plantedtokenvalue1",
        "TORCH_LOGS_OUT": f"/tmp/{PLANTED}.log",
        "XLA_FLAGS": f"--xla_api_key=plantedkeyvalue2 --xla_dump_to=/tmp/{PLANTED}",
        "TF_VAR_database": "plantedvalue3",
        "NVTE_X": "https://me:plantedpass4@host/x",
    }
    done = job(tmp_path, RUN, planted)
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".py")
    for secret in (PLANTED, "0123456789abcdef", "plantedtoken", "plantedkey", "plantedvalue3", "plantedpass4"):
        assert secret.encode() not in written
    assert b"XLA_FLAGS.xla_dump_to" in written
