"""The estimate of `receipts fit` against the peaks that a lab measured, and NAM56R's blocks against two oracles.

    python benchmarks/fit_agreement.py [--cases DIR] [--mapping FILE] [--json]

The oracles are what autograd saves in plain torch modules (`fit_autograd`) and what the TPU compiler assigns
(`fit_compiler`, the shapes with sparse or latent attention, Mamba-3 or M2RNN), both on record. DIR holds
``runs.json``; the runs are imported by the mapping, as ``receipts import notebook`` does. A run *states enough* when
all of these hold, and no run is named anywhere:

- it is a training run that ended well and was measured, with a live peak of one accelerator;
- the estimator lacks nothing (its list of missing paths is empty);
- the blocks are stated: a pattern, or a family;
- every block has a formula: its list of uncounted parts is empty;
- stated are the paths of `DECISIVE`: nothing is assumed of what multiplies the large surfaces.

What frameworks decide by a default of their own (recompute, optimizer, state sharding, types of states) may be assumed;
how many values were is printed beside each run. Errors are live bytes estimated over measured, less one. Calibrated is
the same with the factor of the *other* configurations of the lane. Bars: 10 % without calibration, 5 % with it, for
every run that states enough. Bars of the oracles: each block within 1 % of autograd; 90 % of the shapes that the
compiler took within 15 % of its bytes, and the answer *fits* right for all. Exit 0 when all hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Last, and never first: statistics.py lies here as well.
sys.path[:] = [*(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)]

import fit_autograd
import fit_compiler

from receipts.judging.rulebook import Rulebook
from receipts.plugins.exchange.notebook import import_file
from receipts.questions.fit import MemoryEstimate, calibrate, estimate, point_of
from receipts.receipt import Parsed

ROOT = HERE.parent
GIB = 2**30
PLAIN, CALIBRATED = 0.10, 0.05
DECISIVE = (
    "model.depth", "model.hidden", "model.vocabulary", "model.kv_heads", "parallelism.tensor", "batch.micro_batch",
    "batch.sequence_length", "numerics.compute_dtype", "hardware.chips",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A lab run with a peak: its estimate, the measured bytes, and why it does not state enough, if so."""

    id: str
    name: str
    parsed: Parsed
    made: MemoryEstimate
    measured: int
    why_not: str

    @property
    def error(self) -> float:
        """Estimated live bytes over measured, less one."""
        return (self.made.live_bytes or 0.0) / self.measured - 1


def runs(cases: Path, mapping: Path) -> Iterator[Run]:
    """Every training run with a live peak of one accelerator."""
    lanes = Rulebook(()).lanes
    for made in import_file(cases / "runs.json", mapping).receipts:
        parsed = made.parsed
        measured = peak(parsed)
        if parsed.receipt.run.kind != "training" or measured is None:
            continue
        estimated = estimate(parsed, lanes.of(parsed.receipt.run.lane))
        name = parsed.receipt.run.label or parsed.receipt.run.launch
        yield Run(parsed.receipt.run.launch, name[:44], parsed, estimated, measured, why_not(parsed, estimated))


def peak(parsed: Parsed) -> int | None:
    """The live peak of the fullest accelerator; a figure "per GPU" is one as the notebook states it."""
    memory = parsed.receipt.memory
    rows = [row.peak_bytes for row in (memory.chips if memory else None) or () if row.peak_bytes is not None]
    if rows:
        return int(max(rows))
    one = memory.aggregate if memory else None
    return int(one.bytes) if one is not None and one.kind == "live" and one.over in ("unstated", "max") else None


def why_not(parsed: Parsed, made: MemoryEstimate) -> str:
    """The first condition that a run fails; empty where it states enough."""
    stated = parsed.stated
    if parsed.receipt.run.outcome != "ok":
        return f"ended as {parsed.receipt.run.outcome}: its peak is where it stopped"
    if parsed.receipt.run.provenance != "measured":
        return f"{parsed.receipt.run.provenance}, not measured"
    if made.missing:
        return f"does not state {', '.join(made.missing)}"
    if "model.pattern" not in stated and "model.family" not in stated:
        return "does not state its blocks"
    lacking = [path for path in DECISIVE if path not in stated]
    if lacking:
        return f"does not state {', '.join(lacking)}"
    return made.uncounted[0] if made.uncounted else ""


def calibrated(enough: list[Run]) -> dict[str, float]:
    """The error of each run with the factor of the lane's other configurations; runs without three others are out."""
    estimated = {}
    points = {run.id: point_of(run.parsed, run.made, run.measured) for run in enough}
    for run in enough:
        others = [
            points[other.id]
            for other in enough
            if other.made.lane == run.made.lane and points[other.id].group != points[run.id].group
        ]
        factor = calibrate(others)
        if factor is not None:
            estimated[run.id] = (1 + run.error) * factor.factor - 1
    return estimated


def oracles() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """NAM56R's blocks beside what autograd saves, and the compiled shapes that have one of them."""
    compiled = [row for row in fit_compiler.compare() if row["name"].startswith(fit_compiler.HYBRID_BLOCKS)]
    return list(fit_autograd.compare()), compiled


def oracles_hold(saved: list[dict[str, Any]], compiled: list[dict[str, Any]]) -> bool:
    """Whether both oracles are as near as their bars."""
    sized = [row for row in compiled if row["compiler_fits"]]
    near = sum(abs(row["error"]) <= fit_compiler.NEAR for row in sized)
    return (
        all(abs(row["error"]) <= fit_autograd.NEAR and not row["uncounted"] for row in saved)
        and near >= fit_compiler.NEAR_SHARE * len(sized) > 0
        and all(row["estimate_fits"] == row["compiler_fits"] for row in compiled)
    )


def main() -> int:
    """Estimate, compare, print; 0 where every bar holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--mapping", type=Path, default=ROOT / "examples" / "lab" / "mapping.toml")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    saved, compiled = oracles()
    asked = options.cases is not None
    every = list(runs(options.cases, options.mapping)) if asked else []
    enough = [run for run in every if not run.why_not]
    left_out = calibrated(enough)
    plain_holds = bool(enough) >= asked and all(abs(run.error) <= PLAIN for run in enough)
    calibrated_holds = bool(left_out) >= asked and all(abs(error) <= CALIBRATED for error in left_out.values())
    rows = [
        {
            "launch": run.id,
            "run": run.name,
            "measured": run.measured,
            "estimated": run.made.live_bytes,
            "error": run.error if run.made.live_bytes is not None else None,
            "calibrated_error": left_out.get(run.id),
            "assumed": len(run.made.assumed),
            "why_not": run.why_not,
        }
        for run in every
    ]
    if options.json:
        told = {"runs": rows, "plain": plain_holds, "calibrated": calibrated_holds}
        print(json.dumps({**told, "autograd": saved, "compiler": compiled}, indent=1))
    else:
        if asked:
            _print(every, enough, left_out)
        _print_oracles(saved, compiled)
    return 0 if plain_holds and calibrated_holds and oracles_hold(saved, compiled) else 1


def _print_oracles(saved: list[dict[str, Any]], compiled: list[dict[str, Any]]) -> None:
    worst = max(abs(row["error"]) for row in saved)
    near = sum(abs(row["error"]) <= fit_autograd.NEAR for row in saved)
    print(f"what autograd saves of a block: {near} of {len(saved)} within 1 %, the worst {worst:.2%} off")
    for row in compiled:
        size = f"{row['compiled'] / GIB:9.2f}" if row["compiled"] else "        -"
        error = f"{row['error']:+7.1%}" if row["error"] is not None else "      -"
        refused = "" if row["compiler_fits"] else "  refused"
        print(f"{row['name']:44} {size} {row['estimated'] / GIB:9.2f} {error}{refused}")
    sized = [row for row in compiled if row["compiler_fits"]]
    near = sum(abs(row["error"]) <= fit_compiler.NEAR for row in sized)
    right = sum(row["estimate_fits"] == row["compiler_fits"] for row in compiled)
    print(f"the compiler's bytes: {near} of {len(sized)} within 15 %; fits right: {right} of {len(compiled)}")


def _print(every: list[Run], enough: list[Run], left_out: dict[str, float]) -> None:
    print(f"{len(every)} training runs with a live peak; {len(enough)} state enough")
    print(f"{'run':44} {'measured':>9} {'estimated':>9} {'error':>7} {'left out':>8}  assumed")
    for run in every:
        if run.made.live_bytes is None:
            continue
        other = f"{left_out[run.id]:+8.1%}" if run.id in left_out else "       -"
        beside = f"  ({run.why_not})" if run.why_not else ""
        print(f"{run.name:44} {run.measured / GIB:9.2f} {run.made.live_bytes / GIB:9.2f} {run.error:+7.1%} {other}  "
              f"{len(run.made.assumed)}{beside}")  # fmt: skip
    print("too little to estimate at all:")
    for why, count in Counter(run.why_not for run in every if run.made.live_bytes is None).most_common():
        print(f"  {count:4}  {why}")
    near = sum(abs(run.error) <= PLAIN for run in enough)
    fine = sum(abs(error) <= CALIBRATED for error in left_out.values())
    print(f"within 10 %, not calibrated: {near} of {len(enough)}; within 5 %, left out: {fine} of {len(left_out)}")


if __name__ == "__main__":
    sys.exit(main())
