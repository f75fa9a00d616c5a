"""Flags in the environment: all that the allow-list permits, and which of them were set before their runtime came.

Whether a flag came in time is stated only where it can be shown (`docs/recorder-probes.md`):

- it was there with this value when the process was executed (/proc/self/environ): in time;
- it was seen while nothing that reads it had been imported: in time;
- what reads it had begun by one look, and the value came between that look and the next: too late.

All else stays open. What a runtime writes for itself is not the experimenter's flag: a note lists it.
"""

from __future__ import annotations

import os
import sys

from receipts.emit import secrets
from receipts.emit.probes import imported, torch_xla

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from receipts.emit.probing import ProbeOutput

NAME = "environment"
# Variables that hold flags of their own.
NESTED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_ENGINES = ("torch", "jaxlib", "torch_xla", "tensorflow")
_XLA = ("jaxlib", "torch_xla", "tensorflow")
# By the beginning of a name, the first that fits: the modules that bring its reader, and when that reads it. `exec`:
# the loader or the interpreter, when the process starts; `import`: when it is imported; `xla`, `cuda`: when the
# runtime begins, which may be long after; `ever`: whenever it is needed, so that none can be shown to be late.
_READERS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("LD_", "PYTHON", "MALLOC_"), (), "exec"),
    (("XLA_", "LIBTPU_", "TPU_", "PJRT_", "PT_XLA_", "XRT_", "TF_", "IREE_"), _XLA, "xla"),
    (("JAX_", "PALLAS_"), ("jax",), "import"),
    (("NVTE_",), ("transformer_engine",), "ever"),
    (("MEGATRON_",), ("megatron",), "ever"),
    (("DS_", "DEEPSPEED_"), ("deepspeed",), "ever"),
    (("ACCELERATE_",), ("accelerate",), "ever"),
    (("TOKENIZERS_", "HF_", "TRANSFORMERS_"), ("tokenizers", "huggingface_hub", "transformers"), "ever"),
    (("TRITON_",), ("triton",), "ever"),
    (("TILELANG_",), ("tilelang",), "ever"),
    (("TORCHINDUCTOR_", "TORCHDYNAMO_"), ("torch",), "ever"),
    (("PYTORCH_CUDA_ALLOC", "PYTORCH_ALLOC", "TORCH_NCCL_"), ("torch",), "cuda"),
    (("TORCH", "PYTORCH_", "GLOO_", "FLASH_ATTENTION_"), ("torch",), "import"),
    (("CUDA_", "CUBLAS", "CUDNN_", "NCCL_", "NVSHMEM_"), (*_ENGINES, "cupy"), "cuda"),
    (
        ("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "BLAS_", "DNNL_", "ONEDNN_", "ATEN_", "NUMBA_"),
        (
            *("numpy", "scipy", "numba"),
            *_ENGINES,
        ),
        "import",
    ),
    (("",), _ENGINES, "ever"),
)
_IMPORTED = tuple(dict.fromkeys(name for _, readers, _ in _READERS for name in readers))
# What runtimes write into the environment by themselves, by who does (torch 2.13, torch_xla 2.9, JAX 0.10, Megatron).
_WRITTEN: dict[str, tuple[str, ...]] = {
    "torch": (
        *("CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_PTXAS_PATH"),
        *("TRITON_LIBDEVICE_PATH",),
    ),
    "torch_xla": (
        *(
            "XLA_FNTRACKER_FILE",
            "XLA_USE_SPMD",
            "XLA_AUTO_SPMD",
            "XLA_PERSISTENT_CACHE_PATH",
            "PJRT_DEVICE",
            "PJRT_DYNAMIC_PLUGINS",
        ),
        *("XLA_PERSISTENT_CACHE_READ_ONLY", "TF_CPP_MIN_LOG_LEVEL", "TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION"),
        *("TPU_MEGACORE", "XLA_FLAGS.xla_cpu_enable_fast_math", "LIBTPU_INIT_ARGS.xla_tpu_enable_flash_attention"),
        *("LIBTPU_INIT_ARGS.xla_tpu_use_enhanced_launch_barrier", "LIBTPU_INIT_ARGS.xla_enable_async_all_gather"),
        *("LIBTPU_INIT_ARGS.xla_latency_hiding_scheduler_rerun",),
        *("LIBTPU_INIT_ARGS.xla_tpu_prefer_async_allgather_to_allreduce",),
        *("LIBTPU_INIT_ARGS.xla_enable_async_collective_permute",),
    ),
    "jax": (
        *("TPU_SKIP_MDS_QUERY", "TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION", "TF_CPP_MIN_LOG_LEVEL"),
        *(
            "TPU_LIBRARY_PATH",
            "LIBTPU_INIT_ARGS.xla_tpu_use_enhanced_launch_barrier",
        ),
    ),
    "megatron": ("NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN", "NVTE_UNFUSED_ATTN"),
}
_SWITCHES = {"true": True, "false": False}
# Places that a runtime writes to or caches in, by the end of the name: that one is set may change a run, where it lies
# does not, and folders of a machine do not concern the receipt's readers.
_PLACES = (
    *("_CACHE_DIR", "_CACHE_PATH", "_CACHE_FOLDER", "_DUMP_DIR", "_DUMP_TO", "_DUMP_PATH", "_DUMP_FILE", "_LOG_DIR"),
    *("_LOG_FILE", "_LOG_PATH", "_DEBUG_FILE", "_METRICS_FILE", "_TENSORS_FILE", "_TRACE_DIR", "_TRACE_FILE"),
    *("_DEBUG_DIR", "_DEBUG_DUMP_PATH", "_OUTPUT_DIR", "TORCH_TRACE", "_FNTRACKER_FILE", "_TOPO_DUMP_FILE"),
)
PLACED = "set"


class Look:
    """What was seen of the flags so far: values with their time, and which runtimes were at work at the last look."""

    def __init__(self) -> None:
        self.exec = at_exec()
        self.values: dict[str, str] = {}
        self.before: dict[str, bool | None] = {}
        self.written: dict[str, str] = {}
        self.gone: set[str] = set()
        self.imported: set[str] = set()
        self.begun: dict[str, bool] = {}

    def again(self, now: Mapping[str, str]) -> None:
        """Look at the flags that are set now."""
        here = {name for name in _IMPORTED if name in sys.modules}
        backends = imported.part("jax._src.xla_bridge", "_backends") or ()
        cuda = imported.part("torch.cuda", "_initialized") or any(name in ("cuda", "gpu", "rocm") for name in backends)
        begun = {"xla": bool(backends) or torch_xla.begun(), "cuda": bool(cuda)}
        self.gone = {name for name in self.values if name not in now}
        for name, value in now.items():
            if self.values.get(name) == value:
                continue
            writers = (who for who, names in _WRITTEN.items() if name in names and who in sys.modules)
            if self.exec.get(name) != value and (writer := next(writers, "")):
                self.written[name] = f"{writer} set {name}={value}"
                continue
            self.values[name] = value
            self.before[name] = self._in_time(name, value, here)
        self.imported, self.begun = here, begun

    def _in_time(self, name: str, value: str, imported: set[str]) -> bool | None:
        """Whether a value that is new at this look came before what reads it; None where neither can be shown."""
        readers, when = next((readers, when) for heads, readers, when in _READERS if name.startswith(heads))
        if self.exec.get(name) == value:
            return True
        if when == "exec":
            return False if self.exec else None
        here = imported & set(readers)
        if not here:
            return True
        if when == "import":
            return False if here <= self.imported else None
        return False if self.begun.get(when) else None


_early: list[Look] = []


def look_early() -> None:
    """Look before a framework is imported: the script may have set flags that it will read."""
    _early[:] = [look := _early[0] if _early else Look()]
    look.again(flags(os.environ))


def at_start(stated: ProbeOutput) -> None:
    """State every flag that is set, and that these are all."""
    stated.kept["look"] = _early.pop() if _early else Look()
    _look(stated, {})
    stated.complete("flags")


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State flags that came or changed since the last look."""
    if phase != "post_init":
        _look(stated)


def at_end(stated: ProbeOutput) -> None:
    """Tell what runtimes set for themselves, and what was taken away again."""
    look: Look = stated.kept["look"]
    _look(stated)
    stated.note(list(look.written.values()))
    if look.gone:
        stated.note(f"set at first, and not at the end: {', '.join(sorted(look.gone))}")


def _look(stated: ProbeOutput, known: Mapping[str, str] | None = None) -> None:
    look: Look = stated.kept["look"]
    known = dict(look.values) if known is None else known
    look.again(flags(os.environ))
    for name, value in look.values.items():
        if known.get(name) != value:
            if name in known:
                stated.note(f"{name} was {known[name]!r}, and became {value!r} after {stated.steps} steps")
            stated.flag(name, typed(value), before_runtime=look.before[name])


def flags(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables by name; those that hold flags of their own as one entry a flag."""
    values: dict[str, str] = {}
    for name, value in secrets.environment(variables).items():
        if not (value := torch_xla.disarmed(name, value)):
            continue
        if name in NESTED:
            for key, inner in nested(value):
                if not secrets.secret_name(key):
                    values[f"{name}.{key}"] = _placeless(key, inner)
        elif name != "PYTHONPATH":
            values[name] = _placeless(name, value)
        else:
            # Without the launcher's own folder, which changes nothing that the job does.
            folders = ((item, item.replace(os.sep, "/").rstrip("/")) for item in value.split(os.pathsep))
            kept = os.pathsep.join(item for item, plain in folders if not plain.endswith("receipts/emit/sight/site"))
            if kept:
                values[name] = kept
    return values


def nested(text: str) -> list[tuple[str, str]]:
    """The flags in a variable such as XLA_FLAGS: `--a=1 --b` is a: 1 and b: true; of one name the last counts."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    values: dict[str, str] = {}
    for word in words:
        name, sign, value = word.lstrip("-").partition("=")
        if name:
            values.pop(name, None)
            values[name] = value if sign else "true"
    return list(values.items())


def _placeless(name: str, value: str) -> str:
    """The value; of a place that is written to only that it is set."""
    return PLACED if value and name.upper().endswith(_PLACES) else value


def typed(value: str) -> bool | str:
    """A switch as one; everything else as it was written."""
    return _SWITCHES.get(value.lower(), value)


def at_exec() -> dict[str, str]:
    """The flags that this process was executed with."""
    return flags(executed_with())


def executed_with() -> dict[str, str]:
    """The variables of this process's start; empty where the system does not say, or they were overwritten."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            raw = stream.read(1 << 22)
    except OSError:
        return {}
    entries = [entry.partition(b"=") for entry in raw.split(b"\0") if entry]
    # A program that sets its own title writes over this memory.
    if not entries or not all(name and sign for name, sign, _ in entries):
        return {}
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries}
