"""A short use of the kernel, as a program: ``python kernel_smoke.py EXAMPLES``.

Each line that it reads is a JSON list: an empty folder, and commands that a deleted ring had. For each it forks a
process that imports every module of the kernel, asks every command for its help, submits, compares, lists, reports and
ingests, and writes ``smoke.json`` into the folder; then it prints the exit code. It imports no module of a ring by
name, so it runs where some or all of them were deleted, and none of the engine before a fork: what is in the checkout
then is what is used.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any

LIBRARIES = (
    "alembic.command",
    "click",
    "jinja2",
    "markdown_it",
    "numpy",
    "pandas",
    "pydantic",
    "re2",
    "sqlalchemy.orm",
)
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


def use(examples: Path, folder: Path, lost: list[str]) -> None:
    """Use the kernel in the folder, and write what it answered."""
    os.chdir(folder)
    modules = kernel_modules()
    from receipts.cli.group import commands

    helps = {name: call(name, "--help") for name in commands()}
    answers = {
        "modules": modules,
        "helps": helps,
        "lost": {name: call(name) for name in lost},
        "answers": used(examples),
    }
    loaded = sorted(name for name in sys.modules if name.startswith(RINGS))
    (folder / "smoke.json").write_text(json.dumps(answers | {"loaded": loaded}))


def main() -> None:
    """Answer each line in a process of its own."""
    # What takes long to import and is no part of the checkout is imported once.
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        folder, lost = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                use(Path(sys.argv[1]), Path(folder), lost)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
