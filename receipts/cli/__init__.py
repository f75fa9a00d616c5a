"""The command line: arguments in, exit code out.

A command is a module of this package, imported only when it is called; `COMMANDS` lists them with one line each, so
that ``--help`` imports none. ``--version`` is answered before anything is parsed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

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
        if not (told := lacking(missing)):
            raise
        sys.stderr.write(told)
        return 2
    return run(words) if arguments is not None else _as_program(run, words)


def lacking(missing: ModuleNotFoundError) -> str:
    """Which library is not installed: where a job runs, the recorder may be all that is. Empty for a module of ours."""
    name = (missing.name or "").partition(".")[0]
    if name in ("", "receipts"):
        return ""
    return f"receipts: {name} is not installed, and the commands need it: pip install frontier-receipts\n"


def _as_program(run: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    """Run as the process's only work: what it imports lives as long as it does, so the collector need not look.

    That is a quarter of a command's time. Long work is still collected, at half a million objects.
    """
    import gc

    gc.set_threshold(500_000)
    _without_plugins()
    _on_demand("importlib.metadata")
    _on_demand("asyncio", "iscoroutine")
    try:
        return run(words)
    finally:
        gc.freeze()


def _without_plugins() -> None:
    """No plugin of pydantic: what a receipt may say is for this program alone to decide.

    The variable is pydantic's own switch. To learn that it is set, pydantic would load a module that loads
    `importlib.metadata`, a twentieth of a comparison's time; where that module has another name this changes nothing.
    """
    import os
    from types import ModuleType

    class Nothing(ModuleType):
        get_plugins = tuple

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if os.environ["PYDANTIC_DISABLE_PLUGINS"] == "__all__":
        nothing = Nothing("pydantic.plugin._loader")
        sys.modules.setdefault(nothing.__name__, nothing)


def _on_demand(name: str, *functions: str) -> None:
    """Let a module that libraries import and hardly ever use be loaded when something is first asked of it.

    SQLAlchemy imports `importlib.metadata` for plugins and `asyncio` for engines that no store here has: with what
    these load in turn, a twentieth of a comparison's time. ``functions`` are those that a library takes hold of while
    it is imported: each loads the module when it is first called.
    """
    from importlib import import_module
    from types import ModuleType
    from typing import Any

    class Waiting(ModuleType):
        def __getattr__(self, what: str) -> Any:
            if what in functions and sys.modules.get(name) is self:
                return lambda *given: self._real(what)(*given)
            return self._real(what)

        def _real(self, what: str) -> Any:
            if sys.modules.get(name) is self:
                del sys.modules[name]
            return getattr(import_module(name), what)

    sys.modules.setdefault(name, Waiting(name))
