"""A short use of the kernel, as a program: ``python kernel_smoke.py EXAMPLES`` in an empty folder prints JSON.

It imports every module of the kernel, asks every command for its help, and submits, compares, lists, reports and
ingests. It imports no module of a ring by name, so it runs where some or all of them were deleted.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

RINGS = ("receipts.plugins", "receipts.readers", "receipts.emit")
MAP = '[[files]]\nname = "steps.csv"\n[files.steps]\nstep = "step"\nstep_seconds = "seconds"\nloss = "loss"\n'


def kernel_modules() -> list[str]:
    """Every module of the kernel that is no program, imported now."""
    import receipts

    names = [item.name for item in pkgutil.walk_packages(receipts.__path__, "receipts.", onerror=_fail)]
    kernel = [name for name in names if not name.startswith(RINGS) and name != "receipts.__main__"]
    for name in kernel:
        importlib.import_module(name)
    return kernel


def _fail(name: str) -> None:
    raise ImportError(f"{name} cannot be imported")


def call(*words: str) -> tuple[int, str, str]:
    """The exit code, and what a command writes."""
    from receipts.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--store", "store.sqlite", *words])
    return code, out.getvalue(), err.getvalue()


def used(examples: Path) -> dict[str, Any]:
    """What the commands of every day answer."""
    a, b = ([str(examples / f"attention-{name}-{number}.json") for number in (1, 2, 3)] for name in ("math", "flash"))
    Path("steps.csv").write_text("step,seconds,loss\n" + "".join(f"{n},0.5,{9 - n / 10}\n" for n in range(1, 31)))
    Path("steps.toml").write_text(MAP)
    started = "run.started=2026-03-02T09:00:00Z"
    return {
        "submit": call("submit", *a, *b),
        "compare": call("compare", a[0], b[0]),
        "list": call("list", "--json"),
        "report": call("report", "weekly", "--week", "2026-W47", "--out", "report"),
        "ingest": call("ingest", "steps.csv", "--map", "steps.toml", "--set", started, "-o", "run.json"),
    }


def main() -> None:
    """Use the kernel, and print what it answered."""
    modules = kernel_modules()
    from receipts.cli.group import commands

    helps = {name: call(name, "--help") for name in commands()}
    answers = used(Path(sys.argv[1]))
    loaded = sorted(name for name in sys.modules if name.startswith(RINGS))
    print(json.dumps({"modules": modules, "helps": helps, "answers": answers, "loaded": loaded}))


if __name__ == "__main__":
    main()
