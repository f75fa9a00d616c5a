"""Run every benchmark: `python -m benchmarks [--quick]`, or some: `python -m benchmarks cli_start report [--write]`.

A benchmark is a module of this folder with ``measure(quick) -> list[Result]``. Writes ``benchmarks/results.json`` and
``docs/reference/benchmarks.md``. Of some alone the rows are written with ``--write``, and the others' stay; with
``--quick``, whose figures are rough, nothing is written. Exit 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.result import ROW, Result, row

RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"


def modules(only: Sequence[str] = ()) -> Iterator[tuple[str, ModuleType]]:
    """Every benchmark by name, or those that are named."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        # A module that does not measure is a part of one that does; the text tells without running it.
        if path.stem.startswith("_") or "\ndef measure(quick" not in path.read_text(encoding="utf-8"):
            continue
        if not only or path.stem in only:
            yield path.stem, importlib.import_module(f"benchmarks.{path.stem}")


def page(measured: Mapping[str, Sequence[Result]]) -> str:
    """The table for the documentation."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. A ratio is to a floor that was measured in the same run, in turns with the figure.",
        "",
        f"| {' | '.join(ROW)} |",
        "| --- | ---: | --- | ---: | ---: | --- |",
    ]
    lines += [f"| {' | '.join(row(item))} |" for results in measured.values() for item in results]
    return "\n".join(lines) + "\n"


def earlier() -> dict[str, list[Result]]:
    """What ``benchmarks/results.json`` holds of the benchmarks that there are."""
    told = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    names = {item.name for item in fields(Result)}
    return {
        name: [Result(**{key: value for key, value in item.items() if key in names}) for item in told.get(name, ())]
        for name, _ in modules()
    }


def write(measured: Mapping[str, Sequence[Result]]) -> None:
    """The figures as data, and as the page of the documentation."""
    data = {
        "python": platform.python_version(),
        "results": {name: [item.as_data() for item in results] for name, results in measured.items()},
    }
    RESULTS.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page(measured), encoding="utf-8")


def main() -> int:
    """Run, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="BENCHMARK", help="run these alone")
    parser.add_argument("--write", action="store_true", help="write the rows of those that are named, too")
    parser.add_argument("--quick", action="store_true", help="few rounds, and write nothing")
    options = parser.parse_args()
    measured: dict[str, list[Result]] = {}
    for name, module in modules(options.only):
        sys.stderr.write(f"{name}…\n")
        measured[name] = module.measure(options.quick)
        for item in measured[name]:
            print("  ".join(cell for cell in row(item) if cell))
    if missing := sorted(set(options.only) - set(measured)):
        sys.stderr.write(
            f"there is no benchmark {', '.join(missing)}; there are {', '.join(n for n, _ in modules())}\n"
        )
        return 2
    if not options.quick and (options.write or not options.only):
        write({**earlier(), **measured} if options.only else measured)
    return int(not all(item.holds for results in measured.values() for item in results))


if __name__ == "__main__":
    raise SystemExit(main())
