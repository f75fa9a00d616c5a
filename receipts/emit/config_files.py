"""Settings of a configuration file as dotted keys: TOML, JSON, YAML, gin, and Python that only assigns values.

Nothing in a file is run or imported. What cannot be read whole counts by its digest alone, so that a setting that was
passed over cannot hide.
"""

from __future__ import annotations

import os
import re

from receipts.emit import literals
from receipts.emit.launch_values import flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 1 << 20
MOST_KEYS = 2000
LONGEST = 400
_DEEPEST = 12
_NODES = 10_000
_BINDING = re.compile(r"([\w./@%-]+)\s*=\s*(.+)", re.DOTALL)


def settings(path: str, raw: bytes) -> dict[str, Any] | None:
    """The settings of a file by dotted keys; None where it is no configuration, or is beyond the bounds."""
    read = _READERS.get(os.path.splitext(path)[1].lower())
    if read is None or len(raw) > LARGEST:
        return None
    try:
        tree = read(raw.decode("utf-8"))
    except Exception:  # of many parsers, of a file that may hold anything
        return None
    if not isinstance(tree, dict) or not _bounded(tree):
        return None
    leaves = flat(tree)
    if len(leaves) > MOST_KEYS or any(len(name) > 200 for name in leaves):
        return None
    return {name: short(text) for name, text in leaves.items()}


def is_config(path: str) -> bool:
    """Whether a file is a configuration by its name."""
    return os.path.splitext(path)[1].lower() in _READERS


def _bounded(tree: Any) -> bool:
    """Whether it is small when written out; YAML's anchors can make a short file endless."""
    waiting, nodes = [(tree, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if nodes > _NODES or depth > _DEEPEST:
            return False
        if isinstance(node, dict | list | tuple):
            waiting += [(item, depth + 1) for item in (node.values() if isinstance(node, dict) else node)]
    return True


def short(text: str) -> str:
    """A long text by its digest: a text that is cut says nothing of its end."""
    if len(text) <= LONGEST:
        return text
    import hashlib

    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _json(text: str) -> Any:
    import json

    return json.loads(text)


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    """A YAML file, where PyYAML is installed: the job need not have it."""
    from importlib import import_module

    yaml = import_module("yaml")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _gin(text: str) -> Any:
    """Bindings and macros of gin. Raises ValueError for any other statement than an import or an include."""
    bindings: dict[str, Any] = {}
    held = ""
    for line in text.splitlines():
        held += line.partition("#")[0].rstrip().removesuffix("\\") + "\n"
        if held.count("(") + held.count("[") + held.count("{") > held.count(")") + held.count("]") + held.count("}"):
            continue
        statement, held = held.strip(), ""
        if not statement or statement.startswith(("import ", "from ")):
            continue
        if statement.startswith("include "):
            bindings[f"include.{len(bindings)}"] = statement[8:].strip(" '\"")
            continue
        match = _BINDING.fullmatch(statement)
        if match is None:
            raise ValueError(statement)
        bindings[match[1]] = " ".join(match[2].split())
    if held.strip():
        raise ValueError(held)
    return bindings


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".gin": _gin,
    ".py": literals.settings,
}
