"""Settings as objects hold them, as dotted keys and texts: what a program's own configuration says of itself."""

from __future__ import annotations

from receipts.emit.config_files import LONGEST, short
from receipts.emit.launch_values import flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_DEEPEST = 12
_MOST = 20_000
_SCALARS = (bool, int, float, str, type(None))


class _Left(Exception):
    """A value that says nothing of itself, or that only its device knows."""


def settings(given: Any) -> dict[str, str]:
    """The settings of a map, or of an object with attributes, by dotted keys.

    What has no text of its own is left out: a tensor, a function's closure, an object that prints its address. Raises
    TypeError for what holds no settings.
    """
    fields = _fields(given)
    if fields is None:
        raise TypeError(f"it takes a map, as vars(args) gives, and not {type(given).__name__}")
    settings = flat(dict(_each(fields, 0, [_MOST])))
    return {name: text if len(text) <= LONGEST else short(text) for name, text in settings.items()}


def _fields(value: Any) -> dict[Any, Any] | None:
    if hasattr(value, "items") and hasattr(value, "keys"):
        return dict(value.items())
    if isinstance(value, (type, *_SCALARS, list, tuple, set, frozenset)):
        return None
    own = getattr(value, "__dict__", None)
    known = hasattr(value, "__dataclass_fields__") or type(value).__name__ in ("Namespace", "SimpleNamespace")
    return dict(own) if known and own is not None else None


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth > _DEEPEST or left[0] < 0:
        raise _Left
    if isinstance(value, _SCALARS):
        return value
    if (fields := _fields(value)) is not None:
        return dict(_each(fields, depth, left))
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1, left) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_plain(item, depth + 1, left)) for item in value)
    if (hasattr(value, "shape") and getattr(value, "ndim", 0) != 0) or hasattr(value, "device"):
        raise _Left  # its values would have to be fetched
    text = str(getattr(value, "value", getattr(value, "__qualname__", value)))
    if " at 0x" in text:
        raise _Left
    return text


def _each(fields: dict[Any, Any], depth: int, left: list[int]) -> Iterator[tuple[str, Any]]:
    for name, item in fields.items():
        if str(name).startswith("_"):
            continue
        try:
            yield str(name), _plain(item, depth + 1, left)
        except _Left:
            continue
