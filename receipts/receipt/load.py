"""From bytes to a receipt: strict JSON, limits, versions, and every error at once with its path."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipts.errors import InputError, Problem

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes as they came, with the id that they have. ``source`` names where they came from, for messages."""

    raw: bytes
    source: str

    @property
    def id(self) -> str:
        """SHA-256 of the bytes, in hex: what ``sha256sum run.json`` prints."""
        return hashlib.sha256(self.raw).hexdigest()


def read(path: str | Path) -> Document:
    """Read a file of at most 16 MiB. Raises InputError for what is not a readable regular file of that size."""
    source = str(path)
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise _one(source, "", "this is a folder", "name the receipt's file, such as run.json") from None
    except FileNotFoundError:
        raise _one(source, "", "there is no such file", "check the path") from None
    except PermissionError:
        raise _one(source, "", "the file may not be read", "check its permissions") from None
    except OSError as error:
        raise _one(source, "", f"the file cannot be read: {error.strerror}", "check the path") from None
    return Document(raw, source)


def _one(source: str, at: str, what: str, do: str) -> InputError:
    return InputError(source, [Problem(at or "$", what, do)])


class _Duplicate(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(key)
            seen.add(key)
    return found


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a 64-bit float")
    return number


def _integer(text: str) -> int:
    if len(text) > 25:
        raise ValueError("an integer of more than 25 digits")
    return int(text)


def _too_deep(raw: bytes) -> bool:
    """Whether it nests deeper than MAX_DEPTH, found without recursion so that no document exhausts the stack."""
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def parse_json(document: Document) -> dict[str, Any]:
    """Strict JSON: UTF-8 without a byte-order mark, one object, no duplicate keys, no NaN, bounded size and depth."""
    source, raw = document.source, document.raw
    if len(raw) > MAX_BYTES:
        raise _one(source, "$", "the document is larger than 16 MiB", "attach traces by URI, do not inline them")
    if not raw.strip():
        raise _one(source, "$", "the document is empty", "write a skeleton with: receipts init LANE")
    if raw[:3] == b"\xef\xbb\xbf" or raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _one(source, "$", "the document starts with a byte-order mark", "save it as UTF-8 without one")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _one(source, "$", f"byte {error.start} is not UTF-8", "save the document as UTF-8") from None
    if _too_deep(raw):
        raise _one(source, "$", f"the document nests deeper than {MAX_DEPTH} levels", "flatten it")
    try:
        found = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except _Duplicate as error:
        raise _one(source, "$", f"the key {str(error)!r} stands twice in one object", "keep one of them") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _one(source, where, f"this is not JSON: {error.msg}", "check the file was written whole") from None
    except (ValueError, RecursionError) as error:
        raise _one(source, "$", f"this is not strict JSON: {error}", "leave the value out or state a number") from None
    if not isinstance(found, dict):
        raise _one(source, "$", "the document is not a JSON object", "a receipt is one object: { … }")
    return found
