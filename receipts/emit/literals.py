"""Values that Python source states outright, without running it: settings of a file, defaults of options."""

from __future__ import annotations

import ast
from functools import lru_cache

from receipts.emit.launch_values import key_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_SWITCHES = {"store_true": "false", "store_false": "true"}
_SUMS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b if abs(a) <= 1 << 20 and abs(b) <= 64 else _unknown(),
}


@lru_cache(maxsize=1)  # what reads one source for several things parses it once
def tree(text: str) -> ast.Module | None:
    """A source as its tree; None where it is no Python that can be read."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def settings(text: str, *, whole: bool = True) -> dict[str, Any] | None:
    """What top-level assignments of a source state. None where, to be read ``whole``, it holds anything else."""
    known: dict[str, Any] = {}
    module = tree(text)
    if module is None:
        return None
    for node in module.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        assigned = isinstance(node, ast.Assign | ast.AnnAssign) and all(isinstance(item, ast.Name) for item in targets)
        try:
            stated = _value(value, known) if assigned and value is not None else _unknown()
        except (ValueError, TypeError, ArithmeticError):
            if whole:
                return None
            for target in targets if assigned else ():
                known.pop(getattr(target, "id", ""), None)
            continue
        known.update((target.id, stated) for target in targets if isinstance(target, ast.Name))
    return known


def defaults(text: str, known: dict[str, str | None]) -> None:
    """Add the defaults that a source's declarations of options state, by key; None for those that are torn.

    An option is torn that is declared twice, and not alike, or whose default is computed.
    """
    module = tree(text)
    if module is None:
        return
    constants = settings(text, whole=False) or {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            for name, value in _declared(node, constants):
                known[name] = value if known.setdefault(name, value) == value else None


def fields(text: str, known: dict[str, str | None]) -> None:
    """Add the literal defaults of the fields of a source's dataclasses, as parsers of dataclasses make options of them.

    Of a field that two classes have, and not alike, or whose default is computed, it is None.
    """
    module = tree(text)
    if module is None:
        return
    constants = settings(text, whole=False) or {}
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    value = None if item.value is None else _text(_default(item.value), constants)
                    name = item.target.id
                    known[name] = value if known.setdefault(name, value) == value else None


def _default(node: ast.expr) -> ast.expr:
    """What a field is by default: its value, or the `default` of the call that says more of it."""
    named = {item.arg: item.value for item in getattr(node, "keywords", ())}
    return named["default"] if isinstance(node, ast.Call) and "default" in named else node


def _declared(call: ast.Call, constants: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    words = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    named = {item.arg: item.value for item in call.keywords if item.arg}
    if function == "set_defaults":
        return [(name, _text(value, constants)) for name, value in named.items()]
    if function.startswith("DEFINE_") and words and len(call.args) > 1:
        return [(words[0], _text(call.args[1], constants))]
    flags = [word for word in words if word.startswith("-")]
    if function not in ("add_argument", "option") or not flags:
        return []
    action = named.get("action")
    switch = _SWITCHES.get(str(getattr(action, "value", "")))
    if switch is not None or (isinstance(is_flag := named.get("is_flag"), ast.Constant) and is_flag.value is True):
        # What is not typed is off, whatever the program makes of it; `--no-x` is x: false.
        return [(key_of(word[5:] if word.startswith("--no-") else word), _off(word)) for word in flags]
    if "default" not in named:
        return []
    value = _text(named["default"], constants)
    dest = getattr(named.get("dest"), "value", None)
    names = [key_of(word.partition("/")[0]) for word in flags] + ([dest] if isinstance(dest, str) else [])
    return [(name, value) for name in dict.fromkeys(names)]


def _off(word: str) -> str:
    return "true" if word.startswith("--no-") else "false"


def _text(node: ast.expr, constants: Mapping[str, Any]) -> str | None:
    try:
        return text_of(_value(node, constants))
    except (ValueError, TypeError, ArithmeticError):
        return None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A literal, arithmetic of literals, or a name that stands for one. Raises ValueError for anything else."""
    if isinstance(node, ast.Name):
        return known[node.id] if node.id in known else _unknown()
    if isinstance(node, ast.BinOp):
        sides = _value(node.left, known), _value(node.right, known)
        if not all(isinstance(side, int | float) for side in sides) or type(node.op) not in _SUMS:
            _unknown()
        return _SUMS[type(node.op)](*sides)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, known) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_value(key, known): _value(item, known) for key, item in _pairs(node)}
    return ast.literal_eval(node)


def _pairs(node: ast.Dict) -> Iterable[tuple[ast.expr, ast.expr]]:
    return [(key, value) if key is not None else _unknown() for key, value in zip(node.keys, node.values, strict=True)]


def _unknown() -> Any:
    raise ValueError("it is not stated outright")
