"""The estimate of `receipts fit` against the TPU compiler, on more than forty shapes for v6e.

    python benchmarks/fit_compiler.py [--compile [--whole]] [--only NAME] [--json]

``--compile`` compiles what ``benchmarks/fit_compiler.json`` does not hold yet (jax and libtpu are needed, no TPU) and
writes each answer there at once, so a run that is cut off goes on where it stopped. Without it the answers on record
are compared with what the estimator says today.

The compiler assigns every buffer of HBM, and refuses what does not fit, before it makes machine code, which is nine
tenths of its time. So a compile is stopped when it has dumped its assignment, and its bytes are those of the default
memory space (arguments and temporaries, shared space counted once). ``--whole`` compiles to the end and records the
peak that ``memory_analysis`` gives too: `whole` beside `assigned` shows how near the two are.

Two bars: within 15 % of the compiler's bytes for 90 % of the shapes that it took, and the answer *fits* right for 95 %
of all. The bytes of a refused shape are those that the refusal names, as the product's reader reads them. A record of
another decoder than today's is told apart by its digest and left out.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Last, and never first: statistics.py lies here as well.
sys.path[:] = [
    str(HERE.parent), *(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)
]  # fmt: skip

from fit_shapes import shapes

from receipts.judging.rulebook import Rulebook
from receipts.questions.fit import estimate, setup_of
from receipts.questions.plan import plan_of
from receipts.readers.oom.xla import failures

RECORD = HERE / "fit_compiler.json"
GIB = 2**30
CERTAIN = 28 * GIB  # of 31.25: below it no later pass refuses
NEAR, NEAR_SHARE, RIGHT_SHARE = 0.15, 0.90, 0.95
# The sources that decide what is compiled: a change there makes what was compiled before another program.
SOURCES = ("blocks.py", "mixers.py", "parameters.py", "step.py")
# Shapes with the blocks of NAM56R, by the beginning of their names.
HYBRID_BLOCKS = ("nam-", "sparse-", "latent-", "mimo-", "matrix-rnn-", "hybrid-", "recurrent-")


def decoder_digest() -> str:
    """SHA-256 over the decoder's code, without imports and docstrings: where a module stands changes no program."""
    folder = HERE.parent / "receipts" / "plugins" / "aot"
    return hashlib.sha256("".join(_code(folder / name) for name in SOURCES).encode()).hexdigest()


def _code(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            code = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            body = [item for item in code if not isinstance(item, ast.Import | ast.ImportFrom)]
            node.body = body or [ast.Pass()]
    return ast.unparse(tree)


def plan_digest(tree: dict[str, Any]) -> str:
    """SHA-256 of a plan."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def load() -> dict[str, Any]:
    """The answers on record, by the shape's name."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def compile_one(name: str) -> None:
    """Compile one shape in this process and print the answer as JSON."""
    from receipts.plugins.aot.compiler import compile_step

    parsed = plan_of(_shape(name), name)
    setup = setup_of(parsed, Rulebook(()).lanes.of("tpu-maxtext"))
    assert setup is not None, "a shape states everything"
    outcome = compile_step(setup)
    print("\n" + json.dumps({key: getattr(outcome, key) for key in outcome.__slots__} | {"total": outcome.total}))


def _shape(name: str) -> dict[str, Any]:
    return next(item for item in shapes() if item["run"]["label"] == name)


def compile_all(only: str | None, *, whole: bool) -> None:
    """Compile what is not on record, each shape in a process of its own."""
    for tree in shapes():
        name = tree["run"]["label"]
        known = load().get(name, {})
        same = (known.get("plan"), known.get("decoder")) == (plan_digest(tree), decoder_digest())
        if (only is not None and name != only) or (same and not whole):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            answer = _answer(name, Path(folder), whole=whole)
        if answer is None:
            continue
        answer |= {"plan": plan_digest(tree), "decoder": decoder_digest()}
        kept = known if same and whole else {}
        # Read again: another process may have written meanwhile.
        record = load() | {name: kept | answer}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)


def _answer(name: str, dumps: Path, *, whole: bool) -> dict[str, Any] | None:
    """What the compiler says of a shape; None, with a word on standard error, where it broke."""
    flags = f"--xla_dump_to={dumps} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re="
    done = subprocess.Popen(
        [sys.executable, __file__, "--one", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    while done.poll() is None:
        time.sleep(1)
        assigned = _assigned(dumps)
        # One that is near the limit may still be refused: it is waited for.
        if assigned is not None and assigned < CERTAIN and not whole:
            done.kill()
            done.communicate()
            return {"assigned": assigned, "fits": True, "message": "", "versions": _versions()}
    out, error = done.communicate()
    if done.returncode:
        print(f"{name}: the compile ended with {done.returncode}: {error.strip()[-1500:]}", file=sys.stderr)
        return None
    outcome = json.loads(out.strip().splitlines()[-1])
    fits = outcome["total"] is not None
    kept = {"fits": fits, "message": outcome["message"][:1000], "versions": outcome["versions"]}
    if fits:
        kept |= {"assigned": _assigned(dumps), "whole": outcome["peak"], "code": outcome["code"]}
    return kept


def _assigned(dumps: Path) -> int | None:
    """Bytes of the default memory space in the largest program that was dumped; None before its assignment stands."""
    sizes = [
        int(match[1])
        for path in dumps.glob("*memory-usage-report.txt")
        if (match := re.search(r"Memory Space: default.*\nTotal bytes: (\d+)", path.read_text(encoding="utf-8")))
    ]
    return max(sizes, default=None)


def _versions() -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "libtpu"))


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
        total = known["assigned"] if known["fits"] else _named(known["message"])
        rows.append(
            {
                "name": name,
                "estimated": made.total_bytes,
                "compiled": total,
                "error": made.total_bytes / total - 1 if total else None,
                "estimate_fits": (made.headroom_bytes or 0.0) >= 0,
                "compiler_fits": known["fits"],
                "whole": known.get("whole"),
                "moment": made.moment,
                "message": known["message"][:300],
                "versions": known["versions"],
            }
        )
    return rows


def _named(message: str) -> int | None:
    """The need that a refusal names, as the product reads it; it is the whole of it, whatever the text calls it."""
    errors = failures(" ".join(message.split()))
    return errors[0].used_bytes if errors else None


def main() -> int:
    """Compile, compare, print; 0 where both bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.one:
        compile_one(options.one)
        return 0
    if options.compile:
        compile_all(options.only, whole=options.whole)
    rows = compare()
    sized = [row for row in rows if row["error"] is not None]
    near = sum(abs(row["error"]) <= NEAR for row in sized)
    right = sum(row["estimate_fits"] == row["compiler_fits"] for row in rows)
    told = {
        "shapes": len(rows),
        "of": sum(1 for _ in shapes()),
        "with_bytes": len(sized),
        "within_15": near,
        "right": right,
        "rows": rows,
    }
    if options.json:
        print(json.dumps(told, indent=1))
    else:
        for row in rows:
            error = f"{row['error']:+.1%}" if row["error"] is not None else "-"
            refused = "" if row["compiler_fits"] else "  refused"
            size = f"{row['compiled'] / GIB:8.2f}" if row["compiled"] else "       -"
            mark = "" if row["estimate_fits"] == row["compiler_fits"] else "  WRONG: the estimate says otherwise"
            print(f"{row['name']:28} {row['estimated'] / GIB:8.2f} {size} {error:>8} {row['moment']:9}{refused}{mark}")
        print(f"{len(rows)} of {told['of']} shapes on record")
        print(f"within 15 %: {near} of {len(sized)}; fits right: {right} of {len(rows)}")
    whole = len(rows) >= 40
    return 0 if whole and near >= NEAR_SHARE * len(sized) and right >= RIGHT_SHARE * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
