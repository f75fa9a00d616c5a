"""The problems of a refused document: findings as sentences, each with its path; for TOML of people as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from receipts.base.errors import InputError, Problem
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml

MAX_REPORTED = 50
MAX_SHOWN = 120
Location = tuple[int | str, ...]

# What a value of each open map may be. Pydantic gives one error for each member of the union; people get one.
ENTRIES: Mapping[str, str] = {
    "wheels": "a version, or an object with its version",
    "flags": "a text, a number or true/false, or an object with such a value",
    "patches": "a text, a number or true/false",
    "features": "a text, a number or true/false",
    "notes": "a text, a number, true/false or a list of texts",
    "observed": "a text, a number or true/false",
}
_OBJECTS = {"wheels": "Wheel", "flags": "Flag"}
_TYPES = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "datetime_type": "a time, written as a text",
    "date_type": "a day, such as 2026-05-20",
}
_DIGEST, _EVIDENCE_LEVEL = "{64}", "intent|backend|kernels"


def problems(error: ValidationError, tree: Any) -> list[Problem]:
    """One problem a place in the document, at most `MAX_REPORTED`, in the document's order.

    Nothing is worked out for errors beyond these: a hostile document has a million of them.
    """
    unique: dict[str, Problem] = {}
    errors = error.errors(include_url=False, include_input=False)
    for at, item in enumerate(errors):
        problem: Problem | None
        if (entry := _entry(item["loc"])) is not None:
            problem = _of_entry(item, entry, tree)
        else:
            place, value = _find(item["loc"], tree)
            problem = Problem(place, _what(item, value), _do(item, place))
        if problem is not None:
            unique.setdefault(problem.at, problem)
        if len(unique) > MAX_REPORTED:
            return [*list(unique.values())[:MAX_REPORTED], _more(len(errors) - at)]
    return list(unique.values())


def capped(unique: list[Problem]) -> list[Problem]:
    """No more problems than a person reads, and how many more there are."""
    if len(unique) <= MAX_REPORTED:
        return unique
    return [*unique[:MAX_REPORTED], _more(len(unique) - MAX_REPORTED)]


def _more(count: int) -> Problem:
    return Problem("$", f"and {count:,} more problem{'s' if count != 1 else ''}", "correct these first")


def shown(text: str) -> str:
    """A key or name from a document, made harmless for a terminal and cut to a readable length."""
    harmless = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return harmless if len(harmless) <= MAX_SHOWN else f"{harmless[: MAX_SHOWN - 1]}…"


def join(path: str, part: int | str) -> str:
    """One step down a path."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{shown(part)}" if path else shown(part)


def _entry(location: Location) -> tuple[str, Location, Location] | None:
    """Map, place of the entry, and the rest (union member first), for a location inside an open map's entry."""
    if location and location[0] in ENTRIES and len(location) > 2:
        return str(location[0]), location[:2], location[2:]
    if location and location[0] == "evidence" and len(location) > 4 and location[2] == "observed":
        return "observed", location[:4], location[4:]
    return None


def _of_entry(item: Any, entry: tuple[str, Location, Location], tree: Any) -> Problem | None:
    name, place, rest = entry
    at, value = _find(place, tree)
    if rest[0] == "[key]":
        return Problem(at, f"the key is wrong: {_what(item, place[-1])}", "")
    if isinstance(value, dict) and name in _OBJECTS:
        if rest[0] != _OBJECTS[name] or len(rest) < 2:
            return None
        keys = "version, digest and editable" if name == "wheels" else "value and before_runtime"
        do = f"its keys are {keys}" if item["type"] == "extra_forbidden" else _do(item, at)
        inner = value.get(rest[1]) if isinstance(rest[1], str) else None
        # The scalar union inside a flag's object has members of its own: told once, as at the top.
        what = f"it must be a text, a number or true/false, {_is(inner)}" if len(rest) > 2 else _what(item, inner)
        return Problem(join(at, rest[1]), what, do)
    if isinstance(value, list) and name == "notes" and len(rest) > 1 and isinstance(rest[1], int):
        return Problem(join(at, rest[1]), _what(item, value[rest[1]]), "")
    if isinstance(value, list) and name == "notes" and len(value):
        return None
    if isinstance(value, str):
        return Problem(at, _what(item, value), _do(item, at)) if item["type"].startswith("string_too") else None
    return Problem(at, f"it must be {ENTRIES[name]}, {_is(value)}", "leave it out where it is not known")


def _find(location: Location, tree: Any) -> tuple[str, Any]:
    """The path as the document has it, and its value; pydantic adds names that no document has."""
    path, node = "", tree
    for position, part in enumerate(location):
        if isinstance(part, int):
            if not isinstance(node, list) or part >= len(node):
                break
            path, node = join(path, part), node[part]
        elif isinstance(node, dict) and part in node:
            path, node = join(path, part), node[part]
        elif isinstance(node, dict) and position == len(location) - 1:
            path, node = join(path, part), None
        else:
            break
    return path or "$", node


def _is(value: Any) -> str:
    kinds = {str: "a text", dict: "an object", list: "a list", type(None): "null"}
    if isinstance(value, bool):
        return f"and is {str(value).lower()}"
    if isinstance(value, int | float):
        return f"and is {shown(str(value))}"
    return f"and is {kinds.get(type(value), 'something else')}"


def _what(item: Any, value: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind in _TYPES:
        return f"it must be {_TYPES[kind]}, {_is(value)}"
    if kind == "literal_error":
        return f"it is not one of {context['expected']}"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        if _EVIDENCE_LEVEL in pattern:
            return "it is not one of 'intent', 'backend' or 'kernels'"
        return "it must be 64 hex digits in lower case" if _DIGEST in pattern else f"it must match {pattern}"
    sentences = {
        "missing": "it is required and not stated",
        "extra_forbidden": "there is no such key",
        "finite_number": "it is not a finite number",
        "timezone_aware": "the time has no zone",
        "string_too_short": "it is empty",
        "string_too_long": f"it has more than {context.get('max_length')} characters",
        "too_long": f"it has more than {context.get('max_length')} entries",
        "greater_than_equal": f"it must be {context.get('ge')} or more, {_is(value)}",
        "less_than_equal": f"it must be {context.get('le')} or less, {_is(value)}",
        "json_invalid": f"this is not JSON: {context.get('error')}",
    }
    if kind in sentences:
        return sentences[kind]
    if kind.startswith("datetime"):
        return f"it is not a time: {context.get('error', item['msg'])}"
    message: str = item["msg"]
    return message[0].lower() + message[1:]


def _do(item: Any, at: str) -> str:
    kind = item["type"]
    if kind == "extra_forbidden":
        # The key that was meant: one that reads like this path, else one of that name elsewhere.
        import difflib  # only a refusal needs it, and every start of the program would pay for it

        from receipts.receipt.leaves import leaves

        names = {leaf.path.replace("[]", "").removesuffix(".*") for leaf in leaves()}
        names |= {name.rsplit(".", 1)[0] for name in names if "." in name}
        plain = ".".join(part.partition("[")[0] for part in at.split("."))
        place, _, bare = plain.rpartition(".")
        beside = sorted(name.rpartition(".")[2] for name in names if name.rpartition(".")[0] == place)
        close = [f"{place}.{name}".lstrip(".") for name in difflib.get_close_matches(bare, beside, n=1, cutoff=0.75)]
        close = close or [name for name in sorted(names) if name.rpartition(".")[2] == bare and name != plain][:1]
        close = close or difflib.get_close_matches(plain, sorted(names), n=1, cutoff=0.85)
        return f"did you mean {close[0]}?" if close else "leave it out, or put it under notes or features"
    if kind == "missing":
        return "state it; receipts never fill a default"
    if kind == "timezone_aware":
        return "add its zone, such as Z or +02:00"
    if kind.startswith("datetime"):
        return "write it like 2026-03-02T09:00:00Z"
    if kind == "too_long":
        return "keep the longer list as a file, and name it under evidence"
    return ""


M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path, model: type[M], page: str) -> M:
    """Read and check a file. Raises InputError with every problem and its place; ``page`` lists the keys."""
    try:
        table = parse_toml(read_small(path))
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    except ValueError as error:
        raise InputError(str(path), [Problem("$", str(error), "correct the file")]) from None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        # A key is one of this file, and no axis of a receipt.
        of_key, do = ("there is no such key", "it is required and not stated"), f"{page} lists the keys"
        wrong = [item._replace(do=do) if item.what in of_key else item for item in problems(error, table)]
        raise InputError(str(path), wrong) from None
