"""Settings as dotted keys and texts: those of a configuration file, and those that a program's own objects hold.

Files are TOML, JSON, YAML, gin, and Python that only assigns values. Nothing in a file is run or imported. What cannot
be read whole counts by its digest alone, so that a setting that was passed over cannot hide.
"""

from __future__ import annotations

import os
import re
from importlib import import_module

from receipts.emit import python_source
from receipts.emit.launch_values import flat

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


MAX_FILE_BYTES = 1 << 20
MAX_KEYS = 2000
MAX_TEXT = 400
_MAX_DEPTH = 12
_MAX_NODES = 10_000
_BINDING = re.compile(r"([\w./@%-]+)\s*=\s*(.+)", re.DOTALL)


def file_settings(path: str, raw: bytes) -> dict[str, Any] | None:
    """The settings of a file by dotted keys; None where it is no configuration, or is beyond the bounds."""
    read = _READERS.get(os.path.splitext(path)[1].lower())
    if read is None or len(raw) > MAX_FILE_BYTES:
        return None
    try:
        tree = read(raw.decode("utf-8"))
    except Exception:  # of many parsers, of a file that may hold anything
        return None
    if not isinstance(tree, dict) or not _is_small(tree):
        return None
    leaves = flat(tree)
    if len(leaves) > MAX_KEYS or any(len(name) > 200 for name in leaves):
        return None
    return {name: short_text(text) for name, text in leaves.items()}


def is_config(path: str) -> bool:
    """Whether a file is a configuration by its name."""
    return os.path.splitext(path)[1].lower() in _READERS


def _is_small(tree: Any) -> bool:
    """Whether it is small when written out; YAML's anchors can make a short file endless."""
    waiting, nodes = [(tree, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if nodes > _MAX_NODES or depth > _MAX_DEPTH:
            return False
        if isinstance(node, dict | list | tuple):
            waiting += [(item, depth + 1) for item in (node.values() if isinstance(node, dict) else node)]
    return True


def short_text(text: str) -> str:
    """A long text by its digest: a text that is cut says nothing of its end."""
    if len(text) <= MAX_TEXT:
        return text
    import hashlib

    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _yaml(text: str) -> Any:
    """A YAML file, where PyYAML is installed: the job need not have it."""
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
    ".json": lambda text: import_module("json").loads(text),
    ".toml": lambda text: import_module("tomllib").loads(text),
    ".yaml": _yaml,
    ".yml": _yaml,
    ".gin": _gin,
    ".py": python_source.assigned_values,
}


_MAX_VALUES = 20_000
_SCALARS = (bool, int, float, str, type(None))


class _LeftOut(Exception):
    """A value that says nothing of itself, or that only its device knows."""


def object_settings(given: Any) -> dict[str, str]:
    """The settings of a map, or of an object with attributes, by dotted keys.

    What has no text of its own is left out: a tensor, a function's closure, an object that prints its address. Raises
    TypeError for what holds no settings.
    """
    fields = _object_fields(given)
    if fields is None:
        raise TypeError(f"it takes a map, as vars(args) gives, and not {type(given).__name__}")
    settings = flat(dict(_stated_items(fields, 0, [_MAX_VALUES])))
    return {name: text if len(text) <= MAX_TEXT else short_text(text) for name, text in settings.items()}


def _object_fields(value: Any) -> dict[Any, Any] | None:
    if hasattr(value, "items") and hasattr(value, "keys"):
        return dict(value.items())
    if isinstance(value, (type, *_SCALARS, list, tuple, set, frozenset)):
        return None
    own = getattr(value, "__dict__", None)
    known = hasattr(value, "__dataclass_fields__") or type(value).__name__ in ("Namespace", "SimpleNamespace")
    return dict(own) if known and own is not None else None


def _plain_value(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > _MAX_DEPTH or left[0] < 0:
        raise _LeftOut
    if isinstance(value, _SCALARS):
        return value
    if (fields := _object_fields(value)) is not None:
        return dict(_stated_items(fields, depth, left))
    if isinstance(value, list | tuple):
        return [_plain_value(item, depth + 1, left) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_plain_value(item, depth + 1, left)) for item in value)
    if (hasattr(value, "shape") and getattr(value, "ndim", 0) != 0) or hasattr(value, "device"):
        raise _LeftOut  # its values would have to be fetched
    text = str(getattr(value, "value", getattr(value, "__qualname__", value)))
    if " at 0x" in text:
        raise _LeftOut
    return text


def _stated_items(fields: dict[Any, Any], depth: int, left: list[int]) -> Iterator[tuple[str, Any]]:
    for name, item in fields.items():
        if str(name).startswith("_"):
            continue
        try:
            yield str(name), _plain_value(item, depth + 1, left)
        except _LeftOut:
            continue
