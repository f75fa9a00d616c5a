"""Values that fit a leaf of the receipt, by the model's own types, and settings that people type.

`LeafType` is what a leaf takes, in words and with an example: for whoever types a value by hand.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from shlex import quote
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from receipts.base.errors import InputError, Problem, near
from receipts.emit.contract import INPUT_MAPS
from receipts.receipt import Receipt
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import Flag, Scalar, Wheel
from receipts.receipt.leaf import Name, Text
from receipts.receipt.leaves import find_leaf, leaves, section_in
from receipts.receipt.load import MAX_DIGITS
from receipts.stats.rounding import half_of

OPEN = ("flags", "features", "patches", "wheels", "notes")
# What an entry of an open map takes; of the others a scalar.
_ENTRIES: Final[Mapping[str, Any]] = {
    "wheels": Name | Wheel,
    "flags": Scalar | Flag,
    "notes": Scalar | tuple[Text, ...],
}
_STRICT: Final = ConfigDict(strict=True, allow_inf_nan=False)
_NUMBER = re.compile(r" region \d+/\d+$")
_ALIKE = 1e-6
# Objects and lists of objects that ingesting makes whole.
_ROWS = ("evidence", "run.parts", "memory.chips", "memory.predicted", "measurement.path_counters")


def parts(path: str) -> list[str]:
    """The keys on the way to a leaf; the key of an open map may hold dots itself."""
    head, _, rest = path.partition(".")
    inner, _, entry = rest.partition(".")
    if entry and f"{head}.{inner}" in INPUT_MAPS:
        return [head, inner, entry]
    return [head, rest] if head in OPEN and rest else path.split(".")


def at(tree: Mapping[str, Any], path: str) -> Any:
    """What a tree holds at a path, or None."""
    node: Any = tree
    for part in parts(path):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """State a value at a path."""
    *sections, last = parts(path)
    for part in sections:
        tree = tree.setdefault(part, {})
    tree[last] = value


def place(path: str) -> int:
    """Where a leaf is in the document; one that an open map holds is where the map is."""
    known = _places()
    return known.get(path, known.get(path.partition(".")[0], len(known)))


@cache
def _places() -> dict[str, int]:
    """The place of every section and leaf in the document."""
    places: dict[str, int] = {}
    for leaf in leaves():
        keys = leaf.path.replace("[]", "").removesuffix(".*").split(".")
        for count in range(1, len(keys) + 1):
            places.setdefault(".".join(keys[:count]), len(places))
    return places


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


# One value of each kind, the narrowest first: a count is a number too, and a leaf of texts takes any of them.
_KINDS: Final = (("text", "a"), ("switch", True), ("number", 0.5), ("integer", 1), ("list", ["a"]))


@lru_cache(maxsize=256)
def kind(path: str) -> str:
    """What a leaf holds: ``text``, ``switch``, ``number``, ``integer``, ``list`` or ``date``."""
    adapter = _adapter(path)
    fits = (name for name, value in _KINDS if adapter is not None and _accepts(adapter, value))
    return next(fits, "date" if path == "run.started" else "text")


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
    if find_leaf(path) is None and path not in _ROWS:
        return None
    *way, last = parts(path)
    if way and way[0] in OPEN:
        return TypeAdapter(_ENTRIES.get(way[0], Scalar), config=_STRICT) if len(last) <= 200 else None
    if ".".join(way) in INPUT_MAPS:
        return TypeAdapter(Scalar, config=_STRICT) if len(last) <= 200 else None
    model: type[BaseModel] | None = Receipt
    for key in way:
        field = _field(model, key)
        model = section_in(field.annotation)[0] if field is not None else None
    if model is None or (field := _field(model, last)) is None:
        return None
    whole = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return TypeAdapter(annotation, config=None if whole else _STRICT)


def _field(model: type[BaseModel] | None, key: str) -> FieldInfo | None:
    fields = model.model_fields.items() if model is not None else ()
    return next((field for name, field in fields if key == (field.alias or name)), None)


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
    accepted = leaf_type(path, adapter)
    advice = f"it takes {accepted}; such as --set {quote(f'{path}={accepted.example}')}"
    return Problem(path, f"{text!r} is not a value for it", advice), None


def taken(path: str) -> LeafType | None:
    """What the leaf at a path takes; None if a person cannot state it as a leaf of its own."""
    adapter = _adapter(path)
    return None if adapter is None else leaf_type(path, adapter)


_HEX: Final = re.compile(r"\{64\}")
_SUCH_AS: Final = re.compile(r"such as `([^`]+)`")
MAX_INTEGER: Final = 1 << 62  # where the format bounds an integer only because a database does
_NAMES: Final[Mapping[str, str]] = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "object": "an object",
}
_EXAMPLES: Final[Mapping[str, str]] = {"number": "0.5", "boolean": "true", "object": "{}"}
_NAMED: Final[Mapping[str, str]] = {
    "path.intended.attention": "sdpa_flash",
    "path.witnessed.attention": "sdpa_flash",
    "hardware.accelerator": "h200-sxm",
    "numerics.compute_dtype": "bf16",
    "run.lane": "cpu-torch",
}


class LeafType(NamedTuple):
    """The type in words, the allowed values if they are listed, and one value as it is typed."""

    type: str
    allowed: tuple[str, ...]
    example: str

    def __str__(self) -> str:
        return f"{self.type}: {', '.join(self.allowed)}" if self.allowed else self.type


def leaf_type(path: str, adapter: TypeAdapter[Any]) -> LeafType:
    """What the leaf at a path takes, by the schema of its field."""
    schema, leaf = adapter.json_schema(), find_leaf(path)
    form = _first_form(schema, schema.get("$defs", {}))
    allowed = tuple(str(item) for item in form.get("enum", ()))
    kinds = [_NAMES[kind] for choice in schema.get("anyOf", ()) if (kind := choice.get("type")) in _NAMES]
    words, example = _described(form)
    shown = _SUCH_AS.search(leaf.description) if leaf is not None else None
    return LeafType(
        "one of" if allowed else " or ".join(reversed(kinds)) if len(kinds) > 1 else words,
        allowed,
        _NAMED.get(path) or (allowed[0] if allowed else shown[1] if shown else example),
    )


def _first_form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first form that a value may have, null left out."""
    if "$ref" in schema:
        return _first_form(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return _first_form(choices[0], definitions) if choices else schema


def _described(form: Mapping[str, Any]) -> tuple[str, str]:
    """A form in words, and a value of it as it is typed behind ``=``."""
    kind = str(form.get("type", "a value"))
    if form.get("format") == "date-time":
        return "a time with its zone", "2026-03-02T09:00:00Z"
    if _HEX.search(str(form.get("pattern", ""))):
        return "a SHA-256 digest in hex", hashlib.sha256(b"").hexdigest()
    if kind == "array":
        inner = form.get("items", {})
        if "$ref" in inner:
            return "a list of objects", "[…]"
        words, example = _described(inner)
        item = example if inner.get("type") == "string" else json.loads(example)
        return f"a list of {words.removeprefix('an ')}", json.dumps([item])
    low, high = form.get("minimum"), form.get("maximum")
    bounds = f" of at least {low}" if low is not None else ""
    bounds += f" and at most {high}" if high is not None and high < MAX_INTEGER else ""
    example = str(max(4, int(low or 0))) if kind == "integer" else _EXAMPLES.get(kind, "VALUE")
    return _NAMES.get(kind, kind) + bounds, example
