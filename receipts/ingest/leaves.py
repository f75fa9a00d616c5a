"""Values that fit a leaf of the receipt, by the model's own types, and settings that people type."""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from shlex import quote
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from receipts.base.errors import InputError, Problem, near
from receipts.ingest.takes import Takes, takes
from receipts.receipt import Receipt
from receipts.receipt.accelerators import find as find_accelerator
from receipts.receipt.catalogue import find, leaves
from receipts.receipt.load import MAX_DIGITS
from receipts.stats.rounding import half_of

OPEN = ("flags", "features", "patches", "wheels", "notes")
# Objects and lists of objects that ingesting makes whole.
_NUMBER = re.compile(r" region \d+/\d+$")
_ALIKE = 1e-6
_ROWS = ("evidence", "run.parts", "memory.chips", "memory.predicted", "measurement.path_counters")


def parts(path: str) -> list[str]:
    """The keys on the way to a leaf; the key of an open map may hold dots itself."""
    head, _, rest = path.partition(".")
    return [head, rest] if head in OPEN and rest else path.split(".")


def fitting(path: str, value: Any) -> Any:
    """The value as the leaf takes it (8.0 is 8 chips), or None where it takes no such value."""
    if value is None:
        return None
    adapter = _adapter(path)
    if adapter is None:
        return None
    for candidate in _forms(value):
        if _accepts(adapter, candidate):
            return candidate
    return None


def _forms(value: Any) -> Iterable[Any]:
    yield value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**62:
        yield int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    if isinstance(value, bool):
        yield str(value).lower()
    if isinstance(value, str):
        yield value[:500]


def _accepts(adapter: TypeAdapter[Any], value: Any) -> bool:
    if isinstance(value, int) and value.bit_length() > 4 * MAX_DIGITS - 20:
        return False
    try:
        checked = adapter.validate_json(json.dumps(value, allow_nan=False))
    except (ValidationError, ValueError, TypeError, UnicodeEncodeError):
        return False
    return checked is not None


@lru_cache(maxsize=1024)
def _adapter(path: str) -> TypeAdapter[Any] | None:
    leaf = find(path)
    if leaf is None and path not in _ROWS:
        return None
    keys = parts(path)
    if keys[0] in OPEN:
        return _map_adapter(keys) if len(keys) == 2 and len(keys[1]) <= 200 else None
    model: type[BaseModel] = Receipt
    for key in keys[:-1]:
        inner = next((name for name in _members(_annotation(model, key)) if _is_section(name)), None)
        if inner is None:
            return None
        model = inner
    annotation = _annotation(model, keys[-1])
    return None if annotation is None else TypeAdapter(annotation, config=_config(annotation))


def _config(annotation: Any) -> ConfigDict | None:
    if _is_section(annotation):
        return None
    return ConfigDict(strict=True, allow_inf_nan=False)


def _annotation(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return None


def _members(annotation: Any) -> Iterable[Any]:
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union, Annotated):
        for item in typing.get_args(annotation):
            yield from _members(item)
    else:
        yield annotation


def _is_section(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, BaseModel)


def _map_adapter(keys: list[str]) -> TypeAdapter[Any]:
    from receipts.receipt.leaf import Name, Text
    from receipts.receipt.maps import Flag, Scalar, Wheel

    scalar: Any = Scalar
    kinds: Mapping[str, Any] = {
        "wheels": Name | Wheel,
        "flags": scalar | Flag,
        "notes": scalar | tuple[Text, ...],
    }
    return TypeAdapter(kinds.get(keys[0], scalar), config=ConfigDict(strict=True, allow_inf_nan=False))


def alike(path: str, a: Any, b: Any) -> bool:
    """Whether two values are one: numbers as far as both are printed, texts without case, chips by their names."""
    if isinstance(a, bool) or isinstance(b, bool):
        return bool(a == b)
    if isinstance(a, int | float) and isinstance(b, int | float):
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        # One source prints more digits than the other.
        return math.isclose(a, b, rel_tol=_ALIKE) or abs(a - b) <= max(half_of(float(a)), half_of(float(b)))
    if path == "hardware.accelerator" and find_accelerator(str(a)) is not None:
        return find_accelerator(str(a)) == find_accelerator(str(b))
    if path == "compile.regions" and _numbered(a) != _numbered(b):
        return True
    if isinstance(a, str) and isinstance(b, str):
        one, other = sorted((a.strip().lower(), b.strip().lower()), key=len)
        # Arguments name the library alone: `te` of what runs in bf16 is `te_bf16`.
        return one == other or (path == "path.intended.gemm" and other.startswith(f"{one}_"))
    return bool(a == b)


def _numbered(regions: Any) -> bool:
    """Whether compiled regions are told by their numbers, as a trace does, and not by the functions' names."""
    return all(_NUMBER.search(str(region)) is not None for region in regions)


def read_settings(words: Iterable[str]) -> dict[str, Any]:
    """`path=value` words as leaves. Numbers, true, false and lists are read as JSON where the leaf takes them.

    Raises InputError with every problem at once.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for word in words:
        path, equals, text = word.partition("=")
        path, text = path.strip(), text.strip()
        if not equals:
            problems.append(Problem(path, "this sets nothing", "write it as path=value"))
            continue
        problem, value = read_setting(path, text)
        if problem is None:
            values[path] = value
        else:
            problems.append(problem)
    if problems:
        raise InputError("--set", problems)
    return values


def read_setting(path: str, text: str) -> tuple[Problem | None, Any]:
    """One setting, or what is wrong with it."""
    adapter = _adapter(path)
    if adapter is None or path in _ROWS or path == "schema_version":
        known = [leaf.path for leaf in leaves() if "[]" not in leaf.path]
        return Problem(path, f"there is no such leaf{near(path, known)}", "receipts axes lists them all"), None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    for candidate in (value, text):
        if _accepts(adapter, candidate):
            return None, candidate
    accepted = takes(path, adapter)
    advice = f"it takes {accepted}; such as --set {quote(f'{path}={accepted.example}')}"
    return Problem(path, f"{text!r} is not a value for it", advice), None


def taken(path: str) -> Takes | None:
    """What the leaf at a path takes; None if a person cannot state it as a leaf of its own."""
    adapter = _adapter(path)
    return None if adapter is None else takes(path, adapter)
