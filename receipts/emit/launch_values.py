"""Values of a launch: the key of an option's name, and one normal form for texts that say the same value."""

from __future__ import annotations

import os.path
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

THEN = " then "  # between the values of an option that was given more than once
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d{1,4})?")
_SWITCH = {**dict.fromkeys(("true", "yes", "on"), "true"), **dict.fromkeys(("false", "no", "off"), "false")}
_SWITCH |= dict.fromkeys(("none", "null", "~"), "none")
_DEEP = 12


def is_number(text: str) -> bool:
    """Whether a word is a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def key_of(name: str) -> str:
    """An option's name as a key: ``--micro-batch-size`` is ``micro_batch_size``."""
    return name.lstrip("-+~").replace("-", "_")


def normal(text: str) -> str:
    """One form for texts that say one value: ``1e-2`` is ``0.01``, ``[1,2]`` is ``[1, 2]``, ``yes`` is ``true``."""
    text = text.strip()
    if THEN in text:
        return THEN.join(map(normal, text.split(THEN)))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1].strip()
    if is_number(text):
        return _number(text)
    if text.lower() in _SWITCH:
        return _SWITCH[text.lower()]
    if text[:1] in ("[", "("):
        return _literal_list(text)
    if "/" in text and "://" not in text:
        return os.path.normpath(text)
    return text


def flat(tree: Any, prefix: str = "") -> dict[str, str]:
    """A tree of JSON, TOML or YAML as dotted keys and texts; a list of scalars is one value."""
    leaves: dict[str, str] = {}
    _flatten(tree, prefix, leaves, 0)
    return leaves


def text_of(value: Any) -> str:
    """A scalar, or a list of scalars, as the text that a command line would have."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_quoted(text_of(item)) for item in value)}]"
    return str(value)


def _flatten(tree: Any, prefix: str, leaves: dict[str, str], depth: int) -> None:
    if isinstance(tree, dict) and tree and depth < _DEEP:
        for name, value in tree.items():
            _flatten(value, f"{prefix}.{name}" if prefix else str(name), leaves, depth + 1)
    elif isinstance(tree, list | tuple) and depth < _DEEP and any(isinstance(item, dict | list) for item in tree):
        for place, value in enumerate(tree):
            _flatten(value, f"{prefix}.{place}" if prefix else str(place), leaves, depth + 1)
    elif prefix:
        leaves[prefix] = text_of(tree)


def _number(text: str) -> str:
    """The shortest text of an exact decimal: no rounding, whatever its digits."""
    from decimal import Decimal

    sign, digits, exponent = Decimal(text.replace("_", "")).as_tuple()
    shown = "".join(map(str, digits)).lstrip("0")
    short = shown.rstrip("0")
    if not short:
        return "0"
    power = int(exponent) + len(shown) - len(short)
    if 0 <= power <= 40:
        body = short + "0" * power
    elif -40 <= power < 0:
        whole = short.rjust(1 - power, "0")
        body = f"{whole[:power]}.{whole[power:]}"
    else:
        body = f"{short}e{power}"
    return f"-{body}" if sign else body


def _literal_list(text: str) -> str:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        inner = text[1:-1] if text[-1:] in ("]", ")") else ""
        if not inner or any(sign in inner for sign in "[](){}'\""):
            return text
        value = [part.strip() for part in inner.split(",")]
    return (
        f"[{', '.join(_quoted(normal(text_of(item))) for item in value)}]" if isinstance(value, list | tuple) else text
    )


def _quoted(text: str) -> str:
    """An item of a list, in quotes where a comma or a bracket would tear it."""
    return repr(text) if any(sign in text for sign in ",[]()'\" ") or not text else text
