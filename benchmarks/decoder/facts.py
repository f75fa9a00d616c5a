"""What a launch can say of itself beside its steps: machine, software, environment, memory, imported files."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
RUNTIMES = ("torch", "jax", "jaxlib")

# What places a process on a machine and cannot move a step of it. Everything else of the environment is recorded.
UNRECORDED = ("HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE")

# Taken when this module is imported, which the scripts do before they import a runtime: jax adds variables itself.
ENVIRONMENT = {name: value for name, value in sorted(os.environ.items()) if name not in UNRECORDED}
BEFORE_RUNTIME = not any(name in sys.modules for name in RUNTIMES)


def now() -> str:
    """The time in UTC, to the microsecond, with its zone."""
    return datetime.now(UTC).isoformat()


def imported_digest() -> tuple[str, list[str]]:
    """SHA-256 over the files of this folder that were really imported (`name digest` a line), and their names."""
    # Some extension modules name a file that does not exist.
    paths = {Path(file).resolve() for module in list(sys.modules.values()) if (file := _file(module))}
    mine = sorted(path for path in paths if path.parent == FOLDER and path.is_file())
    lines = "".join(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in mine)
    return hashlib.sha256(lines.encode()).hexdigest(), [path.name for path in mine]


def _file(module: Any) -> str | None:
    found = getattr(module, "__file__", None)
    return found if isinstance(found, str) else None


def wheels() -> dict[str, str]:
    """Every installed distribution with its full version."""
    from importlib.metadata import distributions

    return {item.name.lower().replace("_", "-"): item.version for item in distributions()}


def environment() -> dict[str, Any]:
    """The whole environment but `UNRECORDED`. Launches are started with a clean one, so it is short."""
    return {"variables": ENVIRONMENT, "before_runtime": BEFORE_RUNTIME}


def usage() -> dict[str, Any]:
    """Clock, processor time and the times that this process was put off the processor against its will."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": round(time.perf_counter(), 6),
        "cpu_seconds": round(spent.ru_utime + spent.ru_stime, 6),
        "involuntary_switches": spent.ru_nivcsw,
    }


def host(label: str) -> dict[str, Any]:
    """The machine. `label` stands for the host's name, which is nobody's business."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {
        "label": label,
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "ram_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": list(os.getloadavg()),
    }


def memory() -> dict[str, int]:
    """Resident and virtual bytes of this process now, and the highest resident so far."""
    page = os.sysconf("SC_PAGE_SIZE")
    virtual, resident = (int(field) * page for field in Path("/proc/self/statm").read_text().split()[:2])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"resident_bytes": resident, "virtual_bytes": virtual, "peak_resident_bytes": max(peak, resident)}


def rounded(values: Mapping[str, float] | list[float], digits: int = 7) -> Any:
    """Durations to 100 ns: below that the clock itself is noise, and the digits would only fill the file."""
    if isinstance(values, list):
        return [round(value, digits) for value in values]
    return {name: round(value, digits) for name, value in values.items()}
