"""The document of a kind of launch, with words in place of what differs between its launches."""

from __future__ import annotations

import json
import random
import statistics
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.scaling.launches import Kind, lane

Size = Literal["whole", "summary"]
CHIPS: Final[dict[Size, int]] = {"whole": 64, "summary": 8}
STEPS: Final[dict[Size, int]] = {"whole": 300, "summary": 80}
KEEPING: Final = (3, 7)  # bases whose smaller receipts have steps, too
_CASES: Final = Path(__file__).resolve().parents[2] / "tests" / "cases"
_BASES: Final = {
    "cpu-torch": "base.json",
    "nvidia-megatron": "base-megatron.json",
    "tpu-torch-xla": "base-tpu.json",
}
# What stands in a document for what its launches have each of their own; nothing else is written like that.
WORDS: Final = {
    "launch": "5ca1e000-0000-4000-8000-00000000000a",
    "label": "scale-label-0000000",
    "host": "scale-host",
    "started": "2026-03-02T09:01:01+00:00",
    "finished": "2026-03-02T09:15:11+00:00",
    "commit": "5ca1ec0",
    "imported": "5ca1e1" + "0" * 58,
    "bucket": "541723098",
    "profile": "5ca1e2" + "0" * 58,
    "metrics": "5ca1e3" + "0" * 58,
    "target": "5ca1e4" + "0" * 58,
    "id": "5ca1e5" + "0" * 58,
    "start": "5ca1e6000000",
}


@cache
def _base(name: str) -> str:
    return (_CASES / _BASES[name]).read_text(encoding="utf-8")


def tree(kind: Kind, size: Size) -> dict[str, Any]:
    """A receipt of 64 chips with 300 steps, about 15 kB; or one of 8 chips, most with figures alone, about 6 kB."""
    made: dict[str, Any] = json.loads(_base(lane(kind)))
    draw = random.Random(f"{kind.period} {kind.base}")
    _named(made, kind)
    made["wheels"]["torch"]["version"] += f".{kind.period}"
    made["numerics"] |= {"learning_rate": draw.choice((1e-4, 2e-4, 3e-4, 6e-4))}
    made["data"]["dataset"] = f"corpus-{draw.randrange(6)}"
    made["parallelism"]["bucket_bytes"] = int(WORDS["bucket"])
    made["parallelism"]["prefetch"] = f"{kind.base} layers"
    for name, value in (("SCALE_FIRST", kind.point.first), ("SCALE_SECOND", kind.point.second)):
        made["flags"][name] = {"value": value, "before_runtime": True}
    _spread(made, kind, CHIPS[size])
    if kind.failed:
        made["run"] |= {"outcome": "oom", "exit_code": 1}
        made["failure"] = {
            "phase": "compile",
            "class": "compile_hbm",
            "message": "ran out of memory while compiling",
            "used_bytes": 45_902_462_976,
            "limit_bytes": 33_554_432_000,
        }
        del made["measurement"], made["memory"]
    else:
        _measured(made, kind, size)
    return made


def _named(made: dict[str, Any], kind: Kind) -> None:
    run = made["run"]
    run |= {name: WORDS[name] for name in ("launch", "label", "host", "started", "finished")}
    run["context"] = f"{lane(kind)}-base-{kind.base}"
    if kind.bare:
        del run["context"], made["numerics"]["buffer_dtype"]
    elif kind.base == 5:
        del run["context"]
    if kind.replaces:
        run["supersedes"] = {"target": WORDS["target"], "reason": "the clock of its host was wrong"}
    made["code"] |= {"commit": WORDS["commit"], "imported_digest": WORDS["imported"], "dirty": False}
    for file, word in zip(made["evidence"], ("profile", "metrics"), strict=False):
        file["sha256"] = WORDS[word]


def _spread(made: dict[str, Any], kind: Kind, chips: int) -> None:
    """Over so many chips, with as many sequences a step at every point."""
    made["hardware"] |= {"chips": chips, "hosts": chips // 8}
    parallelism = made["parallelism"]
    data = chips // parallelism["tensor"]
    parallelism["data"] = data
    if lane(kind) == "tpu-torch-xla":
        parallelism |= {"shard": data, "mesh_axes": f"data:{data},expert:1,model:{parallelism['tensor']}"}
        made["hardware"]["physical"] = {8: "2x4", 64: "8x8"}[chips]
    made["batch"] |= {
        "micro_batch": kind.point.micro,
        "sequence_length": kind.point.length,
        "global_batch": 16 * data,
        "accumulation": 16 // kind.point.micro,
    }


def _measured(made: dict[str, Any], kind: Kind, size: Size) -> None:
    # A receipt that replaces another is of the same launch, and its numbers are the same.
    point, draw = kind.point, random.Random(repr(kind._replace(replaces=False)))
    measured, stated = made["measurement"], made["measurement"]["stated"]
    factor = (1 - 0.04 * point.first) * (1 + 0.03 * point.second) * (1 - 0.01 * point.micro)
    typical = 0.8 * point.length / 2048 * factor * (1 + draw.gauss(0, 0.001))
    steps = [round(typical * (1 + draw.gauss(0, 0.004)), 6) for _ in range(STEPS[size])]
    chips = made["hardware"]["chips"]
    tokens = measured["tokens_per_step"] = made["batch"]["global_batch"] * point.length
    middle = statistics.median(steps[measured["window"]["start"] :])
    rate = tokens / middle
    stated |= {"step_seconds": round(middle, 4), "step_seconds_stated": f"{middle * 1e3:.1f} ms"}
    stated |= {"tokens_per_second": round(rate, 1), "tokens_per_second_stated": f"{rate:,.1f}"}
    if "flops_per_token" in stated:
        work = rate / chips * stated["flops_per_token"]
        share = work / stated["peak_flops_per_second"]
        stated |= {
            "tokens_per_second_per_chip": round(rate / chips, 1),
            "tokens_per_second_per_chip_stated": f"{rate / chips:,.1f}",
            "tflops_per_second_per_chip": round(work / 1e12, 2),
            "tflops_per_second_per_chip_stated": f"{work / 1e12:.2f}",
            "mfu": round(share, 4),
            "mfu_stated": f"{share * 100:.2f} %",
        }
    steady = [row for row in made["memory"]["chips"] if row["phase"] == "steady"][-1]
    peak = steady["peak_bytes"] * (1000 - 16 + point.micro) // 1000
    rows = [
        {
            "chip": chip,
            "phase": "steady",
            "bytes_used": steady["bytes_used"],
            "bytes_limit": steady["bytes_limit"],
            "peak_bytes": peak - draw.randrange(10**5),
        }
        for chip in range(chips)
    ]
    made["memory"]["chips"] = rows
    measured["steps"] = measured["window"]["stop"] = STEPS[size]
    if size == "whole" or kind.base in KEEPING:
        measured["step_durations_seconds"] = steps
    else:
        del measured["step_durations_seconds"], measured["step_flags"]
    if size == "summary":
        del made["memory"]["predicted"]
        for name in ("goodput", "path_counters"):
            measured.pop(name, None)
