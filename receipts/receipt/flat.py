"""The stated leaves of a receipt as one flat map, read off the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from datetime import datetime
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from receipts.receipt.leaf import Section

_SCALARS = frozenset({str, int, float, bool})
# What `model_fields_set` gives, without a call in between for each of a receipt's hundred rows.
_stated_in: Callable[[Section], Set[str]] = attrgetter("__pydantic_fields_set__")
_NOT_FLATTENED = "measurement.step_flags"
# Sections stand at few paths, and keys of open maps at none: what is kept of them does not grow with the receipts.
_MOST_PLACES = 1000


class Flat(Mapping[str, Any]):
    """What a receipt states, by dotted paths in the document's order; values are as in the document's JSON.

    Lists of values are leaves, rows of a list are ``chips[0].…``. ``leaves`` holds every leaf that is no part of a row,
    ``sections`` every section, map or list in which something is stated, and ``keys_written`` is how many keys
    the document's objects have. Rows are most of a receipt's leaves, and few ask for one: they are walked when somebody
    does.
    """

    def __init__(self, receipt: Section) -> None:
        walked = _Walk(receipt, rows=False)
        self._receipt = receipt
        self.leaves: Mapping[str, Any] = walked.leaves
        self.sections: Set[str] = walked.places
        self.keys_written = walked.keys

    @cached_property
    def _whole(self) -> _Walk:
        return _Walk(self._receipt, rows=True)

    @property
    def places(self) -> Set[str]:
        """Every section, map, list or row in which something is stated."""
        return self._whole.places

    def states(self, path: str) -> bool:
        """Whether a leaf, or anything below a section, map, list or row, is stated."""
        return path in self or path in (self.places if "[" in path else self.sections)

    def get(self, path: str, default: Any = None) -> Any:
        """What is stated at a path, else the default."""
        return (self._whole.leaves if "[" in path else self.leaves).get(path, default)

    def __getitem__(self, path: str) -> Any:
        return (self._whole.leaves if "[" in path else self.leaves)[path]

    def __contains__(self, path: object) -> bool:
        return path in (self._whole.leaves if "[" in str(path) else self.leaves)

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole.leaves)

    def __len__(self) -> int:
        return len(self._whole.leaves)


class _Walk:
    """One walk over a receipt's model, into rows or past them."""

    def __init__(self, receipt: Section, *, rows: bool) -> None:
        self.leaves: dict[str, Any] = {}
        self.places: set[str] = set()
        self.keys = 0
        self._rows = rows
        self._section(receipt, "")

    def _section(self, section: Section, before: str) -> None:
        """Add the fields of a section whose own path, with the dot behind it, is ``before``."""
        self.keys += len(_stated_in(section))
        leaves = self.leaves
        for path, value in zip(_paths(type(section), before), section.__dict__.values(), strict=True):
            if value is None:
                continue
            kind = type(value)
            if kind in _SCALARS:
                leaves[path] = value
            elif kind is tuple:
                self._list(path, value)
            elif kind is dict:
                self._map(path, value)
            else:
                self._add(path, value)

    def _add(self, path: str, value: Any) -> None:
        if isinstance(value, Section):
            before = len(self.leaves) + len(self.places)
            self._section(value, f"{path}.")
            if len(self.leaves) + len(self.places) > before:
                self.places.add(path)
            else:
                self.leaves[path] = {}
        elif isinstance(value, dict):
            self._map(path, value)
        elif isinstance(value, tuple):
            self._list(path, value)
        elif isinstance(value, datetime):
            self.leaves[path] = value.isoformat().replace("+00:00", "Z")
        else:
            self.leaves[path] = value

    def _list(self, path: str, items: tuple[Any, ...]) -> None:
        if not items or not isinstance(items[0], Section):
            self.leaves[path] = list(items)
            return
        self.places.add(path)
        if self._rows:
            for index, row in enumerate(items):
                self._add(f"{path}[{index}]", row)
            return
        self.keys += sum(map(len, map(_stated_in, items)))
        if not all(map(_is_plain, set(map(type, items)))):
            self.keys += sum(map(_keys_within, items))

    def _map(self, path: str, entries: Mapping[str, Any]) -> None:
        self.keys += len(entries)
        if not entries or path == _NOT_FLATTENED:
            self.leaves[path] = {key: list(steps) for key, steps in entries.items()}
            return
        self.places.add(path)
        for key, value in entries.items():
            at = f"{path}.{key}"
            if "." in key:  # a flag of a flag: the outer one is a place too
                self.places.update(f"{path}.{key[:dot]}" for dot, sign in enumerate(key) if sign == ".")
            if type(value) in _SCALARS:
                self.leaves[at] = value
            else:
                self._add(at, value)


@lru_cache(maxsize=_MOST_PLACES)
def _paths(section: type[Section], before: str) -> tuple[str, ...]:
    """Where the fields of a section stand, in their order, by their keys in the document."""
    return tuple(before + (field.alias or name) for name, field in section.model_fields.items())


def _keys_within(row: Section) -> int:
    """How many keys the objects that stand in a row have."""
    count = 0
    for value in row.__dict__.values():
        if value is None or type(value) in _SCALARS:
            continue
        if isinstance(value, dict):
            inner = [item for item in value.values() if isinstance(item, Section)]
            count += len(value)
        else:
            inner = [item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Section)]
        count += sum(len(_stated_in(item)) + _keys_within(item) for item in inner)
    return count


@cache
def _is_plain(section: type[Section]) -> bool:
    """Whether no object can stand in a section: its fields are scalars."""
    return all(_is_scalar(field.annotation) for field in section.model_fields.values())


def _is_scalar(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return all(map(_is_scalar, get_args(annotation)))
    if origin is Annotated:
        return _is_scalar(get_args(annotation)[0])
    return origin is Literal or annotation in _SCALARS or annotation is type(None)
