"""The command line: arguments in, exit code out.

The module of a command is imported only when it is called; `group` lists the commands with one line each, so that
``--help`` imports none. ``--version`` is answered before anything is parsed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from receipts import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code. 0 holds · 1 does not · 2 wrong input · 3 not enough to say · 4 failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        sys.stdout.write(f"receipts {__version__}\n")
        return 0
    try:
        from receipts.cli.group import run
    except ModuleNotFoundError as missing:
        if not (explanation := lacking(missing)):
            raise
        sys.stderr.write(explanation)
        return 2
    if arguments is not None:
        return run(words)
    # As the process's only work what it imports lives as long as it does, so the collector need not look: that is a
    # quarter of a command's time. Long work is still collected, at half a million objects.
    gc.set_threshold(500_000)
    # What a receipt may say is for this program alone to decide, not for a plugin that happens to be installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        return run(words)
    finally:
        gc.freeze()


def lacking(missing: ModuleNotFoundError) -> str:
    """Which library is not installed: where a job runs, the recorder may be all that is. Empty for a module of ours."""
    name = (missing.name or "").partition(".")[0]
    if name in ("", "receipts"):
        return ""
    return f"receipts: {name} is not installed, and the commands need it: pip install frontier-receipts\n"
