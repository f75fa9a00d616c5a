"""Whether the kernel's out-of-memory killer has been at work where this process runs."""

from __future__ import annotations

ROOT = "/sys/fs/cgroup"


def oom_kills(process: str = "self", root: str = ROOT) -> dict[str, int]:
    """Kills by the files that count them, for the process's control group and those around it; empty where none do."""
    counts = {file: _count(file) for file in _files(process, root)}
    return {file: count for file, count in counts.items() if count is not None}


def more_kills(before: dict[str, int]) -> int:
    """How many more there have been since ``before`` was read, by the same files; what is gone counts as none."""
    return max((max(0, (_count(file) or 0) - count) for file, count in before.items()), default=0)


def _count(file: str) -> int | None:
    try:
        with open(file, encoding="ascii", errors="replace") as stream:
            lines = [line.partition(" ") for line in stream.read(4096).splitlines()]
    except OSError:
        return None
    return next((int(count) for name, _, count in lines if name == "oom_kill" and count.isdigit()), None)


def _files(process: str, root: str) -> list[str]:
    try:
        with open(f"/proc/{process}/cgroup", encoding="utf-8", errors="replace") as stream:
            rows = [line.rstrip("\n").split(":", 2) for line in stream.read(16384).splitlines()]
    except OSError:
        return []
    paths = []
    for number, controllers, path in (row for row in rows if len(row) == 3):
        # On a host of both versions memory is counted by the first, and the second has a row all the same.
        if number == "0":
            place, file = root, "memory.events"
        elif "memory" in controllers.split(","):
            place, file = f"{root}/memory", "memory.oom_control"
        else:
            continue
        # Inside a container the path may be that of the host, and only the mount's root is there.
        paths += [f"{place}{path.rstrip('/')}/{file}", f"{place}/{file}"]
    return paths
