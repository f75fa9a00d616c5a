"""JAX: devices and their memory, compiles by its own monitoring events, the cache, the mesh.

No backend is started to find out: devices are asked for only once the job has started one. Events are listened to from
the recorder's start; where JAX had computed before that, totals are not stated.
Sources: `jax/_src/monitoring.py`, `jax/_src/dispatch.py`, `jax/_src/compilation_cache.py`, versions 0.4.30 to 0.10.
"""

from __future__ import annotations

import threading

from receipts.emit.probes import imported, process, wheels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "jax"
COMPILED = "/jax/core/compile/backend_compile_duration"
HIT, MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"
# Settings that change what is compiled or how it runs, by JAX's own names.
SETTINGS = (
    *("jax_enable_x64", "jax_default_matmul_precision", "jax_default_prng_impl", "jax_threefry_partitionable"),
    *("jax_disable_jit", "jax_debug_nans", "jax_use_shardy_partitioner", "jax_numpy_dtype_promotion"),
    *("jax_enable_compilation_cache", "jax_exec_time_optimization_effort", "jax_memory_fitting_effort"),
)
_CACHE = (
    *("jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs"),
    *("jax_persistent_cache_min_entry_size_bytes", "jax_compilation_cache_dir"),
)
_MAX_EVENTS = 20_000


class JaxListener:
    """Listens to JAX's events: programs compiled or loaded, with the steps that had ended."""

    def __init__(self, stated: ProbeOutput) -> None:
        self._stated = stated
        # By thread: a hit is reported before the compilation that it replaces.
        self._hit: dict[int, bool] = {}
        self._names: set[str] = set()
        self.hits = 0
        self.misses = 0
        self.compiled = 0
        self.loaded = 0
        self.seconds = 0.0
        # Of compiled programs alone: steps that had ended, and whether one was running.
        self.events: list[tuple[int, bool]] = []

    def event(self, name: str, *_given: Any, **_more: Any) -> None:
        """Called by JAX with each event; what goes wrong here must not reach the job."""
        if name == HIT:
            self.hits += 1
            self._hit[threading.get_ident()] = True
        elif name == MISS:
            self.misses += 1

    def duration(self, name: str, seconds: float, *_given: Any, **more: Any) -> None:
        """Called by JAX with each duration. A compile duration is reported on a disk-cache hit, too."""
        if name != COMPILED:
            return
        try:
            if self._hit.pop(threading.get_ident(), False):
                self.loaded += 1
                return
            self.compiled += 1
            self.seconds += float(seconds)
            stated = self._stated
            if len(self.events) < _MAX_EVENTS:
                self.events.append((stated.steps, stated.inside))
            program = str(more.get("fun_name", ""))
            if stated.inside:
                stated.mark_step("recompile" if program and program in self._names else "compile")
            if program and len(self._names) < _MAX_EVENTS:
                self._names.add(program)
        except Exception as error:
            self._stated.note(f"a compilation could not be noted: {type(error).__name__}: {error}")

    def late(self, warmup: int, steps: int) -> int:
        """Compilations inside steps after the warm-up."""
        return sum(inside and warmup <= step < steps for step, inside in self.events)


def at_start(stated: ProbeOutput) -> None:
    """Listen, where JAX is there already."""
    imported.read_each(stated, _listen)


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State memory by device, and the mesh that is in force; listen from here on where JAX came since."""
    stated.kept["phase"] = phase
    if phase != "steady":
        imported.read_each(stated, _listen)
    process.keep_memory(stated, phase)
    if begun():
        imported.read_each(stated, _memory, _mesh)
    if phase == "post_step0":
        at_warm(stated)


def at_warm(stated: ProbeOutput) -> None:
    """State the machine: a job that is killed later has it."""
    imported.read_each(stated, _listen, _mesh)
    if _computes():
        imported.read_each(stated, _machine, _platform)


def at_end(stated: ProbeOutput) -> None:
    """State compiles, cache, machine and settings."""
    imported.read_each(stated, _stop)
    if _computes():
        imported.read_each(stated, _machine, _platform, _compiles, _settings)


def _computes() -> bool:
    return imported.module("jax") is not None and imported.module("torch_xla") is None and begun()


def begun() -> bool:
    """Whether the job has started a backend of JAX."""
    return bool(imported.part("jax._src.xla_bridge", "_backends"))


def _listen(stated: ProbeOutput) -> None:
    monitoring = imported.module("jax._src.monitoring")
    if monitoring is None or imported.module("jax") is None or "listener" in stated.kept:
        return
    listener = JaxListener(stated)
    monitoring.register_event_listener(listener.event)
    monitoring.register_event_duration_secs_listener(listener.duration)
    stated.kept["listener"], stated.kept["unheard"] = listener, begun()
    # How many programs this process has compiled or loaded so far, as JAX's own cache of them counts.
    counts = getattr(imported.part("jax._src.interpreters.pxla", "_cached_compilation"), "cache_info", None)
    stated.kept["before"] = None if counts is None else int(counts().misses)
    stated.kept["heard_from"] = stated.steps


def _stop(stated: ProbeOutput) -> None:
    listener, monitoring = stated.kept.get("listener"), imported.module("jax._src.monitoring")
    if listener is None or monitoring is None:
        return
    # Older versions have these by private names, and the oldest not at all: then it listens on and says nothing.
    for name, own in (("event_listener", listener.event), ("event_duration_listener", listener.duration)):
        remove = getattr(monitoring, f"unregister_{name}", None)
        remove = remove or getattr(monitoring, f"_unregister_{name}_by_callback", None)
        if remove is not None:
            remove(own)


def _devices() -> list[Any]:
    return list(imported.part("jax", "devices")())


def _memory(stated: ProbeOutput) -> None:
    devices = imported.part("jax", "local_devices")()
    phase, step = stated.kept["phase"], max(0, stated.steps - 1) if stated.steps else None
    if len(devices) > 1 and {device.platform for device in devices} == {"cpu"}:
        # Devices that share a processor: what lies on each are its arrays, and in a step what XLA sets aside.
        held = dict.fromkeys((int(device.id) for device in devices), 0)
        for array in imported.part("jax", "live_arrays")():
            for shard in array.addressable_shards:
                held[int(shard.device.id)] += int(shard.data.nbytes)
        peaks, limit = stated.kept.setdefault("peaks", {}), process.memory_limit()
        for chip, size in held.items():
            peak = peaks[chip] = max(peaks.get(chip, 0), size + int(stated.get("compile.temp_bytes") or 0))
            stated.memory_row(phase, chip=chip, bytes_used=size, bytes_limit=limit, peak_bytes=peak, step=step)
    for device in devices:
        if stats := device.memory_stats():
            stated.memory_row(
                phase,
                chip=int(device.id),
                bytes_used=stats.get("bytes_in_use"),
                bytes_limit=stats.get("bytes_limit"),
                peak_bytes=stats.get("peak_bytes_in_use"),
                peak_reserved_bytes=stats.get("peak_pool_bytes", stats.get("peak_bytes_reserved")) or None,
                step=step,
            )


def _mesh(stated: ProbeOutput) -> None:
    if not begun():
        return
    env = getattr(imported.part("jax._src.mesh", "thread_resources"), "env", None)
    meshes = [getattr(env, "physical_mesh", None)]
    concrete = imported.part("jax._src.mesh", "get_concrete_mesh")
    if concrete is not None:
        meshes.append(concrete())
    for mesh in meshes:
        shape = dict(getattr(mesh, "shape", None) or {})
        if shape:
            stated.put("parallelism.mesh_axes", ",".join(f"{name}:{size}" for name, size in shape.items()))
            return


def _machine(stated: ProbeOutput) -> None:
    devices = _devices()
    kinds = sorted({str(device.device_kind) for device in devices})
    if len(kinds) == 1:
        stated.put("hardware.accelerator", kinds[0])
    else:
        stated.note(f"JAX computes on different devices: {', '.join(kinds)}")
    coordinates = {tuple(device.coords) for device in devices if getattr(device, "coords", None) is not None}
    # Of some TPUs each chip shows as two devices, at one place.
    stated.put("hardware.chips", len(coordinates) or len(devices) or None)
    stated.put("hardware.physical", grid(coordinates))
    platform = {str(device.platform) for device in devices}
    if platform == {"tpu"}:
        stated.put("hardware.hosts", len({int(device.process_index) for device in devices}))
    runtime = {"tpu": "pjrt-tpu", "gpu": "cuda", "cuda": "cuda", "cpu": "cpu", "rocm": "rocm"}
    if platform == {"cpu"} and len(devices) == 1:
        process.state_memory(stated)
    if len(platform) == 1:
        name = next(iter(platform))
        stated.put("path.witnessed.runtime", runtime.get(name, name))


def grid(coordinates: set[tuple[int, ...]]) -> str | None:
    """The shape of chips that fill a grid, such as ``2x4``; None where they fill none."""
    if not coordinates:
        return None
    sides = [max(axis) - min(axis) + 1 for axis in zip(*coordinates, strict=True)]
    size = 1
    for side in sides:
        size *= side
    while len(sides) > 2 and sides[-1] == 1:
        sides.pop()
    return "x".join(str(side) for side in sides) if size == len(coordinates) else None


def _platform(stated: ProbeOutput) -> None:
    client = _devices()[0].client
    platform = str(_devices()[0].platform)
    if platform == "tpu":
        stated.put("platform.libtpu", wheels.version("libtpu") or wheels.version("libtpu-nightly"))
    if platform in ("gpu", "cuda"):
        word, _, number = str(client.platform_version).partition(" ")
        if word == "cuda" and number.isdigit():
            stated.put("platform.cuda", f"{int(number) // 1000}.{int(number) % 1000 // 10}")
        ask = getattr(imported.part("jax._src.lib", "cuda_versions"), "cudnn_get_version", None)
        version = imported.read_value(stated, "cuDNN's version", ask) if ask is not None else None
        if isinstance(version, int):
            from receipts.emit.probes.pytorch import cudnn_version, driver

            stated.put("platform.cudnn", cudnn_version(version))
            stated.put("platform.driver", driver())


def _compiles(stated: ProbeOutput) -> None:
    listener: JaxListener | None = stated.kept.get("listener")
    if listener is None:
        return
    values = _config()
    disk = values.get("jax_enable_compilation_cache", True) and values.get("jax_compilation_cache_dir")
    before = stated.kept["before"]
    if stated.kept["unheard"] and before is not None and not disk:
        # None of those came from a cache on disk.
        stated.put("compile.compiles", before + listener.compiled)
        stated.put("compile.cache_state", "off")
    elif stated.kept["unheard"]:
        stated.note("JAX had computed before the recorder listened: compiles before that are not counted")
    else:
        stated.put("compile.compiles", listener.compiled)
        stated.put("compile.compile_seconds", listener.seconds)
        stated.put("compile.cache_hits", listener.hits)
        stated.put("compile.cache_misses", listener.misses)
        if not disk:
            stated.put("compile.cache_state", "off")
        elif bool(listener.hits) != bool(listener.misses):
            stated.put("compile.cache_state", "warm" if listener.hits else "cold")
        elif listener.hits:
            counts = f"{listener.hits} programs and not {listener.misses} others"
            stated.note(f"the compile cache held {counts}: neither cold nor warm")
    if stated.warmup is not None and stated.kept["heard_from"] <= stated.warmup <= stated.steps:
        stated.put("compile.compiles_after_warmup", listener.late(stated.warmup, stated.steps))
    elif stated.steps and not stated.kept["heard_from"] and not listener.late(1, stated.steps):
        stated.put("compile.compiles_after_warmup", 0)


def _config() -> dict[str, Any]:
    return dict(getattr(imported.part("jax._src.config", "config"), "values", None) or {})


def _settings(stated: ProbeOutput) -> None:
    values = _config()
    for name in SETTINGS:
        value = values.get(name)
        if value is not None:
            stated.put(f"features.jax.{name.removeprefix('jax_')}", value)
    seen: dict[str, bool | int | float | str] = {
        name: value for name in _CACHE if isinstance(value := values.get(name), bool | int | float | str)
    }
    index = imported.part("jax", "process_index")
    if index is not None:
        seen["process_index"] = int(index())
    seen["local_devices"] = len(imported.part("jax", "local_devices")())
    stated.evidence(
        "jax-state", level="intent", producer="jax", version=str(imported.part("jax", "__version__")), observed=seen
    )
