"""The parsed receipt: model, id, bytes, and its stated leaves as one flat map.

Older receipts are read one step a version, applied to the parsed object; bytes and id never change. The digest in
``run.recorded`` shows whether a document is still as the program that wrote it left it. It covers the bytes of the
document with 64 zeros in its own place. It shows an edit by hand; it proves nothing against somebody who computes it
again, which is what a signature is for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import SchemaValidator

from receipts.base.errors import InputError, Problem
from receipts.receipt.document import VERSION, Receipt
from receipts.receipt.leaves import Flat
from receipts.receipt.load import Document, parse_json, surely_strict
from receipts.receipt.problems import problems, shown

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# From a version to the next: {"1.1": one_one_to_two_zero}. Empty while every version is read as it is.
UPCASTERS: Mapping[str, tuple[str, Upcaster]] = {}
# Versions whose documents the model reads as they are: 1.1 adds leaves alone, none of which an older document implies.
READ_AS_THEY_ARE = frozenset({"1.0", VERSION})


_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def upcast(
    tree: dict[str, Any],
    source: str,
    *,
    target: str = VERSION,
    steps: Mapping[str, tuple[str, Upcaster]] = UPCASTERS,
) -> dict[str, Any]:
    """Bring a parsed document to ``target``, or to a version that is read as it is.

    Raises InputError for a version that this program cannot read.
    """
    version = tree.get("schema_version")
    if version is None:
        problem = Problem("schema_version", "it is missing", f'state "schema_version": "{target}"')
        raise InputError(source, [problem])
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        what = f"{shown(repr(version))} is not a version"
        raise InputError(source, [Problem("schema_version", what, f'state "{target}"')])
    while version != target and version not in READ_AS_THEY_ARE:
        if _numbers(version) > _numbers(target):
            do = "upgrade with: pip install --upgrade frontier-receipts"
            what = f"it is version {version}, and this program reads up to {target}"
            raise InputError(source, [Problem("schema_version", what, do)])
        if version not in steps:
            raise InputError(source, [Problem("schema_version", f"there is no version {version}", f"state {target}")])
        version, step = steps[version]
        tree = {**step(tree), "schema_version": version}
    return tree


LARGE = 1024 * 1024  # bytes; of a larger document a list is read as far as its first bad entry


@dataclass(frozen=True)
class Parsed:
    """A receipt with its identity. ``id`` and ``raw`` are those of the bytes as they came."""

    id: str
    raw: bytes
    source: str
    receipt: Receipt

    @cached_property
    def flat(self) -> Flat:
        """What the receipt states, by paths."""
        return Flat(self.receipt)

    @property
    def stated(self) -> Mapping[str, Any]:
        """Every stated leaf by its dotted path; lists of values are leaves, rows of a list are ``chips[0].…``."""
        return self.flat

    @property
    def places(self) -> Set[str]:
        """Every section, map or list in which something is stated: ``memory``, ``memory.chips``, …."""
        return self.flat.places

    def states(self, path: str) -> bool:
        """Whether a leaf, or anything below a section, map or list, is stated."""
        return self.flat.states(path)

    @property
    def name(self) -> str:
        """What to call it in a sentence: its label, else the start of its id."""
        return self.receipt.run.label or self.id[:12]


def parse(document: Document) -> Parsed:
    """Check a document and return the receipt. Raises InputError with every problem, each with its path."""
    # Of a large document the limits are looked at first.
    modelled = _modelled(document) if len(document.raw) <= LARGE else None
    if modelled is not None and surely_strict(document.raw, modelled.flat.keys_written):
        return modelled  # surely nothing of it is to be refused: a third of the exact reader's time
    tree = parse_json(document)
    if modelled is not None:
        return modelled
    current = upcast(tree, document.source)
    raw = document.raw if current is tree else json.dumps(current).encode()
    try:
        receipt = _model(raw)
    except ValidationError as error:
        raise InputError(document.source, problems(error, current)) from None
    return Parsed(document.id, document.raw, document.source, receipt)


def parse_again(document: Document) -> Parsed:
    """The receipt of bytes that `parse` took before, as a store's are: a third of the time.

    That they are strict JSON was seen then; what the model asks is asked again. Raises InputError as `parse` does.
    """
    return _modelled(document) or parse(document)


def _modelled(document: Document) -> Parsed | None:
    """The receipt as the model alone reads it; None if it is refused, or is of another version."""
    try:
        receipt = _model(document.raw)
    except ValidationError:
        return None
    if receipt.schema_version not in READ_AS_THEY_ARE:
        return None
    return Parsed(document.id, document.raw, document.source, receipt)


def _model(raw: bytes) -> Receipt:
    """The receipt of JSON bytes. Raises ValidationError, which takes half a kilobyte an error."""
    if len(raw) <= LARGE:
        return Receipt.model_validate_json(raw)
    receipt: Receipt = _validator_of_large().validate_json(raw)
    return receipt


@cache
def _validator_of_large() -> SchemaValidator:
    """The model's validator, but every list ends at its first bad entry: a million errors take a gigabyte."""
    Receipt.model_rebuild()
    # With the option the sections' own validators would be taken instead of these.
    return SchemaValidator(_failing_fast(Receipt.__pydantic_core_schema__), None, _use_prebuilt=False)


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        rest = {key: _failing_fast(value) for key, value in schema.items()}
        return {**rest, "fail_fast": True} if schema.get("type") in ("tuple", "list") else rest
    if isinstance(schema, list):
        return [_failing_fast(item) for item in schema]
    return schema


UNWRITTEN: Final = "0" * 64


def intact(parsed: Parsed) -> bool | None:
    """Whether the document is as its program wrote it; None if no program says that it wrote it."""
    recorded = parsed.receipt.run.recorded
    if recorded is None:
        return None
    digest = recorded.digest.encode()
    if parsed.raw.count(digest) != 1:
        return False
    return hashlib.sha256(parsed.raw.replace(digest, UNWRITTEN.encode())).hexdigest() == recorded.digest


def listed_digests(parsed: Parsed) -> frozenset[str]:
    """The digests of the files behind a receipt: of its evidence, and of its recorder's journals."""
    recorded = parsed.receipt.run.recorded
    digests = {entry.sha256 for entry in parsed.receipt.evidence or () if entry.sha256}
    return frozenset(digests.union(recorded.journals or () if recorded is not None else ()))


def sealed(raw: bytes) -> bytes:
    """The bytes with their digest where `UNWRITTEN` is; as they are without it."""
    place = UNWRITTEN.encode()
    return raw.replace(place, hashlib.sha256(raw).hexdigest().encode()) if raw.count(place) == 1 else raw


def is_seen(parsed: Parsed, path: str) -> bool:
    """Whether the recorder, or a reader of logs, states a leaf, and no person does."""
    recorded = parsed.receipt.run.recorded
    if recorded is None:
        return False
    read = any(path in (entry.read or ()) for entry in parsed.receipt.evidence or ())
    if recorded.by == "ingest" and (read or recorded.sources is None):
        return True
    sources = recorded.sources or {}
    head = path.partition(".")[0]
    places = (path, path.replace("path.", "path.witnessed.", 1), path.replace("path.", "path.intended.", 1))
    sources_of = [sources[place] for place in dict.fromkeys(places) if place in sources and place in parsed.stated]
    if not sources_of and any(place in parsed.stated for place in places):
        sources_of = [sources.get(f"{head}.*", "caller")]
    return bool(sources_of) and sources_of[0] != "caller"
