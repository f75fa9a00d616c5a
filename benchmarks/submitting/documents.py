"""Receipts to submit: of 64 chips and 300 steps, about 15 kB; and summary-sized ones of about 5 kB."""

from __future__ import annotations

import json
import random
import statistics
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

BASE = Path(__file__).resolve().parents[2] / "tests" / "cases" / "base.json"
CHIPS = 64


def document(seed: int) -> bytes:
    """A receipt of one more launch that every rule finds in order: 64 chips with their memory, 300 steps."""
    return _encoded(_tree(seed))


def summary(seed: int) -> bytes:
    """The same launch as a person keeps it who wrote down figures alone: no step and no chip of its own."""
    tree = _tree(seed)
    measured = tree["measurement"]
    for name in ("step_durations_seconds", "step_flags"):
        measured.pop(name, None)
    fullest = max(row["peak_bytes"] for row in tree["memory"]["chips"])
    tree["memory"] = {"aggregate": {"bytes": fullest, "over": "max", "kind": "live"}}
    return _encoded(tree)


def _encoded(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def _tree(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    tree: dict[str, Any] = json.loads(BASE.read_bytes())
    tree["run"]["launch"] = str(uuid.UUID(int=draw.getrandbits(128)))
    tree["run"]["label"] = f"bench-{seed}"
    # No two launches start on a host in one second: R112 would read the others' steps with each submit.
    for name in ("started", "finished"):
        tree["run"][name] = (datetime.fromisoformat(tree["run"][name]) + timedelta(seconds=seed)).isoformat()
    tree["hardware"] |= {"chips": CHIPS, "hosts": 8}
    tree["parallelism"] |= {"data": CHIPS}
    tree["batch"] |= {"global_batch": tree["batch"]["micro_batch"] * CHIPS, "accumulation": 1}
    measured = tree["measurement"]
    steps = measured["step_durations_seconds"] = [round(draw.gauss(0.8, 0.004), 6) for _ in range(300)]
    tokens = measured["tokens_per_step"] = tree["batch"]["global_batch"] * tree["batch"]["sequence_length"]
    middle = statistics.median(steps[measured["window"]["start"] :])
    measured["stated"] |= {
        "step_seconds": round(middle, 4),
        "step_seconds_stated": f"{middle * 1e3:.1f} ms",
        "tokens_per_second": round(tokens / middle, 1),
        "tokens_per_second_stated": f"{tokens / middle:,.1f}",
    }
    tree["memory"]["chips"] = [_chip(chip, draw) for chip in range(CHIPS)]
    for file in tree["evidence"]:
        file["sha256"] = draw.randbytes(32).hex()
    return tree


def _chip(chip: int, draw: random.Random) -> dict[str, int | str]:
    used = 8_000_000_000 + draw.randrange(10**8)
    limits = {"bytes_limit": 17_179_869_184, "peak_bytes": used + draw.randrange(10**9)}
    return {"chip": chip, "phase": "steady", "bytes_used": used, **limits}


def grid(make: Callable[[int], bytes], seed: int) -> bytes:
    """A launch of a grid search: every fifth one has another learning rate, seed and prefetch than those before it."""
    tree = json.loads(make(seed))
    point = seed // 5
    tree["numerics"] |= {"learning_rate": round(1e-4 * (1 + point % 97), 6), "seed": point}
    tree["parallelism"]["prefetch"] = f"{point % 13} layers"
    return _encoded(tree)
