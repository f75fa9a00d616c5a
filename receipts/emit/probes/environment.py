"""Flags in the environment: all that the allow-list permits, and which of them were set before their runtime came.

Whether a flag came in time is stated only where it can be shown (`docs/recorder-probes.md`):

- it was there with this value when the process was executed (/proc/self/environ): in time;
- it was seen while nothing that reads it had been imported: in time;
- what reads it was at work at one look, and the value came between that look and the next: too late.

All else stays open. What a runtime writes for itself is no flag of the experimenter's: it is told in a note.
"""

from __future__ import annotations

import os

from receipts.emit import secrets
from receipts.emit.probes import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from receipts.emit.stated import Stated

NAME = "environment"
# Variables that hold flags of their own.
NESTED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_ENGINES = ("torch", "jaxlib", "torch_xla", "tensorflow")
_NUMERIC = ("numpy", *_ENGINES)
# Who reads a variable by the beginning of its name; the first that fits. The loader and the interpreter read theirs
# when the process starts.
_READERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("LD_", "PYTHON", "MALLOC_"), ()),
    (("XLA_", "LIBTPU_", "TPU_", "PJRT_", "PT_XLA_", "XRT_", "TF_", "IREE_"), ("jaxlib", "torch_xla", "tensorflow")),
    (("JAX_", "PALLAS_"), ("jax",)),
    (("NVTE_",), ("transformer_engine",)),
    (("MEGATRON_",), ("megatron",)),
    (("DS_", "DEEPSPEED_"), ("deepspeed",)),
    (("ACCELERATE_",), ("accelerate",)),
    (("TOKENIZERS_",), ("tokenizers",)),
    (("HF_", "TRANSFORMERS_"), ("huggingface_hub", "transformers")),
    (("TRITON_",), ("triton",)),
    (("TILELANG_",), ("tilelang",)),
    (("TORCH", "PYTORCH_", "GLOO_", "FLASH_ATTENTION_"), ("torch",)),
    (("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "BLAS_", "DNNL_", "ONEDNN_", "ATEN_", "NUMBA_"), _NUMERIC),
    (("",), _ENGINES),
)
_AT_EXEC = ("LD_", "PYTHON", "MALLOC_")
# Read by CUDA or its allocator when they begin, which may be long after the import.
_CUDA = ("CUDA_", "CUBLAS", "CUDNN_", "NCCL_", "PYTORCH_CUDA_ALLOC", "PYTORCH_ALLOC")
_XLA = ("XLA_", "LIBTPU_", "TPU_", "PJRT_", "PT_XLA_")
# Read whenever they are needed, so that none of them can be shown to be late.
_ALWAYS = ("NVTE_", "TRITON_", "TORCHINDUCTOR_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "MEGATRON_", "DS_", "JAX_")
# What runtimes write into the environment by themselves, by who does (torch 2.13, torch_xla 2.9, JAX 0.10, Megatron).
_WRITTEN: dict[str, tuple[str, ...]] = {
    "torch": (
        *("CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_PTXAS_PATH"),
        *("TRITON_LIBDEVICE_PATH",),
    ),
    "torch_xla": (
        *("XLA_FNTRACKER_FILE", "XLA_USE_SPMD", "XLA_AUTO_SPMD", "XLA_PERSISTENT_CACHE_PATH", "PJRT_DEVICE"),
        *("XLA_PERSISTENT_CACHE_READ_ONLY", "TF_CPP_MIN_LOG_LEVEL", "TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION"),
        *("TPU_MEGACORE", "XLA_FLAGS.xla_cpu_enable_fast_math", "LIBTPU_INIT_ARGS.xla_tpu_enable_flash_attention"),
        *("LIBTPU_INIT_ARGS.xla_tpu_use_enhanced_launch_barrier", "LIBTPU_INIT_ARGS.xla_enable_async_all_gather"),
        *("LIBTPU_INIT_ARGS.xla_latency_hiding_scheduler_rerun",),
        *("LIBTPU_INIT_ARGS.xla_tpu_prefer_async_allgather_to_allreduce",),
        *("LIBTPU_INIT_ARGS.xla_enable_async_collective_permute",),
    ),
    "jax": (
        *("TPU_SKIP_MDS_QUERY", "TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION", "TF_CPP_MIN_LOG_LEVEL"),
        *("LIBTPU_INIT_ARGS.xla_tpu_use_enhanced_launch_barrier",),
    ),
    "megatron": ("NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN", "NVTE_UNFUSED_ATTN"),
}
_SWITCHES = {"true": True, "false": False}


class Look:
    """What was seen of the flags so far: values with their time, and which runtimes were at work at the last look."""

    def __init__(self) -> None:
        self.exec = at_exec()
        self.values: dict[str, str] = {}
        self.before: dict[str, bool | None] = {}
        self.written: dict[str, str] = {}
        self.gone: set[str] = set()
        self.acting: dict[str, bool] = {}
        self.first = True

    def again(self, now: Mapping[str, str]) -> None:
        """Look at the flags that are set now."""
        acting = {name: _acting(name) for name in now}
        self.gone = {name for name in self.values if name not in now}
        for name, value in now.items():
            if self.values.get(name) == value:
                continue
            if writer := _writer(name) if self.exec.get(name) != value else "":
                self.written[name] = f"{writer} set {name}={value}"
                continue
            # What acts by now acted at the last look, too, where this flag was not there, or was another.
            late = None if self.first or not self._acted(name) else False
            self.values[name] = value
            self.before[name] = self._in_time(name, value) or late
        self.acting = acting | {group: _acting(group) for group in ("XLA_", "CUDA_", "LD_", "TORCH_", "OMP_", "")}
        self.first = False

    def _in_time(self, name: str, value: str) -> bool | None:
        if self.exec.get(name) == value:
            return True
        readers = _readers(name)
        if not readers:
            # Absent or other when the loader read it; where /proc does not say, this is not known.
            return False if self.exec else None
        return None if loaded.any_of(readers) else True

    def _acted(self, name: str) -> bool:
        if name in self.acting:
            return self.acting[name]
        group = next((head for head in ("XLA_", "CUDA_", "LD_", "TORCH_", "OMP_") if _group(name) == head), "")
        return not name.startswith(_ALWAYS) and self.acting.get(group, False)

    def __repr__(self) -> str:
        return f"Look({len(self.values)} flags)"


def at_start(stated: Stated) -> None:
    """State every flag that is set, and that these are all."""
    stated.kept["look"] = Look()
    _look(stated)
    stated.complete("flags")


def at_phase(stated: Stated, phase: str) -> None:
    """State flags that came or changed since the last look."""
    if phase != "post_init":
        _look(stated)


def at_end(stated: Stated) -> None:
    """Tell what runtimes set for themselves, and what was taken away again."""
    look: Look = stated.kept["look"]
    _look(stated)
    stated.note(list(look.written.values()))
    if look.gone:
        stated.note(f"set at first, and not at the end: {', '.join(sorted(look.gone))}")


def _look(stated: Stated) -> None:
    look: Look = stated.kept["look"]
    known = dict(look.values)
    look.again(flags(os.environ))
    for name, value in look.values.items():
        if known.get(name) != value:
            if name in known:
                stated.note(f"{name} was {known[name]!r}, and became {value!r} after {stated.steps} steps")
            stated.flag(name, typed(value), before_runtime=look.before[name])


def flags(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables by name; those that hold flags of their own as one entry a flag."""
    found: dict[str, str] = {}
    for name, value in secrets.environment(variables).items():
        if name in NESTED:
            for key, inner in nested(value):
                if not secrets.secret_name(key):
                    found[f"{name}.{key}"] = inner
        else:
            found[name] = value
    return found


def nested(text: str) -> list[tuple[str, str]]:
    """The flags in a variable such as XLA_FLAGS: `--a=1 --b` is a: 1 and b: true; of one name the last counts."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.lstrip("-").partition("=")
        if name:
            found.pop(name, None)
            found[name] = value if sign else "true"
    return list(found.items())


def typed(value: str) -> bool | str:
    """A switch as one; everything else as it was written."""
    return _SWITCHES.get(value.lower(), value)


def at_exec() -> dict[str, str]:
    """The flags that this process was executed with; empty where the system does not say, or it was overwritten."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            raw = stream.read(1 << 22)
    except OSError:
        return {}
    entries = [entry.partition(b"=") for entry in raw.split(b"\0") if entry]
    # A program that sets its own title writes over this memory.
    if not entries or not all(name and sign for name, sign, _ in entries):
        return {}
    return flags({os.fsdecode(name): os.fsdecode(value) for name, _, value in entries})


def _readers(name: str) -> tuple[str, ...]:
    return next(readers for heads, readers in _READERS if name.startswith(heads))


def _writer(name: str) -> str:
    return next((who for who, names in _WRITTEN.items() if name in names and loaded.any_of([who])), "")


def _group(name: str) -> str:
    groups = ((_AT_EXEC, "LD_"), (_XLA, "XLA_"), (_CUDA, "CUDA_"), (("TORCH", "PYTORCH_"), "TORCH_"))
    return next((group for heads, group in groups if name.startswith(heads)), "OMP_" if _early(name) else "")


def _early(name: str) -> bool:
    return _readers(name) == _NUMERIC


def _acting(name: str) -> bool:
    """Whether what reads a flag has read it by now, as far as that can be shown."""
    if name.startswith(_ALWAYS):
        return False
    checks: dict[str, Callable[[], bool]] = {"LD_": lambda: True, "XLA_": _xla_acts, "CUDA_": _cuda_acts}
    check = checks.get(_group(name) if name else "")
    return check() if check is not None else loaded.any_of(_readers(name)[:1] or _ENGINES)


def _cuda_acts() -> bool:
    return bool(loaded.part("torch.cuda", "_initialized")) or any(
        name in ("cuda", "gpu", "rocm") for name in loaded.part("jax._src.xla_bridge", "_backends") or ()
    )


def _xla_acts() -> bool:
    if loaded.part("jax._src.xla_bridge", "_backends"):
        return True
    extension = loaded.module("_XLAC") or loaded.module("torch_xla._XLAC")
    ask = getattr(extension, "_xla_runtime_is_initialized", None)
    return bool(ask is not None and ask())
