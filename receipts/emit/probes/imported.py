"""What is imported already, looked at without importing any more: modules, their attributes, and the files behind them.

Frameworks import parts of themselves when an attribute is asked for (`torch._dynamo`, all of `transformers`), so
modules are looked up in `sys.modules` by their whole names, and attributes of a module in its own dictionary. Of the
files, some are the standard library's, some a wheel's, and the rest the project's own.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from receipts.emit.probing import ProbeOutput


def module(name: str) -> Any:
    """An imported module, or None; also None while it is still being imported."""
    imported = sys.modules.get(name)
    spec = getattr(imported, "__spec__", None)
    return None if imported is None or getattr(spec, "_initializing", False) else imported


def part(of: str, name: str) -> Any:
    """An attribute that an imported module has by now; None where it, or the module, is not there."""
    imported = module(of)
    return None if imported is None else vars(imported).get(name)


def any_of(names: Iterable[str]) -> bool:
    """Whether one of some modules is imported, or on its way in."""
    return any(name in sys.modules for name in names)


def read_each(stated: ProbeOutput, *readings: Callable[[ProbeOutput], None]) -> None:
    """Call readings one by one, so that one that fails takes no other with it."""
    for reading in readings:
        try:
            reading(stated)
        except Exception as error:
            name = getattr(reading, "__name__", "reading").strip("_").replace("_", " ")
            stated.note(f"{name} could not be read: {type(error).__name__}: {str(error)[:300]}")


def read_value(stated: ProbeOutput, what: str, call: Callable[[], Any]) -> Any:
    """One value; None, and a note, where it cannot be read."""
    try:
        return call()
    except Exception as error:
        stated.note(f"{what} could not be read: {type(error).__name__}: {str(error)[:300]}")
        return None


_INSTALLED = ("site-packages", "dist-packages")
# Modules that a compiler writes while the job runs: they follow from the rest, and hold names of the machine.
_GENERATED = ("torch._inductor.runtime.compile_tasks", "torchinductor", "__triton_launcher", "__mp_main__")
_GENERATED_FOLDERS = ("torchinductor_", "/.triton/", "/triton_cache/", "/torch_extensions/", "/torch_compile_cache/")
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def module_files() -> dict[str, str]:
    """Every imported module that has a file, by its name; the main script under ``__main__``."""
    paths: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        path = _module_file(module)
        if path:
            paths[name] = path
    return paths


def main_file() -> str:
    """The file of the main program; empty for a notebook, ``-c``, and what comes on standard input."""
    path = _module_file(sys.modules.get("__main__"))
    return os.path.realpath(path) if path and os.path.isfile(path) else ""


def _module_file(module: Any) -> str:
    try:
        own = object.__getattribute__(module, "__dict__")  # what only stands in for a module is not to be woken
    except AttributeError:
        return ""
    path = own.get("__file__")
    if not isinstance(path, str) or not path:
        return ""
    return path[:-1] if path.endswith(".pyc") and os.path.exists(path[:-1]) else path


def project_files(modules: dict[str, str]) -> dict[str, str]:
    """Of these files the project's own: neither the standard library's, nor a wheel's, nor made while the job ran."""
    import sysconfig

    paths = [path for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))]
    library = tuple(path + os.sep for path in {*paths, *map(os.path.realpath, paths)})
    scripts = os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin") + os.sep
    own = {}
    for name, path in modules.items():
        whole = os.path.abspath(path)
        if (
            is_installed(whole)
            or whole.startswith((*library, scripts, _OWN_PACKAGE + os.sep))
            or name.startswith(_GENERATED)
        ):
            continue
        if not any(folder in whole for folder in _GENERATED_FOLDERS):
            own[name] = whole
    return own


def is_installed(path: str) -> bool:
    """Whether a file lies where wheels are installed."""
    return any(f"{os.sep}{folder}{os.sep}" in path for folder in _INSTALLED)


def relative_path(name: str, path: str) -> str:
    """A module's file below its root: `torch/nn/functional.py`, whatever folder torch is in."""
    parts = path.replace("\\", "/").split("/")
    depth = name.count(".") + 1 + (parts[-1].partition(".")[0] == "__init__")
    return "/".join(parts[-depth:])


def digest_of_files(by_name: dict[str, str]) -> str:
    """One digest of files by module name, from theirs: the same from whatever folder they were imported."""
    import hashlib

    lines = "".join(f"{name}\0{sha}\n" for name, sha in sorted(by_name.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
