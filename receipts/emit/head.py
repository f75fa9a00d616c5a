"""The journal's first frame: which run this is, where and when it started, and what its caller named."""

from __future__ import annotations

import os
import sys
from time import perf_counter_ns, time_ns

from receipts.emit import place, secrets
from receipts.emit.journal import FORMAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

KINDS = ("training", "microbench", "profile", "serving")


def of(about: Mapping[str, Any], where: place.ProcessRank, fault: Callable[[str], None]) -> dict[str, Any]:
    """The frame; an option that is not valid is reported by ``fault`` and left out."""
    given = about["launch"]
    launch = str(given)[:500] if given else place.launch_of(place=where)
    if not given and not place.agreed(os.environ, where):
        fault("ranks cannot agree on a launch by themselves: set RECEIPTS_LAUNCH to one UUID for all of them")
    kind = str(about["kind"])
    if kind not in KINDS:
        fault(f"kind is one of {', '.join(KINDS)}, and not {kind!r:.40}; it is recorded as training")
        kind = "training"
    tags = about["tags"] if isinstance(about["tags"], list | tuple) else [about["tags"]]
    texts = {name: _text(about[name]) for name in ("label", "context", "site", "witness_for", "resumed_from")}
    counts = {name: _count(name, about[name], fault) for name in ("warmup", "start_step")}
    process = os.getpid()
    return {
        "format": FORMAT,
        "launch": launch,
        "lane": _text(about["lane"]) or "unlisted",
        "kind": kind,
        "started": now(),
        "begun_ns": perf_counter_ns(),
        "begun_wall_ns": time_ns(),
        "rank": where.rank,
        "world": where.world,
        "local_rank": where.local_rank,
        "launcher": where.launcher,
        "host": where.host,
        "process": process,
        "process_start": place.process_start(process),
        "boot": place.boot_id(),
        "command": secrets.command_line(_words())[:10_000],
        "tags": [_text(tag) for tag in tags if tag],
        "session": _text(os.environ.get("RECEIPTS_SESSION", "").strip() or None),
        **counts,
        **texts,
    }


def python() -> str:
    """The interpreter's version."""
    return "{}.{}.{}".format(*sys.version_info[:3])


def now() -> str:
    """The time of day, to the millisecond, in UTC."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _words() -> list[str]:
    """The command line as it was typed, the interpreter by its own name alone."""
    words = list(getattr(sys, "orig_argv", None) or sys.argv)
    return [os.path.basename(words[0]), *words[1:]] if words else []


def _text(value: Any) -> str | None:
    return None if value is None else secrets.redact(str(value))[:500] or None


def _count(name: str, value: Any, fault: Callable[[str], None]) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    fault(f"{name} is a count of steps, and not {value!r:.40}")
    return None
