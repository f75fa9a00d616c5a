"""A store whose week 2026-W10 holds one of everything that a weekly report tells of."""

from __future__ import annotations

import atexit
import contextlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import rule_cases as cases
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.workflows.submit import submit

_OPEN = contextlib.ExitStack()
atexit.register(_OPEN.close)

WEEK = "2026-W10"
AS_OF = "2026-03-08T20:00:00+00:00"
THREADS = {"flags.OMP_NUM_THREADS": {"value": 4, "before_runtime": True}}
HOSTILE = '<script>alert(1)</script>|`*_[x](javascript:1)\u202eRTL & "quotes" \' ' + "w" * 400
OOM = {
    "run.outcome": "oom",
    "run.exit_code": 1,
    "batch.micro_batch": 64,
    "batch.global_batch": 128,
    "measurement.tokens_per_step": 128 * 256,
    "failure": {
        "phase": "first_window",
        "class": "runtime_alloc",
        "chip": 0,
        "requested_bytes": 3 * 2**30,
        "limit_bytes": 16 * 2**30,
        "message": "no memory for logits",
        "operator": "cross entropy",
    },
}


def launches(side: str, count: int = 1, steps: dict[str, Any] | None = None, **changes: Any) -> list[Parsed]:
    """Launches of the clean CPU receipt with changes at dotted paths (``__`` for a dot)."""
    table: dict[str, Any] = {"set": {path.replace("__", "."): value for path, value in changes.items()}}
    if steps is not None:
        table["steps"] = steps
    return cases.group(cases.build(table), side, count)


def one(side: str, values: dict[str, Any], steps: dict[str, Any] | None = None, count: int = 1) -> list[Parsed]:
    """As `launches`, with the changes as a map. No two start at one instant (R112)."""
    for path in ("run.started", "run.finished"):
        if path in values:
            at = datetime.fromisoformat(values[path]) + timedelta(seconds=crc32(side.encode()) % 5000)
            values = {**values, path: at.isoformat()}
    return launches(side, count, steps, **{path.replace(".", "__"): value for path, value in values.items()})


def day(number: int) -> dict[str, Any]:
    """Start and end on a day of March 2026; the week is the 2nd to the 8th."""
    return {
        "run.started": f"2026-03-{number:02d}T09:00:00+00:00",
        "run.finished": f"2026-03-{number:02d}T09:04:20+00:00",
    }


def everything() -> list[Parsed]:
    """Three launches of a base, three that are faster by one axis, and what a week brings beside them."""
    base = launches("a", 3)
    faster = one("b", {**day(2), **THREADS, "run.label": "small decoder, 4 threads"}, {"seconds": 0.6}, 3)
    far = one(
        "c",
        {**day(5), "run.label": HOSTILE, "model.depth": 10, "model.hidden": 320, "run.context": "other"},
    )
    oom = one("d", {**day(6), **OOM, "run.label": "micro batch 64"}, {"count": 3})
    again = one("e", {**day(7), **OOM, "run.label": "micro batch 64 again"}, {"count": 4})
    left = one("f", {**day(7), "run.label": "left its path", "path.witnessed.attention": "math"})
    bare = one("g", {**day(7), "run.label": "from a notebook", "model.name": "other decoder"})
    tree = json.loads(bare[0].raw)
    for path in ("measurement.step_durations_seconds", "path.witnessed", "evidence"):
        cases.take(tree, path)
    return [*base, *faster, *far, *oom, *again, *left, cases.parsed(tree)]


def fill(path: Path, receipts: Iterable[Parsed]) -> Store:
    """A store with these receipts, closed at the end of the session if not before."""
    store = _OPEN.enter_context(open_store(str(path)))
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, cases.rulebook()))
    refused = [str(item.error) for item in outcomes if not item.stored]
    assert not refused, refused
    return store
