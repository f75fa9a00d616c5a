"""Evidence, arithmetic and memory: documents that nobody's run made, typed terms of a quotient, and shapes."""

from __future__ import annotations

from typing import Any

from benchmarks.hacks.launches import (
    GOODPUT,
    STEPS,
    WALLS,
    Answer,
    Tree,
    ceiling,
    check,
    claim,
    edited,
    launch,
    pair,
    preflight,
    shown,
    typed,
    written,
)  # fmt: skip
from benchmarks.hacks.suite import Hack
from benchmarks.hacks.works import THREADS, side

STATED = "measurement.stated"
WORK, PEAK = f"{STATED}.flops_per_token", f"{STATED}.peak_flops_per_second"
SPEED = 2.336  # seconds a step of the clean base
OLD = {"run.started": "2026-11-16T09:00:00+00:00", "run.finished": "2026-11-16T09:04:10+00:00"}


def _stated(**terms: Any) -> Tree:
    """A launch on eight chips that states terms of an MFU, and none itself."""
    return edited(launch("megatron", seconds=SPEED), {f"{STATED}.{name}": value for name, value in terms.items()})


def _claimed(tree: Tree, effect: str) -> Answer:
    """A claim of an MFU over three launches that state the same."""
    terms = {f"{STATED}.{name}": value for name, value in tree["measurement"].get("stated", {}).items()}
    documents = [edited(launch("megatron", number, SPEED), terms | {"run.label": "row"}) for number in (1, 2, 3)]
    return claim(documents, text=f"MFU of {effect}", kind="mfu", candidate=["label=row"], effect=effect)


def _memory(factor: float, chips: int = 8) -> Tree:
    tree = launch("megatron", seconds=SPEED)
    rows = [row for row in tree["memory"]["chips"] if row["chip"] < chips]
    for row in rows:
        for name in ("bytes_used", "peak_bytes", "peak_reserved_bytes"):
            row[name] = int(row[name] * factor)
    tree["memory"]["chips"] = rows
    return tree


_TEMPLATES = [edited(typed(launch(number=number, day=number)), {"run.host": f"bench-{number}"}) for number in range(4)]
_ECHO = [edited(launch(number=number, day=number), drop=("measurement", "memory", "path.witnessed", "evidence"))
         for number in range(3)]  # fmt: skip
_REAL = [launch(number=number, day=number) for number in range(3)]
FULL = {"formula": "6n_active", "flops_per_token": 18.18e9, "peak_flops_per_second": 989e12, "peak_dtype": "bf16"}

HACKS = (
    Hack("evidence", "a receipt that no program wrote", "valid", lambda: check(written(launch(), None)),
         lambda: check(launch())),
    Hack("evidence", "dated before the lane asked for evidence", "valid by the rules of before",
         lambda: check(written(edited(launch(), OLD, drop=("evidence",)), None)), lambda: check(launch())),
    Hack("evidence", "typed, whole, and dated before the lane asked for evidence", "valid by the rules of before",
         lambda: check(written(edited(launch(), OLD), None)), lambda: check(edited(launch(), OLD))),
    Hack("evidence", "evidence whose files nobody listed", "witnessed",
         lambda: check(edited(launch(), {"evidence": []})), lambda: check(launch())),
    Hack("evidence", "a path that the job stated itself", "witnessed",
         lambda: check(edited(launch(), {"evidence": [{"kind": "metrics", "sha256": 64 * "1", "level": "backend"}]})),
         lambda: check(launch())),
    Hack("evidence", "fallbacks taken out of what was witnessed", "on its path",
         lambda: check(edited(launch(), drop=("path.witnessed.attention",))), lambda: check(launch())),
    Hack("evidence", "counters of host transfers taken out", "on its path",
         lambda: check(edited(launch("tpu"), drop=("path.witnessed.host_transfers_per_step",))),
         lambda: check(launch("tpu"))),
    Hack("evidence", "recompiles counted as none, steps of compiles flagged", "no recompile",
         lambda: check(edited(launch(), {"measurement.step_flags.recompile": [40, 80, 120]})),
         lambda: check(launch())),
    Hack("evidence", "projected numbers called measured, from a template", "a measured row",
         lambda: check(written(typed(launch()), None)), lambda: check(launch())),
    Hack("arithmetic", "FLOPs a token typed, no MFU stated", "MFU of 68.1 %",
         lambda: shown(_stated(**FULL | {"flops_per_token": 48.0e9}), "mfu"), lambda: shown(_stated(**FULL), "mfu")),
    Hack("arithmetic", "a peak typed, no MFU stated", "MFU of 68.1 %",
         lambda: shown(_stated(**FULL | {"peak_flops_per_second": 375e12}), "mfu"),
         lambda: shown(_stated(**FULL), "mfu")),
    Hack("arithmetic", "the sparse peak typed, no MFU stated", "MFU of 12.9 % as a baseline",
         lambda: shown(_stated(**FULL | {"peak_flops_per_second": 1979e12, "peak_sparse": True}), "mfu"),
         lambda: shown(_stated(**FULL), "mfu")),
    Hack("arithmetic", "FLOPs a token typed without a formula", "MFU of 68.1 %",
         lambda: shown(_stated(flops_per_token=48.0e9), "mfu"), lambda: shown(_stated(**FULL), "mfu")),
    Hack("arithmetic", "FLOPs a token by a formula of one's own", "MFU of 35.4 %",
         lambda: shown(_stated(flops_per_token=25.0e9, formula="ours"), "mfu", 0.354),
         lambda: shown(_stated(flops_per_token=18.18e9), "mfu")),
    Hack("arithmetic", "the peak of a slower type", "MFU of 51.5 %",
         lambda: shown(_stated(**FULL | {"peak_flops_per_second": 494.5e12, "peak_dtype": "tf32"}), "mfu"),
         lambda: shown(_stated(**FULL | {"peak_flops_per_second": 989.4e12}), "mfu")),
    Hack("arithmetic", "a claim on typed FLOPs a token", "a claim of 68 % is supported",
         lambda: _claimed(_stated(flops_per_token=48.0e9, peak_flops_per_second=989e12, peak_dtype="bf16"),
                          "at least 60 %"),
         lambda: _claimed(_stated(**FULL), "at least 25 %")),
    Hack("arithmetic", "chips left out of the count", "twice the tokens/s of a chip",
         lambda: check(edited(launch("megatron", seconds=SPEED), {"hardware.chips": 4})),
         lambda: check(launch("megatron", seconds=SPEED))),
    Hack("arithmetic", "the framework's rate typed beside the steps", "15 % more than the steps make",
         lambda: check(edited(launch(), {f"{STATED}.tokens_per_second": 5900.0})),
         lambda: check(edited(launch(), {f"{STATED}.tokens_per_second": 5119.3}))),
    Hack("arithmetic", "steps of a microsecond, units misread", "10^13 tokens/s",
         lambda: check(edited(launch(), {STEPS: [1e-7] * 300}, drop=(WALLS, GOODPUT))), lambda: check(launch())),
    Hack("memory", "four templates filled in, without a step", "validated ceiling: 4 launches",
         lambda: ceiling(written(item, None) for item in _TEMPLATES), lambda: ceiling(_REAL)),
    Hack("memory", "a job that says ok and made no step", "validated ceiling",
         lambda: ceiling(_ECHO), lambda: ceiling(_REAL)),
    Hack("memory", "a plan known to work by a template", "known to work",
         lambda: preflight([written(item, None) for item in _TEMPLATES], launch()),
         lambda: preflight(_REAL, launch())),
    Hack("memory", "a claim of a ceiling on templates", "supported",
         lambda: claim([written(edited(item, {"run.label": "row"}), None) for item in _TEMPLATES], text="It fits",
                       kind="ceiling", candidate=["label=row"]),
         lambda: claim([edited(item, {"run.label": "row"}) for item in _REAL], text="It fits", kind="ceiling",
                       candidate=["label=row"])),
    Hack("memory", "the fullest chip left out", "peak of 118 GB",
         lambda: check(_memory(1.0, 7)), lambda: check(_memory(1.0))),
    Hack("memory", "a peak that does not hold the weights", "peak of 0.9 GiB a chip",
         lambda: check(_memory(0.008)), lambda: check(_memory(0.98))),
    Hack("memory", "less memory than was used is called the peak", "B holds 40 % less",
         lambda: pair(side("a"), [edited(item, {"memory.chips": lambda rows: [
             row | {"peak_bytes": row["bytes_used"] // 2} for row in rows]}) for item in side("b", 0.8, THREADS)],
             "peak_bytes"),
         lambda: pair(side("a"), side("b", 0.8, THREADS), "peak_bytes")),
)  # fmt: skip
