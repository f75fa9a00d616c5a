"""A process knows its place by what launchers and schedulers leave in its environment, and an index is no rank."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from receipts.emit import identity
from receipts.receipt import parse, read
from tests.emit.jobs import recorder

SLURM = {
    "SLURM_JOB_ID": "811",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "16",
    "SLURM_PROCID": "9",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_JOB_PARTITION": "h200",
    "SLURM_CLUSTER_NAME": "eos",
}
TPU = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b,c,d"}
SLICES = {**TPU, "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1", "MEGASCALE_COORDINATOR_ADDRESS": "j-0-0.j"}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "16", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "world", "local"),
    [
        (SLURM, "slurm", 9, 16, 1),
        ({**SLURM, **TORCHRUN}, "torchrun", 3, 16, 3),
        ({"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}, "pmi", 5, 8, 1),
        ({"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4", "FLUX_TASK_LOCAL_ID": "1"}, "flux", 3, 4, 1),
        ({"JSM_NAMESPACE_RANK": "7", "JSM_NAMESPACE_SIZE": "12"}, "jsrun", 7, 12, 0),
        (
            {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_LOCAL_RANK": "1"},
            "mvapich",
            1,
            2,
            1,
        ),
        # One pod of an indexed Job may be a launch of its own, and so may a task of an array.
        ({"JOB_COMPLETION_INDEX": "3", "JOB_UID": "u"}, "", 0, 1, 0),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_JOB_ID": "9"}, "", 0, 1, 0),
        # Hosts are ranks of JAX alone.
        (TPU, "", 0, 1, 0),
        ({"SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_NODES": "2"}, "", 0, 1, 0),
    ],
)
def test_a_rank_is_that_of_the_innermost_launcher(
    variables: dict[str, str], launcher: str, rank: int, world: int, local: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    place = identity.process_rank(variables)
    assert (place.launcher, place.rank, place.world, place.local_rank) == (launcher, rank, world, local)


@pytest.mark.parametrize(
    ("variables", "launcher", "rank", "world"),
    [
        (TPU, "tpu pod", 1, 4),
        (SLICES, "tpu slices", 5, 8),
        ({"SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_NODES": "2"}, "skypilot", 1, 2),
        ({"NODE_RANK": "3", "NNODES": "4", "JOB_COMPLETION_INDEX": "3"}, "xpk", 3, 4),
        # A slice that does not say which it is has no rank.
        ({name: text for name, text in SLICES.items() if name != "MEGASCALE_SLICE_ID"}, "", 0, 1),
    ],
)
def test_where_jax_is_loaded_hosts_are_ranks(
    variables: dict[str, str], launcher: str, rank: int, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    place = identity.process_rank(variables)
    assert (place.launcher, place.rank, place.world) == (launcher, rank, world)


JOBSET = {"JOBSET_UID": "7f0c", "JOBSET_NAME": "llama", "JOBSET_RESTART_ATTEMPT": "0", "KUEUE_QUEUE_NAME": "tpus"}
RAY = {"RAY_JOB_ID": "01000000", "MASTER_ADDR": "10.0.0.2", "RANK": "0", "WORLD_SIZE": "4"}
SKY = {"SKYPILOT_TASK_ID": "sky-1_train", "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", "SKYPILOT_NUM_NODES": "2"}


@pytest.mark.parametrize(
    ("variables", "own", "other"),
    [
        (SLURM, {"SLURM_PROCID": "1", "SLURM_LOCALID": "0"}, {"SLURM_RESTART_COUNT": "1"}),
        (SLURM, {"SLURM_PROCID": "1"}, {"SLURM_STEP_ID": "1"}),
        # torchrun without a run id, one on each node.
        ({**SLURM, **TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}, {"RANK": "1"}, {"SLURM_JOB_ID": "812"}),
        # A run id that is the job's, requeued.
        ({**SLURM, **TORCHRUN, "TORCHELASTIC_RUN_ID": "811"}, {"RANK": "1"}, {"SLURM_RESTART_COUNT": "1"}),
        ({**SLICES, **JOBSET}, {"TPU_WORKER_ID": "0", "MEGASCALE_SLICE_ID": "0"}, {"JOBSET_RESTART_ATTEMPT": "1"}),
        ({**RAY, "MASTER_PORT": "41234"}, {"RANK": "1"}, {"MASTER_PORT": "41235"}),
        ({**SKY, "SKYPILOT_NODE_RANK": "0"}, {"SKYPILOT_NODE_RANK": "1"}, {"SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.9"}),
        ({"PALS_APID": "a1", "PMI_RANK": "0", "PMI_SIZE": "2"}, {"PMI_RANK": "1"}, {"PALS_APID": "a2"}),
    ],
)
def test_ranks_of_an_attempt_agree_on_its_name_and_the_next_attempt_has_another(
    variables: dict[str, str], own: dict[str, str], other: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_parent", lambda: "")  # ranks of several hosts have no parent in common
    name = identity.launch_of(variables)
    assert identity.launch_of({**variables, **own}) == name
    assert identity.launch_of({**variables, **other}) != name
    place = identity.process_rank(variables)
    assert identity.ranks_agree_on_launch(variables, place)


@pytest.mark.parametrize(
    "variables",
    [
        {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
        {"JOBSET_UID": "7f0c", "JOB_COMPLETION_INDEX": "2"},
        {"RAY_JOB_ID": "01000000"},
        {"PBS_JOBID": "7", "PMI_RANK": "0", "PMI_SIZE": "2"},
    ],
    ids=["two programs in one step", "pods on their own", "a task of Ray", "two mpiruns in one job"],
)
def test_what_may_hold_several_launches_names_none(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_parent", lambda: "")
    assert identity.launch_of(variables) != identity.launch_of(variables)


def test_the_job_is_in_the_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = {"SLURM_ARRAY_JOB_ID": "800", "SLURM_ARRAY_TASK_ID": "11", "SLURM_RESTART_COUNT": "1"}
    one = {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    for name, text in {**SLURM, **array, **one}.items():
        monkeypatch.setenv(name, text)
    with recorder(tmp_path) as rec:
        pass
    job = parse(read(rec.written)).receipt.run.job
    assert job is not None
    assert job.model_dump(exclude_none=True) == {
        "scheduler": "slurm",
        "id": "811",
        "step": "0",
        "array": "800_11",
        "attempt": "1",
        "queue": "h200",
    }


def test_steps_of_slurm_itself_are_no_steps() -> None:
    assert "step" not in identity.job_of({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "4294967291"})
    assert identity.attempt_of({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "4294967291"}) == ()
    assert identity.job_of(JOBSET) == {
        "scheduler": "jobset",
        "id": "7f0c",
        "name": "llama",
        "attempt": "0",
        "queue": "tpus",
    }


class Store:
    """As much of a process group's store as ranks agree by."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        if self.held.get(key, "") == expected:
            self.held[key] = value
        return self.held[key].encode()


def test_ranks_that_a_script_spawned_are_those_of_its_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    group = types.ModuleType("torch.distributed")
    vars(group).update(is_initialized=lambda: True, get_rank=lambda: 3, get_world_size=lambda: 4)
    inner, store = types.ModuleType("torch.distributed.distributed_c10d"), Store()
    vars(inner)["_get_default_store"] = lambda: store
    for module in (group, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("RANK", "RECEIPTS_LAUNCH"):
        monkeypatch.delenv(name, raising=False)
    place = identity.process_rank()
    assert (place.rank, place.world, place.launcher) == (3, 4, identity.TORCH)
    about: Any = dict.fromkeys(("launch", "label", "context", "site", "witness_for", "resumed_from", "lane"))
    about |= {"kind": "training", "tags": [], "warmup": None, "start_step": None}
    faults: list[str] = []
    launches = []
    for count in (0, 0, 1):  # two ranks, and a second launch of one of them
        monkeypatch.setattr(identity, "_asked_group", count)
        launches.append(identity.first_frame(about, place, faults.append)["launch"])
    assert launches[0] == launches[1] != launches[2]
    assert not faults
