"""What launchers and schedulers leave in a process's environment: its rank, its job, and what names one attempt of it.

Tables of variables, each from the program's own documentation or source; nothing is asked of a scheduler, and no
backend is started. A job's index is no rank: the pods of an indexed Job, and the tasks of an array, may be launches of
their own.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

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
