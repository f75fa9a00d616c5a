"""The stated leaves of a receipt as one flat map, read off the model in one walk."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from receipts.receipt.leaf import Section

_SCALARS = frozenset({str, int, float, bool})
_NOT_FLATTENED = "measurement.step_flags"


class Flat:
    """What a receipt states, by dotted paths; values are as in the document's JSON.

    ``stated`` holds every leaf: lists of values are leaves, rows of a list are ``chips[0].…``. ``places`` holds every
    section, map or list in which something is stated. ``keys`` is how many keys the document's objects have.
    """

    def __init__(self, receipt: Section) -> None:
        self.stated: dict[str, Any] = {}
        self.places: set[str] = set()
        self.keys = 0
        self._section(receipt, "")

    def _section(self, section: Section, before: str) -> None:
        """Add the fields of a section whose own path, with the dot behind it, is ``before``."""
        self.keys += len(section.model_fields_set)
        aliases = _aliases(type(section))
        for name, value in section.__dict__.items():
            if value is None:
                continue
            path = before + (aliases.get(name, name) if aliases else name)
            if type(value) in _SCALARS:
                self.stated[path] = value
            else:
                self._add(path, value)

    def _add(self, path: str, value: Any) -> None:
        if isinstance(value, Section):
            before = len(self.stated)
            self._section(value, f"{path}.")
            if len(self.stated) > before:
                self.places.add(path)
            else:
                self.stated[path] = {}
        elif isinstance(value, dict):
            self._map(path, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Section):
            self.places.add(path)
            for index, row in enumerate(value):
                self._add(f"{path}[{index}]", row)
        elif isinstance(value, tuple):
            self.stated[path] = list(value)
        elif isinstance(value, datetime):
            self.stated[path] = value.isoformat().replace("+00:00", "Z")
        else:
            self.stated[path] = value

    def _map(self, path: str, entries: Mapping[str, Any]) -> None:
        self.keys += len(entries)
        if not entries or path == _NOT_FLATTENED:
            self.stated[path] = {key: list(steps) for key, steps in entries.items()}
            return
        self.places.add(path)
        for key, value in entries.items():
            at = f"{path}.{key}"
            if "." in key:  # a flag of a flag: the outer one is a place too
                self.places.update(f"{path}.{key[:dot]}" for dot, sign in enumerate(key) if sign == ".")
            self._add(at, value)


@cache
def _aliases(section: type[Section]) -> Mapping[str, str]:
    """Fields whose key in the document is not their name."""
    return {name: field.alias for name, field in section.model_fields.items() if field.alias}
