"""Parts of ranks become one receipt; missing and disagreeing ranks are told by name."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from jobs import job, read, recorder
from receipts.emit import identity, rank_join
from receipts.receipt import parse
from receipts.receipt import read as read_document

LAUNCH = "0b8e5d0e-6a52-4a53-9d0c-0c5a6a0f7f10"


def part(rank: int, world: int = 4, *, host: str = "a", **changes: Any) -> dict[str, Any]:
    """A part as a rank writes it; ``__`` in a name stands for a dot of the receipt."""
    tree: dict[str, Any] = {
        "schema_version": "1.0",
        "run": {
            "launch": LAUNCH,
            "lane": "nvidia-megatron",
            "kind": "training",
            "outcome": "ok",
            "provenance": "measured",
            "started": f"2026-03-02T09:00:0{rank % 10}Z",
            "finished": f"2026-03-02T09:10:0{rank % 10}Z",
            "host": host,
            "exit_code": 0,
        },
        "wheels": {"torch": "2.9.1"},
        "flags": {"complete": True, "NCCL_DEBUG": "INFO"},
        "model": {"depth": 8},
        "compile": {"compile_seconds": 10.0 + rank},
        "measurement": {
            "window": {"start": 1},
            "tokens_per_step": 4096,
            "step_flags": {"warmup": [0]},
            "loss": {"last": 2.0, "finite": True},
            "step_durations_seconds": [5.0, 1.0 + rank / 10, 1.0 + rank / 10],
        },
        "memory": {"chips": [{"device": 0, "phase": "steady", "peak_bytes": 1000 + rank}]},
    }
    for name, value in changes.items():
        keys = name.split("__")
        node = tree
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = value
    head = {"receipts_part": 1, "launch": tree["run"]["launch"], "rank": rank, "world": world, "local_rank": rank % 2}
    return {**head, "host": host, "device": None, "receipt": tree}


def write(folder: Path, *parts: Mapping[str, Any]) -> list[str]:
    """Files of parts."""
    for item in parts:
        (folder / f"run.rank{item['rank']:05d}.part.json").write_text(json.dumps(item), encoding="utf-8")
    return sorted(str(path) for path in folder.glob("*.part.json"))


def left_path(verdicts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Where R302 says of a receipt that it left its path, and with which level."""
    return [(item["at"], item["level"]) for item in verdicts[0]["findings"] if item["code"] == "R302"]


def test_the_receipt_has_every_chip_and_the_slowest_rank_of_every_step(shell: Shell) -> None:
    files = write(shell.folder, *(part(rank) for rank in range(4)))
    said = shell("merge", *files, "-o", "run.json")
    assert said.code == 0, said.err + said.out
    found = parse(read_document(shell.folder / "run.json")).stated
    assert [found[f"memory.chips[{chip}].chip"] for chip in range(4)] == [0, 1, 2, 3]
    assert [found[f"memory.chips[{chip}].peak_bytes"] for chip in range(4)] == [1000, 1001, 1002, 1003]
    assert found["measurement.step_durations_seconds"] == [5.0, 1.3, 1.3]
    assert found["measurement.health.rank_skew"] == pytest.approx(0.3 / 1.3)
    assert found["compile.compile_seconds"] == 13.0
    assert (found["run.started"], found["run.finished"]) == ("2026-03-02T09:00:00Z", "2026-03-02T09:10:03Z")
    assert (found["hardware.chips"], found["hardware.hosts"]) == (4, 1)
    assert found["flags.complete"] is True


def test_the_order_of_the_parts_changes_no_byte(shell: Shell) -> None:
    files = write(shell.folder, *(part(rank, host="ab"[rank // 2]) for rank in range(4)))
    shell("merge", *files, "-o", "one.json")
    shell("merge", *reversed(files), "-o", "two.json")
    shell("merge", ".", "-o", "three.json")
    bytes_of = {(shell.folder / f"{name}.json").read_bytes() for name in ("one", "two", "three")}
    assert len(bytes_of) == 1


def test_a_missing_rank_is_named_and_nothing_is_written(shell: Shell) -> None:
    files = write(shell.folder, part(0), part(1), part(3))
    said = shell("merge", *files, "-o", "run.json")
    assert said.code == 3
    assert "parts of rank 2 are missing" in said.out
    assert not (shell.folder / "run.json").exists()
    assert shell("merge", *files, "-o", "run.json", "--partial").code == 3
    found = read(shell.folder / "run.json")
    assert "parts of rank 2 of 4 are missing" in found["notes"]["recorder"]
    assert "chips" not in found.get("hardware", {})


def test_ranks_that_disagree_are_named_and_the_value_is_left_out(shell: Shell) -> None:
    parts = [part(rank) for rank in range(4)]
    parts[3] = part(3, platform__nccl="2.27", model__depth=9, flags__NCCL_DEBUG="WARN", wheels__torch="2.9.0")
    for item in parts[:3]:
        item["receipt"]["platform"] = {"nccl": "2.26"}
    said = shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert said.code == 1
    assert "platform.nccl: ranks disagree and it is left out: 2.26 (ranks 0-2); 2.27 (rank 3)" in said.out
    found = read(shell.folder / "run.json")
    assert "platform" not in found
    assert "model" not in found
    # In a map that was captured whole an absent key would be the value *unset*: what differs is said there.
    assert found["flags"]["NCCL_DEBUG"] == "INFO (ranks 0-2); WARN (rank 3)"
    assert found["wheels"]["torch"] == "2.9.1 (ranks 0-2); 2.9.0 (rank 3)"


@pytest.mark.parametrize(
    ("leaf", "asked", "usual", "other"),
    [
        ("attention", "path.intended.attention", "te_fused", "te_unfused"),
        ("runtime", "path.intended.runtime", "cuda", "cpu"),
        ("gemm", "path.intended.gemm", "te_bf16", "cublas_bf16"),
        ("compute_dtype", "numerics.compute_dtype", "bf16", "fp32"),
        ("posture", "compile.posture", "eager", "regional"),
    ],
)
def test_a_rank_that_left_the_path_is_convicted(shell: Shell, leaf: str, asked: str, usual: str, other: str) -> None:
    stated = {asked.replace(".", "__"): usual}
    parts = [part(rank, 8, **stated, **{f"path__witnessed__{leaf}": usual}) for rank in range(7)]
    parts.append(part(7, 8, **stated, **{f"path__witnessed__{leaf}": other}))
    said = shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert said.code == 1
    words = f"path.witnessed.{leaf}: ranks disagree and it is stated with each: {usual} (ranks 0-6); {other} (rank 7)"
    assert words in " ".join(said.out.split())
    assert read(shell.folder / "run.json")["path"]["witnessed"][leaf] == f"{usual}+{other}"
    judged = shell("check", "run.json", "--json")
    assert judged.code == 1
    assert (f"path.witnessed.{leaf}", "E") in left_path(judged.json)


def test_the_bytes_of_two_ranks_programs_are_those_of_one_rank(shell: Shell) -> None:
    sizes = [(10, 1, 900), (800, 700, 5)]
    names = [f"compile__{name}_bytes" for name in ("argument", "output", "temp")]
    parts = [part(rank, 2, **dict(zip(names, sizes[rank], strict=True))) for rank in range(2)]
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 0
    compiled = read(shell.folder / "run.json")["compile"]
    assert [compiled[f"{name}_bytes"] for name in ("argument", "output", "temp")] == [800, 700, 5]


def test_the_spread_of_one_ranks_clocks_is_not_lost_in_that_of_the_ranks(shell: Shell) -> None:
    health = {"measurement__health__clock_mhz": 1980.0}
    parts = [part(0, 2, measurement__health__clock_spread=0.2, **health), part(1, 2, **health)]
    shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert read(shell.folder / "run.json")["measurement"]["health"]["clock_spread"] == 0.2


def test_ranks_that_name_their_kernels_in_another_order_agree(shell: Shell) -> None:
    kernels = ("te_fused+dsa_tilelang", "dsa_tilelang+te_fused")
    parts = [part(rank, 2, path__witnessed__attention=kernels[rank]) for rank in range(2)]
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 0


def test_stages_that_run_other_kernels_are_what_was_asked_for_together(shell: Shell) -> None:
    kernels, asked = ("te_fused", "dsa_tilelang"), {"path__intended__attention": "dsa_tilelang+te_fused"}
    parts = [part(rank, 2, path__witnessed__attention=kernels[rank], **asked) for rank in range(2)]
    shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert not any("attention" in at for at, _ in left_path(shell("check", "run.json", "--json").json))


def test_a_flag_that_some_ranks_lack_is_unset_there(shell: Shell) -> None:
    parts = [part(0, 2), part(1, 2, flags__NCCL_ALGO="Ring")]
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 1
    assert read(shell.folder / "run.json")["flags"]["NCCL_ALGO"] == "unset (rank 0); Ring (rank 1)"


def test_a_flag_that_a_launcher_gives_each_rank_is_no_disagreement(shell: Shell) -> None:
    parts = [part(rank, 2, flags__CUDA_VISIBLE_DEVICES=str(rank)) for rank in range(2)]
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"run__launch": "another"},
            "rank 1 (",
        ),
        ({"run__lane": "cpu-torch"}, "is of lane cpu-torch"),
        ({"run__kind": "profile"}, "is of kind profile"),
    ],
)
def test_parts_of_two_launches_are_refused(shell: Shell, change: dict[str, Any], words: str) -> None:
    parts = [part(0, 3), part(1, 3, **change), part(2, 3)]
    said = shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert said.code == 2
    assert words in said.err
    assert not (shell.folder / "run.json").exists()


def test_a_rank_that_is_there_twice_is_refused(shell: Shell) -> None:
    files = write(shell.folder, part(0, 2), part(1, 2))
    (shell.folder / "again.part.json").write_text(json.dumps(part(1, 2, model__depth=9)), encoding="utf-8")
    said = shell("merge", *files, "again.part.json", "-o", "run.json")
    assert said.code == 2
    assert "rank 1 is there twice" in said.err


def test_the_failure_is_that_of_the_rank_that_began_it(shell: Shell) -> None:
    oom = {"class": "capacity", "phase": "steady", "message": "CUDA out of memory", "rank": 2}
    parts = [
        part(rank, run__outcome="crash", run__exit_code=1, failure={"class": "not_oom", "message": "NCCL"})
        for rank in (0, 1)
    ]
    parts += [part(2, run__outcome="oom", run__exit_code=1, failure=oom), part(3, run__outcome="preempted")]
    parts[2]["device"] = 0
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 0
    found = read(shell.folder / "run.json")
    assert (found["run"]["outcome"], found["failure"]["class"], found["failure"]["rank"]) == ("oom", "capacity", 2)
    assert found["failure"]["chip"] == 2
    assert "ranks 0-1: crash" in found["notes"]["recorder"]


def test_the_failure_is_that_of_the_rank_that_went_and_not_of_those_that_lost_it(shell: Shell) -> None:
    words = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"
    lost: dict[str, Any] = {
        "run__outcome": "crash",
        "failure": {"class": "not_oom", "message": words, "step": 2, "phase": "steady"},
    }
    silent = {"message": "the process ended without a word", "step": 2, "phase": "steady"}
    went = part(1, 3, run__outcome="crash", failure=silent)
    files = write(shell.folder, part(0, 3, **lost), went, part(2, 3, **lost))
    assert shell("merge", *files, "-o", "run.json").code == 0
    failure = read(shell.folder / "run.json")["failure"]
    assert failure["rank"] == 1
    assert failure["message"] == f"the process ended without a word; of rank 0: {words}"
    # Where somebody says what happened to himself, that is the failure.
    own = part(1, 3, run__outcome="crash", failure={**lost["failure"], "message": "ValueError: shapes"})
    assert shell("merge", *write(shell.folder, own), "-o", "own.json").code == 0
    assert read(shell.folder / "own.json")["failure"]["message"] == "ValueError: shapes"


def test_what_the_failing_rank_said_is_read_again(shell: Shell) -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 "
        "GiB of which 1.05 GiB is free. Process 77 has 30.00 GiB memory in use. Including non-PyTorch memory, this "
        "process has 48.04 GiB memory in use. Of the allocated memory 45.20 GiB is allocated by PyTorch, and 1.31 GiB "
        "is reserved by PyTorch but unallocated."
    )
    parts = [part(0, 2), part(1, 2, run__outcome="oom", failure={"class": "capacity", "message": text})]
    shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert read(shell.folder / "run.json")["failure"]["class"] == "foreign_process"


def test_devices_of_a_host_follow_those_of_the_hosts_before(shell: Shell) -> None:
    rows = [{"device": device, "phase": "steady", "bytes_used": device} for device in range(4)]
    parts = [part(rank, 2, host="ab"[rank], memory={"chips": rows}) for rank in range(2)]
    assert shell("merge", *write(shell.folder, *parts), "-o", "run.json").code == 0
    chips = read(shell.folder / "run.json")["memory"]["chips"]
    assert [row["chip"] for row in chips] == list(range(8))


def test_counters_tell_the_rank_that_is_farthest_off(shell: Shell) -> None:
    rows = [[{"name": "te", "count": count, "expected": 100}] for count in (100, 97, 104)]
    parts = [part(rank, 3, measurement__path_counters=rows[rank]) for rank in range(3)]
    shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert read(shell.folder / "run.json")["measurement"]["path_counters"][0]["count"] == 104


def test_a_rank_that_ended_early_is_told(shell: Shell) -> None:
    parts = [part(0, 2), part(1, 2, measurement__step_durations_seconds=[1.0])]
    said = shell("merge", *write(shell.folder, *parts), "-o", "run.json")
    assert said.code == 1
    assert "different numbers of steps: 3 (rank 0); 1 (rank 1)" in said.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is not JSON"),
        ("[]", "this is no part"),
        ('{"schema_version": "1.0"}', "a whole receipt"),
        ('{"receipts_part": 2}', "part of version 2"),
        ('{"receipts_part": 1, "launch": 5}', "it says no launch"),
        (json.dumps({**part(0), "rank": 7}), "rank 7 of 4"),
        (json.dumps(part(0, measurement=[])), "measurement"),
        (json.dumps(part(0, memory={"chips": [{"device": "x", "phase": "steady"}]})), "memory.chips[0].chip"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_what_is_no_part_is_refused(shell: Shell, text: str, words: str) -> None:
    (shell.folder / "x.part.json").write_text(text, encoding="utf-8")
    said = shell("merge", "x.part.json", "-o", "run.json")
    assert said.code == 2
    assert words in said.err


RANK = """
rank = int(os.environ["RANK"])
with Recorder("nvidia-megatron", warmup=1, probes=False, quiet=True, out="run.json") as rec:
    rec.memory("steady", device=rank, peak_bytes=1000 + rank)
    for number in range(50):
        with rec.step(tokens=4096):
            pass
    if rank == 1 and %r:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_rank_that_was_killed_gives_its_journal(shell: Shell) -> None:
    for rank in range(2):
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "RECEIPTS_LAUNCH": LAUNCH}
        done = job(shell.folder, RANK % True, env)
        assert done.returncode == (-signal.SIGKILL if rank else 0), done.stderr
    said = shell("merge", ".", "-o", "run.json")
    assert said.code == 0, said.err + said.out
    found = read(shell.folder / "run.json")
    assert (found["run"]["launch"], found["run"]["outcome"]) == (LAUNCH, "crash")
    assert found["failure"]["rank"] == 1
    assert len(found["measurement"]["step_durations_seconds"]) == 50
    assert [row["chip"] for row in found["memory"]["chips"]] == [0, 1]


def test_a_part_is_no_receipt(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with recorder(shell.folder, launch=LAUNCH) as rec:
        pass
    assert rec.written.endswith("run.rank00001.part.json")
    assert shell("check", rec.written).code == 2


@pytest.mark.parametrize(
    ("variables", "rank", "world"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, 3, 8),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, 2, 4),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, 2, 4),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16", "SLURM_NTASKS": "16"}, 5, 16),
        # A batch script is no rank of its job.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16"}, 0, 1),
        ({"RANK": "9", "WORLD_SIZE": "8"}, 0, 1),
        ({"RANK": "x", "WORLD_SIZE": "8"}, 0, 1),
        ({}, 0, 1),
    ],
)
def test_a_rank_is_found_in_its_launchers_variables(variables: dict[str, str], rank: int, world: int) -> None:
    found = identity.process_rank(variables)
    assert (found.rank, found.world) == (rank, world)


def test_ranks_of_a_launch_agree_on_its_name_and_other_launches_have_another() -> None:
    base = {
        "WORLD_SIZE": "8",
        "LOCAL_WORLD_SIZE": "4",
        "MASTER_ADDR": "h",
        "MASTER_PORT": "1",
        "TORCHELASTIC_RUN_ID": "j",
    }
    names = {identity.launch_of({**base, "RANK": str(rank)}) for rank in range(8)}
    assert len(names) == 1
    assert identity.launch_of({**base, "RANK": "0", "TORCHELASTIC_RESTART_COUNT": "1"}) not in names
    assert identity.launch_of({**base, "RANK": "0", "MASTER_PORT": "2"}) not in names
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    assert identity.launch_of({**slurm, "SLURM_PROCID": "0"}) == identity.launch_of({**slurm, "SLURM_PROCID": "1"})
    assert identity.launch_of({"RECEIPTS_LAUNCH": LAUNCH}) == LAUNCH
    assert identity.launch_of({}) != identity.launch_of({})


def test_ranks_that_cannot_agree_are_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    with recorder(tmp_path) as rec:
        pass
    assert "RECEIPTS_LAUNCH" in read(rec.written)["receipt"]["notes"]["recorder"][0]


def test_ranks_are_told_in_few_words() -> None:
    assert rank_join.ranks([3]) == "rank 3"
    assert rank_join.ranks([0, 1, 2, 5, 7, 8]) == "ranks 0-2, 5, 7-8"
