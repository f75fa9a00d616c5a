"""Which process of which launch this is: rank, world, host, the launch's identity, and the journal's first frame.

All ranks share the launch's identity. The place among them is read from what launchers leave in the environment, from
the process group of torch, or from JAX's own record of its processes; no backend is started to find out. The first
frame of the journal holds both, with the time when the run started and what its caller named.

What launchers and schedulers leave there (rank, job, what names one attempt of it) stands in tables of variables, each
from the program's own documentation or source; nothing is asked of a scheduler. A job's index is no rank: the pods of
an indexed Job, and the tasks of an array, may be launches of their own.
"""

from __future__ import annotations

import os
import sys

from receipts.emit import secrets
from receipts.emit.clock import elapsed, perf_counter_ns, time_ns
from receipts.emit.journal import FORMAT
from receipts.emit.probes import imported

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


TORCH = "torch.distributed"
# Launches that this process has agreed upon with the others of its group.
_asked_group = 0


class ProcessRank:
    """Rank of ``world`` processes, the local rank on this host, and who said so."""

    __slots__ = ("host", "launcher", "local_rank", "rank", "world")

    def __init__(self, rank: int = 0, world: int = 1, local_rank: int = 0, launcher: str = "", host: str = "") -> None:
        self.rank = rank
        self.world = world
        self.local_rank = local_rank
        self.launcher = launcher
        self.host = host

    def __repr__(self) -> str:
        return f"ProcessRank(rank={self.rank}, world={self.world}, launcher={self.launcher!r}, host={self.host!r})"


def process_rank(environment: Mapping[str, str] | None = None) -> ProcessRank:
    """The place of this process among all: by torch's group, its launcher's variables, or JAX's record, else alone."""
    variables = os.environ if environment is None else environment
    host = _host()
    ranked = rank_of(variables)
    group = torch_processes() if environment is None else None
    if group is not None and group[1] > (ranked[2] if ranked is not None else 1):
        # A script that spawns its ranks: a launcher's variables, where there are any, are those of the script.
        return ProcessRank(*group, count(variables, "LOCAL_RANK") or 0, TORCH, host)
    if ranked is not None:
        launcher, rank, world, local, _ = ranked
        return ProcessRank(rank, world, local, launcher, host)
    jax = jax_processes()
    if jax is not None:
        return ProcessRank(jax[0], jax[1], 0, "jax", host)
    numbered = host_of(variables) if "jax" in sys.modules else None
    if numbered is not None:
        return ProcessRank(numbered[1], numbered[2], 0, numbered[0], host)
    return ProcessRank(host=host)


def torch_processes() -> tuple[int, int] | None:
    """Rank and number of torch's processes, where the job has made its process group; None where it has not."""
    begun = imported.part("torch.distributed", "is_initialized")
    if begun is None or not begun():
        return None
    group = sys.modules["torch.distributed"]
    return group.get_rank(), group.get_world_size()


def agreed_in_group() -> str:
    """One launch for all ranks of torch's process group, by its store: the first rank to ask chooses; no rank waits.

    Ranks that `torch.multiprocessing.spawn` or Lightning started have no variable that tells them their launch.
    """
    global _asked_group
    try:
        store = imported.part("torch.distributed.distributed_c10d", "_get_default_store")()
        chosen = store.compare_set(f"receipts/launch/{_asked_group}", "", new_uuid())
    except Exception:  # private, and each store raises of its own kind
        return ""
    _asked_group += 1
    return chosen.decode() if isinstance(chosen, bytes) else str(chosen)


def jax_processes() -> tuple[int, int] | None:
    """Index and number of JAX's processes, from what `jax.distributed.initialize` wrote down; None where it has not."""
    # `jax.process_index()` would start a backend, and on a pod hang until every host has done so.
    distributed = sys.modules.get("jax._src.distributed")
    state = getattr(distributed, "global_state", None)
    index, number = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    if isinstance(index, int) and isinstance(number, int) and getattr(state, "client", None) is not None:
        return (index, number) if 0 <= index < number else None
    return None


def helper() -> str:
    """What this process is to the one that started it with multiprocessing: ``daemon``, ``child``, or nothing.

    Workers of a loader and of a pool are daemons, and so counts a process that still imports the script; ranks that
    were spawned are children.
    """
    module = sys.modules.get("multiprocessing.process")
    if module is None:
        return ""
    process = module.current_process()
    if process.daemon or getattr(process, "_inheriting", False):
        return "daemon"
    return "child" if module.parent_process() is not None else ""


def launch_of(environment: Mapping[str, str] | None = None, place: ProcessRank | None = None) -> str:
    """A launch's identity, the same on every rank: RECEIPTS_LAUNCH, else made from the launcher's own, else new.

    A rendezvous id may be used again by the next launch, so the master's address and the restart count go into it.
    Ranks of one host alone share their parent process.
    """
    variables = os.environ if environment is None else environment
    given = variables.get("RECEIPTS_LAUNCH", "").strip()
    if given:
        return given[:500]
    words = _shared_words(variables, place or process_rank(variables))
    return uuid_of(*words) if words else new_uuid()


def _shared_words(variables: Mapping[str, str], where: ProcessRank) -> tuple[str, ...]:
    """What every rank of this launch says of it, and no other launch does; empty where nothing is."""
    one_host = (ranked := rank_of(variables)) is not None and ranked[4]
    restart = variables.get("TORCHELASTIC_RESTART_COUNT", "0")
    master = f"{variables.get('MASTER_ADDR', '')}:{variables.get('MASTER_PORT', '')}"
    run = variables.get("TORCHELASTIC_RUN_ID", "")
    if run and run != "none":
        # A run id that is the job's is that of every attempt of the job.
        again = variables.get("SLURM_RESTART_COUNT") or variables.get("JOBSET_RESTART_ATTEMPT") or ""
        return ("torchelastic", run, restart, master, again, _parent() if one_host else "")
    if where.world == 1 and not among_several(variables):
        return ()
    attempt = attempt_of(variables)
    if attempt:
        return (*attempt, restart, master)
    return ("parent", _parent(), restart, master) if one_host and _parent() else ()


def ranks_agree_on_launch(environment: Mapping[str, str], place: ProcessRank) -> bool:
    """Whether every rank of this launch finds the same identity by itself."""
    if place.world == 1 or environment.get("RECEIPTS_LAUNCH", "").strip():
        return True
    return bool(_shared_words(environment, place))


def new_uuid() -> str:
    """A new UUID, version 4."""
    return _uuid(os.urandom(16), 4)


def uuid_of(*parts: str) -> str:
    """A UUID, version 8, of these words: the same words give the same."""
    import hashlib

    return _uuid(hashlib.sha256("\0".join(("receipts", *parts)).encode()).digest()[:16], 8)


def _uuid(raw: bytes, version: int) -> str:
    # `uuid` itself would cost the import of the recorder several milliseconds.
    number = bytearray(raw)
    number[6] = number[6] & 0x0F | version << 4
    number[8] = number[8] & 0x3F | 0x80
    text = bytes(number).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _parent() -> str:
    """The parent process by host, number and start time: one launcher's children share it, and no others do."""
    parent = os.getppid()
    started = process_start(parent)
    return f"{_host()}:{boot_id()}:{parent}:{started}" if started else ""


def process_start(process: int) -> str:
    """When a process started, in the kernel's ticks since boot; empty where the system does not say."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stream:
            # The second field is the name in brackets, and may hold anything.
            return stream.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def boot_id() -> str:
    """The kernel's identity of this boot; empty where there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def _host() -> str:
    try:
        return os.uname().nodename
    except AttributeError:
        return os.environ.get("COMPUTERNAME", "")


RUN_KINDS = ("training", "microbench", "profile", "serving")


def first_frame(about: Mapping[str, Any], where: ProcessRank, fault: Callable[[str], None]) -> dict[str, Any]:
    """The frame; an option that is not valid is reported by ``fault`` and left out."""
    given = about["launch"]
    agreed = agreed_in_group() if where.launcher == TORCH and not os.environ.get("RECEIPTS_LAUNCH") else ""
    launch = str(given)[:500] if given else agreed or launch_of(place=where)
    if not given and not agreed and not ranks_agree_on_launch(os.environ, where):
        fault(
            "ranks cannot agree on a launch by themselves: set RECEIPTS_LAUNCH to one UUID for all of them, "
            "as the templates do (receipts template)"
        )
    kind = str(about["kind"])
    if kind not in RUN_KINDS:
        fault(f"kind is one of {', '.join(RUN_KINDS)}, and not {kind!r:.40}; it is recorded as training")
        kind = "training"
    tags = about["tags"] if isinstance(about["tags"], list | tuple) else [about["tags"]]
    tags = [*tags, *os.environ.get("RECEIPTS_TAGS", "").split(",")]
    texts = {name: _short_text(about[name]) for name in ("label", "context", "site", "witness_for", "resumed_from")}
    counts = {name: about[name] for name in ("warmup", "start_step")}
    for name, value in counts.items():
        if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            fault(f"{name} is a count of steps, and not {value!r:.40}")
            counts[name] = None
    process = os.getpid()
    typed = list(getattr(sys, "orig_argv", None) or sys.argv)
    typed[:1] = map(os.path.basename, typed[:1])  # the interpreter by its own name alone
    return {
        "format": FORMAT,
        "launch": launch,
        "lane": _short_text(about["lane"]) or "unlisted",
        "kind": kind,
        "started": utc_now(),
        "begun_ns": perf_counter_ns(),
        "begun_wall_ns": time_ns(),
        "begun_elapsed": elapsed(),
        "rank": where.rank,
        "world": where.world,
        "local_rank": where.local_rank,
        "launcher": where.launcher,
        "host": where.host,
        "process": process,
        "process_start": process_start(process),
        "boot": boot_id(),
        "command": secrets.command_line(typed)[:10_000],
        "tags": [_short_text(tag) for tag in tags if tag],
        "session": _short_text(os.environ.get("RECEIPTS_SESSION", "").strip() or None),
        **counts,
        **texts,
    }


def intended(environment: Mapping[str, str]) -> dict[str, str]:
    """The path that whoever launched the job means, by RECEIPTS_INTEND: ``attention=te_fused,gemm=te_fp8``."""
    pairs = (item.partition("=") for item in environment.get("RECEIPTS_INTEND", "").split(","))
    return {name.strip(): value.strip() for name, sign, value in pairs if sign and value.strip()}


def python_version() -> str:
    """The interpreter's version."""
    return "{}.{}.{}".format(*sys.version_info[:3])


def utc_now() -> str:
    """The time of day, to the millisecond, in UTC."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short_text(value: Any) -> str | None:
    return None if value is None else secrets.redact(str(value))[:500] or None


# Launcher, rank, world, local rank, local world; the first pair that is set whole counts. A Slurm batch script has
# SLURM_PROCID too and is no rank: only a step of srun has SLURM_STEP_NUM_TASKS. MPICH and Intel MPI are `pmi`; Ray
# Train and Kubeflow set torchrun's.
LAUNCHERS = (
    ("receipts", "RECEIPTS_RANK", "RECEIPTS_WORLD_SIZE", "", ""),
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    ("flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", ""),
    ("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"),
    ("jax", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "", ""),
    ("jax", "PROCESS_ID", "NUM_PROCESSES", "", ""),
)
# Number of this host and of all: a rank where one process runs on each, as JAX does it.
HOSTS = (
    ("skypilot", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES"),
    ("xpk", "NODE_RANK", "NNODES"),
)
MAX_WORLD = 1_000_000

# Schedulers, the innermost first: the job's id, by leaf of `run.job` what is kept of it, and further variables that
# every rank of one launch shares. Where `names` is empty a job may hold many launches, and its id names none.
SCHEDULERS: tuple[tuple[str, str, dict[str, str], tuple[str, ...]], ...] = (
    (
        "ray",
        "RAY_JOB_ID",
        {},
        ("RAY_JOB_ID", "MASTER_ADDR", "MASTER_PORT", "SKYPILOT_TASK_ID", "SKYPILOT_NODE_IPS"),
    ),
    ("skypilot", "SKYPILOT_TASK_ID", {}, ("SKYPILOT_TASK_ID", "SKYPILOT_NODE_IPS")),
    (
        "jobset",
        "JOBSET_UID",
        {"name": "JOBSET_NAME", "attempt": "JOBSET_RESTART_ATTEMPT", "queue": "KUEUE_QUEUE_NAME"},
        ("JOBSET_UID", "JOBSET_RESTART_ATTEMPT"),
    ),
    (
        "kubernetes",
        "JOB_UID",
        {"name": "JOB_NAME", "queue": "KUEUE_QUEUE_NAME"},
        ("JOB_UID",),
    ),
    ("flux", "FLUX_JOB_ID", {}, ("FLUX_JOB_ID",)),
    ("pals", "PALS_APID", {"queue": "PBS_QUEUE"}, ("PALS_APID",)),
    (
        "slurm",
        "SLURM_JOB_ID",
        {
            "name": "SLURM_JOB_NAME",
            "step": "SLURM_STEP_ID",
            "array": "SLURM_ARRAY_TASK_ID",
            "attempt": "SLURM_RESTART_COUNT",
            "queue": "SLURM_JOB_PARTITION",
        },
        ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
    ),
    ("lsf", "LSB_JOBID", {"name": "LSB_JOBNAME", "array": "LSB_JOBINDEX", "queue": "LSB_QUEUE"}, ()),
    ("pbs", "PBS_JOBID", {"name": "PBS_JOBNAME", "array": "PBS_ARRAY_INDEX", "queue": "PBS_QUEUE"}, ()),
)
FIRST_SPECIAL_STEP = 4_294_967_290  # from here on Slurm numbers its own steps: batch, extern, interactive


def rank_of(variables: Mapping[str, str]) -> tuple[str, int, int, int, bool] | None:
    """Launcher, rank, world, local rank, and whether all ranks run on this host; None without a launcher's word."""
    for launcher, rank, world, local, locals_ in LAUNCHERS:
        pair = count(variables, rank), count(variables, world)
        if pair[0] is not None and pair[1] is not None and pair[0] < pair[1] <= MAX_WORLD:
            alone = count(variables, locals_) == pair[1]
            alone = alone or (launcher == "slurm" and count(variables, "SLURM_STEP_NUM_NODES") == 1)
            return launcher, pair[0], pair[1], count(variables, local) or 0, alone
    return None


def host_of(variables: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Who numbers the hosts, the number of this one and of all; of several TPU slices, slice by slice."""
    slices, worker = count(variables, "MEGASCALE_NUM_SLICES") or 1, count(variables, "TPU_WORKER_ID")
    listed = variables.get("TPU_PROCESS_ADDRESSES") or variables.get("TPU_WORKER_HOSTNAMES", "")
    workers = len([item for item in listed.split(",") if item])
    own = count(variables, "MEGASCALE_SLICE_ID") if slices > 1 else 0
    if worker is not None and worker < workers and own is not None and own < slices:
        return "tpu pod" if slices == 1 else "tpu slices", own * workers + worker, slices * workers
    for name, rank, world in HOSTS:
        pair = count(variables, rank), count(variables, world)
        if pair[0] is not None and pair[1] is not None and pair[0] < pair[1] <= MAX_WORLD:
            return name, pair[0], pair[1]
    return None


def among_several(variables: Mapping[str, str]) -> bool:
    """Whether this process is one of several that one launcher or scheduler started."""
    numbered, ranked = host_of(variables), rank_of(variables)
    return (ranked is not None and ranked[2] > 1) or (numbered is not None and numbered[2] > 1)


def job_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The job that the process runs in, by leaf of `run.job`; empty outside of any scheduler."""
    for scheduler, identity, leaves, _ in SCHEDULERS:
        if variables.get(identity):
            stated = {leaf: variables.get(name, "") for leaf, name in leaves.items()}
            if _special(stated.get("step", "")):
                stated["step"] = ""
            array = variables.get("SLURM_ARRAY_JOB_ID") if scheduler == "slurm" else None
            if array and stated["array"]:
                stated["array"] = f"{array}_{stated['array']}"
            return {"scheduler": scheduler, "id": variables[identity], **{k: v for k, v in stated.items() if v}}
    return {}


def attempt_of(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Words that name this attempt of the job's step, the same on every rank; empty where nothing names one."""
    for scheduler, identity, _, names in SCHEDULERS:
        if not variables.get(identity):
            continue
        if scheduler == "slurm" and _special(variables.get("SLURM_STEP_ID", "")):
            return ()
        if scheduler == "ray" and not variables.get("MASTER_PORT"):
            return ()  # a worker that another process hands its work
        return (scheduler, *(variables.get(name, "") for name in names)) if names else ()
    return ()


def count(variables: Mapping[str, str], name: str) -> int | None:
    """A number of a variable; None where it has none."""
    text = variables.get(name, "") if name else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else None


def _special(step: str) -> bool:
    return not step.isdigit() or int(step) >= FIRST_SPECIAL_STEP
