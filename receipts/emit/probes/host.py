"""The machine that the process runs on: system and kernel, processor, cores, memory."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

NAME = "host"
RANKS = "host"


def at_start(stated: ProbeOutput) -> None:
    """State system and kernel; processor and memory are for people, since the receipt has no leaf for them."""
    stated.put("platform.os", system())
    model, cores = processor(), os.cpu_count()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    memory = memory_bytes()
    size = f", {memory / 2**30:.1f} GiB of memory" if memory is not None else ""
    stated.note(f"{model or 'processor unknown'}, {usable} of {cores} processors usable{size}")


def system() -> str:
    """System and kernel, such as ``Ubuntu 24.04.1 LTS, Linux 6.8.0-45-generic x86_64``."""
    if not hasattr(os, "uname"):
        return os.name
    name = os.uname()
    kernel = f"{name.sysname} {name.release} {name.machine}"
    release = _fields("/etc/os-release", "=").get("PRETTY_NAME", "").strip("\"'")
    return f"{release}, {kernel}" if release else kernel


def processor() -> str:
    """The processor's name; empty where the system does not say."""
    fields = _fields("/proc/cpuinfo", ":", 1 << 14)
    return fields.get("model name") or fields.get("Model") or fields.get("cpu model") or ""


def memory_bytes() -> int | None:
    """The machine's memory in bytes, whatever part of it the process may use."""
    words = _fields("/proc/meminfo", ":").get("MemTotal", "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _fields(path: str, sign: str, size: int = 1 << 13) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            rows = [line.partition(sign) for line in stream.read(size).splitlines()]
    except OSError:
        return {}
    fields: dict[str, str] = {}
    for name, _, value in rows:
        fields.setdefault(name.strip(), value.strip())
    return fields
