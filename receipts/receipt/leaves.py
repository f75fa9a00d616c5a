"""The leaves of a receipt: each with its role and axis, the stated ones as one flat map, and counts of collections.

Roles and axes are read from the fields' own declarations. A map or a list that is read whole reads as clean without
the entry that offends, and no rule can ask for an entry that it does not know. Whoever writes a receipt therefore
counts the entries (`run.entries`), so that an entry that is left out later leaves a trace; R120 compares.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, ItemsView, Iterator, Mapping, Set, Sized
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from receipts.receipt.document import Receipt
from receipts.receipt.leaf import AGREE, Role, Section
from receipts.receipt.measurement import StepFlag


@dataclass(frozen=True, slots=True)
class Leaf:
    """One place of the receipt. ``path`` is dotted; ``[]`` marks list items and ``*`` the keys of an open map."""

    path: str
    role: Role
    axis: str | None
    unit: str | None
    since: str
    description: str
    follows: str | None
    required: bool
    ranks: str = AGREE
    files: str = AGREE
    group: str = ""


def section_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The section inside an annotation, and whether it is in a list."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    # Not typing's own functions: every start asks this of three hundred fields.
    origin = getattr(annotation, "__origin__", None)
    for argument in getattr(annotation, "__args__", ()) if origin is not dict else ():
        model, listed = section_in(argument)
        if model is not None:
            return model, listed or origin is tuple
    return None, False


def _walk(model: type[BaseModel], prefix: str) -> Iterator[Leaf]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        declared: Mapping[str, Any] = typing.cast("Mapping[str, Any]", extra.get("receipts", {}))
        inner, listed = section_in(field.annotation)
        if inner is not None and (not declared or (listed and not declared.get("open"))):
            yield from _walk(inner, f"{path}[]." if listed else f"{path}.")
            continue
        if not declared:
            raise TypeError(f"{path} declares no role: use axis(), observed(), … of receipts.receipt.leaf")
        role = Role(declared["role"])
        leaf_path = f"{path}.*" if declared.get("open") else path
        named = declared.get("axis") or (leaf_path if role is Role.AXIS else None)
        yield Leaf(
            path=leaf_path,
            role=role,
            axis=named,
            unit=declared.get("unit"),
            since=declared.get("since", "1.0"),
            description=field.description or "",
            follows=declared.get("follows"),
            required=field.is_required(),
            ranks=declared.get("ranks", AGREE),
            files=declared.get("files", AGREE),
            group=declared.get("group") or (path.removesuffix("_stated") if path.endswith("_stated") else ""),
        )


@lru_cache(maxsize=1)
def leaves() -> tuple[Leaf, ...]:
    """All leaves in the order of the document."""
    return tuple(_walk(Receipt, ""))


@lru_cache(maxsize=1)
def by_path() -> Mapping[str, Leaf]:
    """Leaves by path; the keys of an open map stand under ``map.*``."""
    return {leaf.path: leaf for leaf in leaves()}


def find_leaf(path: str) -> Leaf | None:
    """The leaf at a concrete path such as ``flags.NCCL_ALGO`` or ``model.hidden``; None if there is none."""
    table = by_path()
    if path in table:
        return table[path]
    head, _, rest = path.partition(".")
    inner = rest.partition(".")[0]
    return table.get(f"{head}.*") or table.get(f"{head}.{inner}.*") if rest else None


def path_of(leaf_path: str) -> str:
    """The axis-like name under which ``path.intended.x`` and ``path.witnessed.x`` are one: ``path.x``."""
    for side in ("path.intended.", "path.witnessed."):
        if leaf_path.startswith(side):
            return "path." + leaf_path.removeprefix(side)
    return leaf_path


_SCALARS = frozenset({str, int, float, bool})
# What `model_fields_set` gives, without a call in between for each of a receipt's hundred rows.
_stated_in: Callable[[Section], Set[str]] = attrgetter("__pydantic_fields_set__")
_NOT_FLATTENED = "measurement.step_flags"
# Sections stand at few paths, and keys of open maps at none: what is kept of them does not grow with the receipts.
_MAX_PLACES = 1000


class Flat(Mapping[str, Any]):
    """What a receipt states, by dotted paths in the document's order; values are as in the document's JSON.

    Lists of values are leaves, rows of a list are ``chips[0].…``. ``leaves`` holds every leaf outside the rows,
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

    def items(self) -> ItemsView[str, Any]:
        """Each path with its value: those of the dictionary, which a Mapping's own would look up one by one."""
        return self._whole.leaves.items()


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


@lru_cache(maxsize=_MAX_PLACES)
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


COLLECTIONS: Final = (
    *("run.parts", "wheels", "flags", "patches", "features", "numerics", "numerics.adapters", "data"),
    *("inputs", "inputs.options", "inputs.defaults", "inputs.files", "inputs.environment", "inputs.launcher"),
    *("path.intended", "path.witnessed", "path.witnessed.frameworks", "path.witnessed.fallbacks"),
    *(
        "measurement.step_durations_seconds",
        "measurement.interval_means_seconds",
        "measurement.interval_steps",
        "measurement.step_wall_seconds",
        "measurement.step_tokens_per_second",
        "measurement.loss",
    ),
    *(f"measurement.step_flags.{name}" for name in get_args(StepFlag)),
    "memory.chips",
)


class LostEntries(NamedTuple):
    """A collection, the entries that it has, and those that it was written with."""

    path: str
    present: int
    counted: int

    def __str__(self) -> str:
        return f"{self.present:,} of {self.counted:,} entries"


# What traces show of the work in steps: numbers among those that were observed, counted over all evidence.
WORK: Final = "evidence.observed"
WORK_NAMES: Final = ("work.", "step.", "recompute.")


def counted_entries(receipt: Section | Mapping[str, Any]) -> dict[str, int]:
    """Entries of each collection that a receipt, or the tree of one, states."""
    return {path: count for path in (*COLLECTIONS, WORK) if (count := entries(receipt, path))}


def lost_entries(receipt: Receipt) -> Iterator[LostEntries]:
    """Collections with fewer entries than were counted. More are allowed: a person may add what a log shows."""
    for path, count in (receipt.run.entries or {}).items():
        if (present := entries(receipt, path)) < count:
            yield LostEntries(path, present, count)


def entries(receipt: Section | Mapping[str, Any], path: str) -> int:
    """Entries of the map, list or section at a path; 0 where it is not stated."""
    node: Any = receipt
    if path == WORK:
        rows = (receipt.get("evidence") if isinstance(receipt, Mapping) else getattr(receipt, "evidence", None)) or ()
        seen = (row.get("observed") if isinstance(row, Mapping) else row.observed for row in rows)
        return sum(name.startswith(WORK_NAMES) for observed in seen for name in observed or ())
    for part in path.split("."):
        node = node.get(part) if isinstance(node, Mapping) else getattr(node, part, None)
    if isinstance(node, Section):
        return sum(value is not None for value in vars(node).values())
    return len(node) if isinstance(node, Sized) and not isinstance(node, str) else 0
