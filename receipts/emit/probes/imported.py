"""The files behind what is imported: which are the standard library's, which a wheel's, and which the project's own."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INSTALLED = ("site-packages", "dist-packages")
# Modules that a compiler writes while the job runs: they follow from the rest, and hold names of the machine.
_GENERATED = ("torch._inductor.runtime.compile_tasks", "torchinductor", "__triton_launcher", "__mp_main__")
_GENERATED_FOLDERS = ("torchinductor_", "/.triton/", "/triton_cache/", "/torch_extensions/", "/torch_compile_cache/")
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files() -> dict[str, str]:
    """Every imported module that has a file, by its name; the main script under ``__main__``."""
    paths: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        path = _file(module)
        if path:
            paths[name] = path
    return paths


def main() -> str:
    """The file of the main program; empty for a notebook, ``-c``, and what comes on standard input."""
    path = _file(sys.modules.get("__main__"))
    return os.path.realpath(path) if path and os.path.isfile(path) else ""


def _file(module: Any) -> str:
    try:
        own = object.__getattribute__(module, "__dict__")  # what only stands in for a module is not to be woken
    except AttributeError:
        return ""
    path = own.get("__file__")
    if not isinstance(path, str) or not path:
        return ""
    return path[:-1] if path.endswith(".pyc") and os.path.exists(path[:-1]) else path


def project(modules: dict[str, str]) -> dict[str, str]:
    """Of these files the project's own: neither the standard library's, nor a wheel's, nor made while the job ran."""
    library = _library()
    scripts = os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin") + os.sep
    own = {}
    for name, path in modules.items():
        whole = os.path.abspath(path)
        if installed(whole) or whole.startswith((*library, scripts, _OWN + os.sep)) or name.startswith(_GENERATED):
            continue
        if not any(folder in whole for folder in _GENERATED_FOLDERS):
            own[name] = whole
    return own


def installed(path: str) -> bool:
    """Whether a file lies where wheels are installed."""
    return any(f"{os.sep}{folder}{os.sep}" in path for folder in _INSTALLED)


def _library() -> tuple[str, ...]:
    import sysconfig

    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    places = {os.path.realpath(path) for path in paths if path} | {path for path in paths if path}
    return tuple(path + os.sep for path in places)


def relative(name: str, path: str) -> str:
    """A module's file below its root: `torch/nn/functional.py`, whatever folder torch is in."""
    parts = path.replace("\\", "/").split("/")
    depth = name.count(".") + 1 + (parts[-1].partition(".")[0] == "__init__")
    return "/".join(parts[-depth:])


def sha256(path: str) -> str:
    """Digest of a file. Raises OSError."""
    import hashlib

    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(by_name: dict[str, str]) -> str:
    """One digest of files by module name, from theirs: the same from whatever folder they were imported."""
    import hashlib

    lines = "".join(f"{name}\0{sha}\n" for name, sha in sorted(by_name.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
