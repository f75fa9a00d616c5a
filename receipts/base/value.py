"""The decorator of frozen dataclasses that every command makes: the standard one's, at a fifth of its cost at start-up.

`dataclasses.dataclass(frozen=True)` writes six methods of each class as text and compiles them, half a millisecond a
class: with fifty of them that was an eighth of a comparison of two files. Here only ``__init__`` is compiled, for its
speed and its messages, and the others are written once, below. `fields`, `replace` and `asdict` take such a class as
any other. For a type checker it is the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]


def _frozen(*, frozen: bool, slots: bool = False, eq: bool = True) -> Callable[[type], type]:
    """Make a class a frozen dataclass. ``slots`` and ``eq`` are those of `dataclasses.dataclass`."""
    if not frozen:
        raise TypeError("a value is frozen; use dataclasses.dataclass for what changes")

    def decorate(declared: type) -> type:
        made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(declared)
        _give(made, __init__=_first(made), __repr__=_repr, __setattr__=_refuse_set, __delattr__=_refuse_delete)
        if slots:
            _give(made, __getstate__=_state, __setstate__=_restore)
        if eq:
            _compare_by_fields(made)
        return made

    return decorate


def _give(made: type, **methods: Callable[..., Any]) -> None:
    """Methods that the class does not write itself."""
    for name, method in methods.items():
        if name not in vars(made):
            setattr(made, name, method)


def _first(made: type) -> Callable[..., None]:
    """``__init__`` of the first instance: it compiles the one that all others have."""

    def initialise(self: object, *given: Any, **named: Any) -> None:
        compiled = _initialiser(made)
        made.__init__ = compiled  # type: ignore[misc]  # of this very class, and of no other that may inherit it
        compiled(self, *given, **named)

    return initialise


def _initialiser(made: type) -> Callable[..., None]:
    """``__init__`` as the standard decorator writes it for a frozen class."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": dataclasses.MISSING}
    heads, lines = [], []
    for item in dataclasses.fields(made):
        name = value = head = item.name
        if item.default is not dataclasses.MISSING:
            head, known[f"_{name}"] = f"{name}=_{name}", item.default
        elif item.default_factory is not dataclasses.MISSING:
            head, known[f"_{name}"] = f"{name}=_unset", item.default_factory
            value = f"_{name}() if {name} is _unset else {name}"
        heads.append(head)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__(self, {', '.join(heads)}):\n" + "\n".join(lines), known)
    written: Callable[..., None] = known["__init__"]
    written.__qualname__ = f"{made.__qualname__}.__init__"
    return written


def _compare_by_fields(made: type) -> None:
    key = attrgetter(*(item.name for item in dataclasses.fields(made) if item.compare))

    def equal(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def digest(self: object) -> int:
        return hash(key(self))

    _give(made, __eq__=equal)
    made.__hash__ = digest  # type: ignore[assignment]  # a class that has __eq__ and no __hash__ has None there


def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _frozen
