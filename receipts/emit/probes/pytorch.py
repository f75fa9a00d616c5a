"""PyTorch as it is imported: versions, CUDA's allocator by device, switches that choose kernels, the process group.

No CUDA context is made, and nothing waits for a device: CUDA is asked only once the job has started it, and then for
what the host knows (the allocator's own counters, properties, versions).
"""

from __future__ import annotations

import sys
from functools import partial

from receipts.emit.probes import imported, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "torch"
# The names of torch.backends.cuda's queries, by the backend that they tell of.
SDPA = {
    "flash": "flash_sdp_enabled",
    "efficient": "mem_efficient_sdp_enabled",
    "math": "math_sdp_enabled",
    "cudnn": "cudnn_sdp_enabled",
}
# Other machines under PyTorch: with one of these it computes on no CPU.
_ELSEWHERE = ("torch_xla", "torch_npu", "torch_musa", "intel_extension_for_pytorch", "habana_frameworks")
_PEAKS = {"peak_bytes": "allocated_bytes.all.peak", "peak_reserved_bytes": "reserved_bytes.all.peak"}


def at_start(stated: ProbeOutput) -> None:
    """State versions where torch is there already."""
    if imported.module("torch") is not None:
        imported.read_each(stated, _versions)


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State the allocator's rows, and from the first step on the switches that the job runs with."""
    if imported.module("torch") is None:
        return
    stated.kept["phase"] = phase
    imported.read_each(stated, _versions, _memory)
    if phase in ("post_step0", "steady"):
        imported.read_each(stated, _switches, _machine)


def at_end(stated: ProbeOutput) -> None:
    """State the process group and the allocator's retries, and say what was read."""
    if imported.module("torch") is not None:
        imported.read_each(stated, _retries, _group, _intent)


def cuda_begun() -> bool:
    """Whether the job has started CUDA through torch."""
    return bool(imported.part("torch.cuda", "_initialized"))


def _versions(stated: ProbeOutput) -> None:
    version = imported.module("torch.version")
    if version is None:
        return
    cuda, hip = vars(version).get("cuda"), vars(version).get("hip")
    stated.put("platform.cuda", cuda)
    if hip:
        stated.note(f"this torch is built for HIP {hip}")
    if cuda:
        stated.put("platform.driver", driver())
    if not cuda_begun():
        return
    cudnn = imported.part("torch.backends.cudnn", "version")
    number = imported.read_value(stated, "cuDNN's version", cudnn) if cudnn is not None else None
    if isinstance(number, int):
        stated.put("platform.cudnn", cudnn_version(number))
    nccl = imported.part("torch.cuda.nccl", "version")
    nccl_version = imported.read_value(stated, "NCCL's version", nccl) if nccl is not None else None
    if isinstance(nccl_version, tuple):
        stated.put("platform.nccl", ".".join(str(part) for part in nccl_version))


def cudnn_version(number: int) -> str:
    """9.20.0 from 92000, and 8.9.2 from 8902: cuDNN's own two ways of counting."""
    step = 10_000 if number >= 90_000 else 1_000
    return f"{number // step}.{number % step // 100}.{number % 100}"


def driver(path: str = "/proc/driver/nvidia/version") -> str | None:
    """The loaded kernel module's version; None where there is none."""
    import re

    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            match = re.search(r"Kernel Module\b[^\n]*?\s(\d{2,5}(?:\.\d{1,4}){1,3})\s", stream.read(4096))
    except OSError:
        return None
    return match[1] if match is not None else None


def devices() -> dict[int, dict[str, Any]]:
    """The allocator's counters of each device that this process allocated on; empty before CUDA has started."""
    count, counters = imported.part("torch.cuda", "device_count"), imported.part("torch.cuda", "memory_stats")
    if not cuda_begun() or count is None or counters is None:
        return {}
    rows = {device: dict(counters(device)) for device in range(count())}
    return {device: stats for device, stats in rows.items() if stats.get(_PEAKS["peak_reserved_bytes"])}


def _memory(stated: ProbeOutput) -> None:
    process.keep_memory(stated, stated.kept["phase"])
    peaks: dict[tuple[int, str], int] = stated.kept.setdefault("peaks", {})
    properties = imported.part("torch.cuda", "get_device_properties")
    for device, stats in devices().items():
        # A job may reset its peaks, as torchtitan does with each line of its log: the largest that was seen is kept.
        for name, key in _PEAKS.items():
            peaks[device, name] = max(peaks.get((device, name), 0), int(stats.get(key, 0)))
        limit = None if properties is None else getattr(properties(device), "total_memory", None)
        stated.memory_row(
            stated.kept["phase"],
            device=device,
            bytes_used=stats.get("allocated_bytes.all.current"),
            bytes_limit=limit,
            peak_bytes=peaks[device, "peak_bytes"],
            peak_reserved_bytes=peaks[device, "peak_reserved_bytes"],
            step=max(0, stated.steps - 1) if stated.steps else None,
        )


def _machine(stated: ProbeOutput) -> None:
    properties = imported.part("torch.cuda", "get_device_properties")
    used = devices()
    if used and properties is not None:
        names = sorted({str(properties(device).name) for device in used})
        if len(names) == 1:
            stated.put("hardware.accelerator", names[0])
        else:
            stated.note(f"this process computes on different devices: {', '.join(names)}")
        stated.put("path.witnessed.runtime", "cuda")
        if stated.world == 1:
            stated.put("hardware.chips", len(used))
    elif on_cpu():
        process.state_memory(stated)
        stated.put("hardware.accelerator", "cpu")
        stated.put("path.witnessed.runtime", "cpu")
        if stated.world == 1:
            stated.put("hardware.chips", 1)


def on_cpu() -> bool:
    """Whether nothing but the CPU can have computed: no other runtime under torch, and no other framework."""
    if cuda_begun() or sys.platform == "darwin" or imported.any_of((*_ELSEWHERE, "jax")):
        return False
    return not any(imported.part(name, "_initialized") for name in ("torch.xpu", "torch.mtia"))


def _switches(stated: ProbeOutput) -> None:
    torch = vars(imported.module("torch"))
    # Switches by the name under which they are stated, as far as this version of torch has them.
    readings: dict[str, Callable[[], Any]] = {}
    plain: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "default_dtype": ("get_default_dtype", lambda dtype: str(dtype).rpartition(".")[2]),
        "float32_matmul_precision": ("get_float32_matmul_precision", str),
        "deterministic_algorithms": ("are_deterministic_algorithms_enabled", bool),
    }
    if on_cpu():
        plain["num_threads"] = ("get_num_threads", int)
    for name, (getter, kind) in plain.items():
        if getter in torch:
            readings[name] = partial(_call, kind, torch[getter])
    if cuda_begun():
        cudnn = imported.module("torch.backends.cudnn")
        for name in ("benchmark", "deterministic", "enabled"):
            readings[f"cudnn_{name}"] = partial(getattr, cudnn, name, None)
        for dtype in ("bf16", "fp16"):
            query = getattr(torch.get("_C"), f"_get_cublas_allow_{dtype}_reduced_precision_reduction", None)
            if query is not None:
                # Newer versions answer with two: whether reduced sums are allowed, and whether splitting the sum is.
                readings[f"{dtype}_reduced_precision_reduction"] = partial(
                    _call, lambda value: bool(value[0] if isinstance(value, tuple) else value), query
                )
    for name, call in readings.items():
        value = imported.read_value(stated, name, call)
        if value is not None:
            stated.put(f"features.torch.{name}", value)
    enabled = sdpa(stated)
    if enabled is not None:
        stated.put("features.torch.sdpa", "+".join(enabled) or "none")
        if len(enabled) == 1:
            # All are on by default: where one alone is left, somebody asked for it.
            stated.put("path.intended.attention", f"sdpa_{enabled[0]}")


def _call(kind: Callable[[Any], Any], query: Callable[[], Any]) -> Any:
    import warnings

    with warnings.catch_warnings():
        # torch 2.9 warns on a read that the switch has a newer name: not the job's business.
        warnings.simplefilter("ignore")
        return kind(query())


def sdpa(stated: ProbeOutput) -> list[str] | None:
    """Backends of scaled_dot_product_attention that may be chosen, which is intent; None where torch cannot say."""
    queries = {name: imported.part("torch.backends.cuda", query) for name, query in SDPA.items()}
    if queries["math"] is None:
        return None
    return [
        name
        for name, query in queries.items()
        if query is not None and imported.read_value(stated, f"sdpa {name}", query)
    ]


def _retries(stated: ProbeOutput) -> None:
    for device, stats in devices().items():
        where = "" if stated.world > 1 else f".{device}"
        for name in ("num_alloc_retries", "num_ooms"):
            if isinstance(stats.get(name), int):
                stated.counter(f"torch.cuda.{name}{where}", stats[name])


def _group(stated: ProbeOutput) -> None:
    """The default process group, by what it knows of itself: no collective is called."""
    ask = imported.part("torch.distributed", "is_initialized")
    if ask is None or not ask():
        return
    world = imported.part("torch.distributed", "get_world_size")()
    backend = imported.part("torch.distributed", "get_backend")()
    stated.put("features.torch.distributed_backend", str(backend))
    if world != stated.world:
        stated.note(f"torch's process group has {world} ranks, and the launcher says {stated.world}")


def _intent(stated: ProbeOutput) -> None:
    torch = vars(imported.module("torch"))
    seen: dict[str, bool | int | float | str] = {}
    for device in list(devices())[:1]:
        properties = imported.part("torch.cuda", "get_device_properties")(device)
        seen["device"] = str(properties.name)
        seen["capability"] = f"{properties.major}.{properties.minor}"
        seen["multiprocessors"] = int(getattr(properties, "multi_processor_count", 0))
        seen["total_memory_bytes"] = int(properties.total_memory)
    built = imported.module("torch.version")
    seen["git"] = str(vars(built).get("git_version")) if built is not None else "unknown"
    stated.evidence(
        "torch-state", level="intent", producer="torch", version=str(torch.get("__version__", "")), observed=seen
    )
