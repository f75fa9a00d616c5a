"""torch_xla: its counters when the warm-up ends and at the end, devices, memory, mesh.

What its counters say is what ran, so that compiles, fallbacks and reads by the host are witnessed here. A counter that
never counted is absent, and a table that somebody cleared proves nothing: the counts before tell which it is.
Sources: `torch_xla/debug/metrics.py`, `torch_xla/distributed/spmd/xla_sharding.py`, versions 2.4 to 2.9.
"""

from __future__ import annotations

import os
import re

from receipts.emit.probes import imported, process, wheels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "torch_xla"
FLAGS, DEBUG, FOLDER = "XLA_FLAGS", "PT_XLA_DEBUG", "receipts-xla-"
PROGRAM = "after_optimizations.txt"
MAX_PROGRAMS, SMALLEST = 8, 10  # of one step: how many, and by how much the largest may exceed them
HOST_READ = "aten::_local_scalar_dense"
_FROM_DEVICE = ("TransferFromDeviceTime", "TransferFromServerTime")
_COMPILES = ("UncachedCompile", "CompileTime", "EagerOpCompileTime")


class MetricsSnapshot:
    """Counters, and samples of metrics, at one moment; ``seconds`` is what compiling took until then."""

    __slots__ = ("counts", "seconds")

    def __init__(self, counts: dict[str, int], seconds: float) -> None:
        self.counts = counts
        self.seconds = seconds

    @property
    def compiles(self) -> int:
        """Programs compiled."""
        return next((self.counts[name] for name in _COMPILES if name in self.counts), 0)

    @property
    def host_reads(self) -> int:
        """Reads of live tensors: `.item()` leaves an operator's name and a transfer, `print` the transfer alone."""
        return max(self.counts.get(HOST_READ, 0), sum(self.counts.get(name, 0) for name in _FROM_DEVICE))

    @property
    def fallbacks(self) -> dict[str, int]:
        """Operators that ran on the host, with counts."""
        operators = sorted(name for name in self.counts if name.startswith("aten::") and name != HOST_READ)
        return {name: self.counts[name] for name in operators if self.counts[name]}

    @property
    def eager(self) -> bool:
        """Whether operators were compiled one by one."""
        return any(name in self.counts for name in ("EagerOpExecuteTime", "EagerOpCompileTime"))

    @property
    def executed(self) -> bool:
        """Whether a step, or an operator, was executed at all."""
        return self.eager or any(name in self.counts for name in ("MarkStep", "ExecuteTime", "ExecuteReplicatedTime"))

    def since(self, before: MetricsSnapshot) -> MetricsSnapshot:
        """What was counted since another moment."""
        counts = {name: count - before.counts.get(name, 0) for name, count in self.counts.items()}
        return MetricsSnapshot(counts, self.seconds - before.seconds)

    def follows(self, before: MetricsSnapshot | None) -> bool:
        """Whether nothing was cleared since."""
        if before is None:
            return True
        return all(self.counts.get(name, 0) >= count for name, count in before.counts.items())

    def __repr__(self) -> str:
        return f"MetricsSnapshot({len(self.counts)} counts, {self.compiles} compiles)"


def arm() -> None:
    """Have XLA and torch_xla write what they compile into a folder of our own, unless the job says where.

    Flags of XLA are read as its runtime begins, those of torch_xla as it is imported: what comes later is not written.
    """
    import atexit
    import shutil
    import tempfile

    flags = os.environ.get(FLAGS, "")
    if _own or begun() or any("xla_dump" in flags or name.startswith(DEBUG) for name in os.environ):
        return
    _own.append(folder := tempfile.mkdtemp(prefix=FOLDER))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[FLAGS] = f"{flags} --xla_dump_to={folder} --xla_dump_hlo_as_text".strip()
    os.environ |= {f"{DEBUG}_LEVEL": "1", f"{DEBUG}_FILE": os.path.join(folder, "debug.txt")}


def disarmed(name: str, value: str) -> str:
    """An environment variable as the job has it, without what `arm` has put there."""
    if name.startswith(DEBUG) and _own:
        return ""
    return re.sub(rf" ?--xla_dump_to=\S*{FOLDER}\S* --xla_dump_hlo_as_text", "", value) if name == FLAGS else value


_own: list[str] = []
_reports: list[str] = []


def report() -> None:
    """Keep torch_xla's own report of its counters. That of steps alone lies between those before and after them."""
    make = getattr(imported.module("torch_xla.debug.metrics"), "metrics_report", None)
    if make is not None and begun():
        _reports.append(make())


def texts(steps: int) -> Iterator[tuple[str, str]]:
    """What shows how this process's steps ran, with its kind: counters, causes of compiles, the largest program.

    Where programs end more often than ``steps``, a step has several, and all those of size are kept.
    """
    report()
    yield "torch-xla-metrics", "\n".join(_reports)
    if not _own:
        return
    with os.scandir(_own[0]) as entries:
        sizes = {entry.name: entry.stat().st_size for entry in entries}
    programs = sorted((name for name in sizes if name.endswith(PROGRAM)), key=lambda name: -sizes[name])
    if 0 < 2 * steps <= table().counts.get("MarkStep", 0):
        programs = [name for name in programs[:MAX_PROGRAMS] if SMALLEST * sizes[name] >= sizes[programs[0]]]
    else:
        programs = programs[:1]
    if "debug.txt" in sizes:
        yield "pt-xla-debug", _read("debug.txt")
    if programs:
        yield "hlo", "\n".join(map(_read, programs))


def _read(name: str) -> str:
    with open(os.path.join(_own[0], name), encoding="utf-8", errors="replace") as stream:
        return stream.read()


def posture() -> str:
    """How the code that asks is executed: within `torch_xla.compile`, which names its graph, or lazily."""
    extension = _extension()
    if getattr(extension, "_get_use_eager_mode", bool)():
        return "eager"
    name = getattr(extension, "_get_current_graph_name", str)()
    return "xla_step" if name or not getattr(extension, "_get_allow_execution", lambda: True)() else "xla_lazy"


def at_start(stated: ProbeOutput) -> None:
    """Have the programs written down, where that is still possible."""
    if _extension() is not None:
        imported.read_each(stated, lambda _: arm())


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State memory by device; keep the counters after the first step."""
    if _extension() is None:
        return
    stated.kept["phase"] = phase
    process.keep_memory(stated, phase)
    if phase == "post_step0":
        _keep(stated, "step0")
    if begun():
        imported.read_each(stated, _memory, _mesh)


def at_warm(stated: ProbeOutput) -> None:
    """Keep the counters of the warm-up's end; state the machine: a job that is killed later has it."""
    if _extension() is not None:
        _keep(stated, "warm")
        if begun():
            imported.read_each(stated, _machine)


def at_span(stated: ProbeOutput, begins: bool) -> None:
    """Keep what an evaluation or a checkpoint compiles and reads: it is no step's."""
    if _extension() is None:
        return
    now = imported.read_value(stated, "keep before" if begins else "keep apart", table)
    before, base = stated.kept.pop("before", None), stated.kept.get("base")
    if begins:
        stated.kept["before"] = now
    elif now is not None and before is not None and base is not None:
        stated.kept["base"] = now.since(before.since(base))


def at_end(stated: ProbeOutput) -> None:
    """State what the counters show, and the machine."""
    if _extension() is not None and begun():
        imported.read_each(stated, _machine, _counts)


def table() -> MetricsSnapshot:
    """The counters as they stand. Reading them waits for nothing."""
    metrics = imported.module("torch_xla.debug.metrics")
    if metrics is None:
        return MetricsSnapshot({}, 0.0)
    counts: dict[str, int] = {name: int(metrics.counter_value(name) or 0) for name in metrics.counter_names()}
    nanoseconds = 0.0
    for name in metrics.metric_names():
        data = metrics.metric_data(name)
        if data:
            counts[name] = int(data[0])
            nanoseconds += float(data[1]) if name in ("CompileTime", "EagerOpCompileTime") else 0.0
    return MetricsSnapshot(counts, nanoseconds / 1e9)


def _extension() -> Any:
    return imported.module("_XLAC")


def begun() -> bool:
    """Whether the job has started the runtime below torch_xla."""
    ask = getattr(_extension(), "_xla_runtime_is_initialized", None)
    try:
        return bool(ask is not None and ask())
    except Exception:
        return False


def _keep(stated: ProbeOutput, moment: str) -> None:
    """Keep the counters of a moment, from which on the steps count."""
    if (now := imported.read_value(stated, f"keep {moment}", table)) is not None:
        stated.kept[moment] = stated.kept["base"] = now
        stated.kept["at"] = stated.steps


def _counts(stated: ProbeOutput) -> None:
    end = table()
    step0, warm, base = (stated.kept.get(name) for name in ("step0", "warm", "base"))
    if not all(end.follows(before) for before in (step0, warm)):
        stated.note("torch_xla's counters were cleared while the job ran: what they leave out is not known")
        return
    if not end.executed:
        stated.note("torch_xla executed nothing that its counters know of")
        return
    stated.put("compile.compiles", end.compiles)
    stated.put("compile.compile_seconds", end.seconds if end.compiles else None)
    if end.eager:
        stated.put("path.witnessed.posture", "eager")
    hits, misses = end.counts.get("PersistentCacheHit", 0), end.counts.get("PersistentCacheMiss", 0)
    if not any(name.startswith("PersistentCache") for name in end.counts):
        stated.put("compile.cache_state", "off")
    else:
        stated.put("compile.cache_hits", hits)
        stated.put("compile.cache_misses", misses)
    if failures := end.counts.get("PersistentCacheDeserializeFailure", 0):
        stated.note(f"{failures} cached programs could not be loaded: the cache saved none of these compiles")
    if bool(hits) != bool(misses):
        stated.put("compile.cache_state", "warm" if hits else "cold")
    # Evaluations and checkpoints aside, what the steps did once the warm-up, or the first of them, was over.
    late = end if base is None else end.since(base)
    stated.put("path.witnessed.fallbacks", late.fallbacks)
    steps = stated.steps - stated.kept["at"] if base is not None else 0
    if warm is not None or (base is not None and not late.compiles):
        stated.put("compile.compiles_after_warmup", late.compiles)
    if steps > 0 and not _reports:  # which count the warm-up too, and are read by `submit`
        stated.put("path.witnessed.host_transfers_per_step", round(late.host_reads / steps, 6))
    observed: dict[str, bool | int | float | str] = {name: end.counts[name] for name in sorted(end.counts)[:300]}
    if warm is not None:
        names = sorted(name for name in end.counts if not name.startswith("xla::"))
        observed |= {f"{name}@warm": warm.counts.get(name, 0) for name in names[:300]}
    number = imported.part("torch_xla", "__version__") or imported.part("torch_xla.version", "__version__")
    version = None if number is None else str(number)
    stated.evidence("torch-xla-metrics", level="kernels", producer="torch_xla", version=version, observed=observed)


def _machine(stated: ProbeOutput) -> None:
    extension, kind = _extension(), ""
    names = list(imported.read_value(stated, "the devices", extension._xla_get_all_runtime_devices) or ())
    ask = getattr(extension, "_xla_device_kind", None)
    if ask is not None and names and not _spmd():
        kind = str(imported.read_value(stated, "the kind of device", lambda: ask("xla:0")) or "")
    platform = {name.partition(":")[0] for name in names}
    if not kind and platform == {"TPU"}:
        # Under SPMD there is no device to ask; Cloud TPU's hosts name theirs (v6e-8).
        flag = stated.get("flags.TPU_ACCELERATOR_TYPE")
        kind = str(flag["value"] if isinstance(flag, dict) else flag or "")
    stated.put("hardware.chips", len(names) or None)
    stated.put("hardware.accelerator", kind or ("cpu" if platform == {"CPU"} else None))
    if platform == {"TPU"}:
        stated.put("path.witnessed.runtime", "pjrt-tpu")
        stated.put("platform.libtpu", wheels.version("libtpu") or wheels.version("libtpu-nightly"))
    elif len(platform) == 1:
        if platform == {"CPU"} and len(names) == 1:
            process.state_memory(stated)
        stated.put("path.witnessed.runtime", {"CUDA": "cuda"}.get(next(iter(platform)), next(iter(platform)).lower()))
    stated.put("features.torch_xla.spmd", _spmd())


def _spmd() -> bool | None:
    ask = imported.part("torch_xla.runtime", "is_spmd")
    return None if ask is None else bool(ask())


def _memory(stated: ProbeOutput) -> None:
    extension = _extension()
    ask = getattr(extension, "_xla_memory_info", None)
    if _spmd() or ask is None:
        stated.note("memory by chip is unavailable: torch_xla gives none under SPMD" if ask else "memory: no such call")
        return
    for ordinal in range(len(extension._xla_get_devices())):
        try:
            usage = dict(ask(f"xla:{ordinal}"))
        except Exception as error:
            stated.note(f"memory of xla:{ordinal} is unavailable: {str(error)[:200]}")
            return
        # Before 2.4 it counted in kilobytes, and told what is free.
        used, limit = usage.get("bytes_used"), usage.get("bytes_limit")
        peak = usage.get("peak_bytes_used", usage.get("peak_bytes"))
        if limit:
            phase = stated.kept["phase"]
            stated.memory_row(phase, device=ordinal, bytes_used=used, bytes_limit=limit, peak_bytes=peak)


def _mesh(stated: ProbeOutput) -> None:
    mesh = imported.part("torch_xla.distributed.spmd.xla_sharding", "_GLOBAL_MESH")
    names, shape = getattr(mesh, "axis_names", None), getattr(mesh, "mesh_shape", None)
    if mesh is not None and names and shape:
        pairs = zip(names, shape, strict=False)
        stated.put("parallelism.mesh_axes", ",".join(f"{name}:{size}" for name, size in pairs))
