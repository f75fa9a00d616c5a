"""What is imported already, looked at without importing any more of it.

Frameworks import parts of themselves when an attribute is asked for (`torch._dynamo`, all of `transformers`), so
modules are found in `sys.modules` by their whole names, and attributes of a module in its own dictionary.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from receipts.emit.stated import ProbeOutput


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


def each(stated: ProbeOutput, *readings: Callable[[ProbeOutput], None]) -> None:
    """Call readings one by one, so that one that fails takes no other with it."""
    for reading in readings:
        try:
            reading(stated)
        except Exception as error:
            name = getattr(reading, "__name__", "reading").strip("_").replace("_", " ")
            stated.note(f"{name} could not be read: {type(error).__name__}: {str(error)[:300]}")


def read(stated: ProbeOutput, what: str, call: Callable[[], Any]) -> Any:
    """One value; None, and a note, where it cannot be read."""
    try:
        return call()
    except Exception as error:
        stated.note(f"{what} could not be read: {type(error).__name__}: {str(error)[:300]}")
        return None


def switch(value: bool) -> str:
    """The state of a switch in a list of them."""
    return "on" if value else "off"
