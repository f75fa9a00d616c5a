"""The estimate of `receipts fit` against the TPU compiler, on more than forty shapes for v6e.

    python benchmarks/fit_compiler.py [--compile] [--only NAME] [--json]

``--compile`` compiles what ``benchmarks/fit_compiler.json`` does not hold yet (jax and libtpu are needed, no TPU; a
compile takes 10 to 200 seconds of two cores) and writes each answer there at once, so a run that is cut off goes on
where it stopped. Without it the answers on record are compared with what the estimator says today.

Two bars: within 15 % of the compiler's bytes for 90 % of the shapes that compiled, and the answer *fits* right for
95 % of all. A refused shape has no bytes to compare: the compiler names one part of what it needed. A record of another
decoder than today's is told apart by its digest and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Last, and never first: statistics.py lies here as well.
sys.path[:] = [
    str(HERE.parent), *(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)
]  # fmt: skip

from fit_shapes import shapes

from receipts.fit import estimate, setup_of
from receipts.plan import plan_of
from receipts.rulebook import Rulebook

RECORD = HERE / "fit_compiler.json"
GIB = 2**30
NEAR, NEAR_SHARE, RIGHT_SHARE = 0.15, 0.90, 0.95
# The sources that decide what is compiled: a change there makes what was compiled before another program.
SOURCES = ("blocks.py", "parameters.py", "step.py")


def decoder_digest() -> str:
    """SHA-256 over the decoder's sources."""
    folder = HERE.parent / "receipts" / "memory" / "aot"
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()


def plan_digest(tree: dict[str, Any]) -> str:
    """SHA-256 of a plan."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def load() -> dict[str, Any]:
    """The answers on record, by the shape's name."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def compile_one(name: str) -> None:
    """Compile one shape in this process and print the answer as JSON."""
    from receipts.memory.aot import compile_step

    tree = next(item for item in shapes() if item["run"]["label"] == name)
    parsed = plan_of(tree, name)
    setup = setup_of(parsed, Rulebook(()).lanes.of("tpu-maxtext"))
    assert setup is not None, "a shape states everything"
    found = compile_step(setup)
    answer = {key: getattr(found, key) for key in found.__slots__} | {"total": found.total}
    print("\n" + json.dumps(answer | {"plan": plan_digest(tree), "decoder": decoder_digest()}))


def compile_all(only: str | None) -> None:
    """Compile what is not on record, each shape in a process of its own."""
    for tree in shapes():
        name = tree["run"]["label"]
        known = load().get(name, {})
        same = (known.get("plan"), known.get("decoder")) == (plan_digest(tree), decoder_digest())
        if (only is not None and name != only) or (same and only is None):
            continue
        done = subprocess.run(
            [sys.executable, __file__, "--one", name], capture_output=True, text=True, check=False, timeout=1800
        )
        if done.returncode:
            print(f"{name}: the compile ended with {done.returncode}: {done.stderr.strip()[-2000:]}", file=sys.stderr)
            continue
        # Read again: another process may have written meanwhile.
        record = load() | {name: json.loads(done.stdout.strip().splitlines()[-1])}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{name}: {record[name]['seconds']:.0f} s", file=sys.stderr)


def compare() -> list[dict[str, Any]]:
    """Each shape on record with today's estimate."""
    lane = Rulebook(()).lanes.of("tpu-maxtext")
    record, rows = load(), []
    for tree in shapes():
        name = tree["run"]["label"]
        known = record.get(name)
        if not known or (known["plan"], known["decoder"]) != (plan_digest(tree), decoder_digest()):
            continue
        made = estimate(plan_of(tree, name), lane)
        total = known["total"]
        rows.append(
            {
                "name": name,
                "estimated": made.total_bytes,
                "compiled": total,
                "error": made.total_bytes / total - 1 if total else None,
                "estimate_fits": made.fits,
                "compiler_fits": total is not None,
                "moment": made.moment,
                "message": known["message"][:300],
                "versions": known["versions"],
            }
        )
    return rows


def main() -> int:
    """Compile, compare, print; 0 where both bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.one:
        compile_one(asked.one)
        return 0
    if asked.compile:
        compile_all(asked.only)
    rows = compare()
    sized = [row for row in rows if row["error"] is not None]
    near = sum(abs(row["error"]) <= NEAR for row in sized)
    right = sum(row["estimate_fits"] == row["compiler_fits"] for row in rows)
    told = {
        "shapes": len(rows), "of": sum(1 for _ in shapes()), "compiled": len(sized), "within_15": near, "right": right,
        "rows": rows,
    }  # fmt: skip
    if asked.json:
        print(json.dumps(told, indent=1))
    else:
        for row in rows:
            error = f"{row['error']:+.1%}" if row["error"] is not None else "refused"
            size = f"{row['compiled'] / GIB:8.2f}" if row["compiled"] else "       -"
            mark = "" if row["estimate_fits"] == row["compiler_fits"] else "  WRONG: the estimate says otherwise"
            print(f"{row['name']:28} {row['estimated'] / GIB:8.2f} {size} {error:>8} {row['moment']:9}{mark}")
        print(f"{len(rows)} of {told['of']} shapes on record")
        print(f"within 15 %: {near} of {len(sized)}; fits right: {right} of {len(rows)}")
    whole = len(rows) >= 40
    return 0 if whole and near >= NEAR_SHARE * len(sized) and right >= RIGHT_SHARE * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
