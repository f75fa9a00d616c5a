"""The process: what its control group allows it, what it took, and whether the kernel killed beside it.

The recorder itself keeps the exit status and the kills that were counted at the start; these are the figures that an
out-of-memory failure of the host is read with.
"""

from __future__ import annotations

import time

from receipts.emit import termination
from receipts.emit.probes import host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

NAME = "process"
# Version 1 writes the largest number of pages for none.
_NO_LIMIT = 1 << 60


def at_start(stated: ProbeOutput) -> None:
    """Note the memory that the control group allows, and the kills so far."""
    kills = termination.oom_kills()
    stated.kept |= {"kills": kills, "waited": (waited_ns(), time.monotonic_ns())}
    limit = limit_bytes()
    if limit is not None:
        counted = f", {max(kills.values())} kills counted so far" if kills else ""
        stated.note(f"its control group may use {limit} bytes of memory ({limit / 2**30:.1f} GiB){counted}")


def at_end(stated: ProbeOutput) -> None:
    """Note the most that it used, how long it waited for a processor, and kills in its group since the start."""
    waited, begun = stated.kept["waited"]
    if (now := waited_ns()) is not None and waited is not None:
        stated.put("measurement.cpu_wait_share", round((now - waited) / max(1, time.monotonic_ns() - begun), 4))
    _, peak = resident_bytes()
    if peak is not None:
        stated.note(f"at most {peak} bytes of memory were resident ({peak / 2**30:.1f} GiB)")
    more = termination.more_kills(stated.kept.get("kills") or {})
    if more:
        stated.note(f"the kernel's out-of-memory killer struck {more} times in its control group while it ran")


def waited_ns() -> int | None:
    """For how long the main thread was ready and waited for a processor, by the kernel's scheduler."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as stream:
            return int(stream.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None


def limit_bytes(process: str = "self", root: str = termination.CGROUP_ROOT) -> int | None:
    """The tightest memory limit of the control group and those around it, bytes; None where there is none."""
    limits = [_limit(place) for place in _places(process, root)]
    return min((limit for limit in limits if limit is not None), default=None)


def resident_bytes(process: str = "self") -> tuple[int | None, int | None]:
    """The resident size now, and the largest so far, bytes."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as stream:
            rows = [line.split() for line in stream.read(1 << 14).splitlines()]
    except OSError:
        return None, None
    sizes = {row[0]: int(row[1]) * 1024 for row in rows if len(row) == 3 and row[1].isdigit()}
    return sizes.get("VmRSS:"), sizes.get("VmHWM:")


def keep_memory(stated: ProbeOutput, phase: str) -> None:
    """Keep the process's memory in a phase, for `state_memory`: whether the CPU is the chip is known later."""
    now, peak = resident_bytes()
    row = {"bytes_used": now, "peak_bytes": peak, "step": max(0, stated.steps - 1) if stated.steps else None}
    stated.kept.setdefault("resident", {})[phase] = row


def state_memory(stated: ProbeOutput) -> None:
    """State the process's resident memory as that of its chip, where a processor computes and nothing else does.

    Of several ranks each is a chip: a share of the processor.
    """
    for phase, row in stated.kept.get("resident", {}).items():
        stated.memory_row(phase, device=stated.local_rank, bytes_limit=memory_limit(), **row)


def memory_limit() -> int | None:
    """What the process may use of the machine's memory, bytes."""
    return min((size for size in (limit_bytes(), host.memory_bytes()) if size is not None), default=None)


def _places(process: str, root: str) -> list[str]:
    """Files with limits from the group upwards, of both versions."""
    places: list[str] = []
    for second, path in termination.control_groups(process):
        top, file = (root, "memory.max") if second else (f"{root}/memory", "memory.limit_in_bytes")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        places += ["/".join([top, *parts[:depth], file]) for depth in range(len(parts), -1, -1)]
    return places


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            text = stream.read(64).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < _NO_LIMIT else None
