"""Pointers: a small file in git, ``NAME.receipt.toml``, that names a receipt, a digest, and where its bundle is.

Wherever a command takes a receipt's file it takes a pointer. The bundle comes from a folder, over HTTP, or from an OCI
registry, and each byte is held against the digests that git keeps: what a place answers is never trusted.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.untrusted_text import parse_toml
from receipts.plugins.trust import verify
from receipts.plugins.trust.places import fetched
from receipts.receipt import Document
from receipts.receipt.load import refusal

SCHEMA: Final = "1.0"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_KEYS: Final = {"schema_version", "receipt", "digest", "bundle", "key"}
_DO: Final = "write it with: receipts pointer BUNDLE --at PLACE"


class Pointer(NamedTuple):
    """The id of a receipt, the digest of its bundle, where that is, and the public key that must have signed it."""

    receipt: str
    digest: str
    bundle: str
    key: str | None = None

    def text(self) -> str:
        """The file."""
        values = {"schema_version": SCHEMA, **self._asdict()}
        return "".join(f'{name} = "{value}"\n' for name, value in values.items() if value is not None)


def read_pointer(source: str) -> Pointer:
    """The pointer in a file. Raises InputError."""
    try:
        table = parse_toml(files.read_small(Path(source)))
    except FileNotFoundError:
        raise refusal(source, "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:
        raise refusal(source, str(error), _DO) from None
    known = f"known: {', '.join(sorted(_KEYS))}"
    problems = [Problem(name, "there is no such key", known) for name in sorted(table.keys() - _KEYS)]
    problems += [
        Problem(name, "it is missing, or no text", _DO)
        for name in sorted(_KEYS)
        if not isinstance(table.get(name), str) and (name != "key" or name in table)
    ]
    if not problems and table["schema_version"] != SCHEMA:
        problems.append(Problem("schema_version", f"it is {table['schema_version']}", f"this version reads {SCHEMA}"))
    for name, start in (("receipt", "sha256:"), ("digest", "")):
        if not problems and not _DIGEST.fullmatch(start + str(table[name])):
            problems.append(Problem(name, "this is no SHA-256", _DO))
    if problems:
        raise InputError(source, problems)
    return Pointer(*(table.get(name) for name in Pointer._fields))  # type: ignore[arg-type]  # each is checked above


def document(source: str) -> Document:
    """The receipt that a pointer names. Raises InputError where a byte is another, Unreachable, UsageError."""
    pointer, held = _followed(source)
    raw = held.get(f"receipts/{pointer.receipt}.json", b"")
    if verify.sha256(raw) != pointer.receipt:
        raise refusal(source, f"the bundle has no receipt {pointer.receipt[:12]}", _DO, "receipt")
    return Document(raw, source)


def evidence(source: str) -> Mapping[str, Path]:
    """The files of evidence in the bundle of a pointer, by their digests; they go when the program ends."""
    _, held = _followed(source)
    kept = {name.partition("/")[2]: content for name, content in held.items() if name.startswith("evidence/")}
    if not kept:
        return {}
    folder = Path(tempfile.mkdtemp(prefix="receipts-pointer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    paths = {verify.sha256(content): folder / verify.sha256(content) for content in kept.values()}
    for content in kept.values():
        (folder / verify.sha256(content)).write_bytes(content)
    return paths


def _followed(source: str) -> tuple[Pointer, Mapping[str, bytes]]:
    """A pointer and the files of its bundle, each as the manifest lists it; with a key, as that signed them."""
    pointer = read_pointer(source)
    try:
        return pointer, _held(pointer, Path(source).parent)
    except verify.REFUSALS as error:
        do = "the bundle was changed, or the pointer is old; make it again: receipts pointer"
        raise refusal(source, f"the bundle is refused: {error}", do, "bundle") from None


@lru_cache(maxsize=4)
def _held(pointer: Pointer, beside: Path) -> Mapping[str, bytes]:
    """The files of a bundle. Raises what `fetched` does, and Refused."""
    raw = fetched(pointer.bundle, pointer.digest, beside)
    if (digest := f"sha256:{verify.sha256(raw)}") != pointer.digest:
        raise verify.Refused(f"{pointer.bundle} has {digest}")
    if digest == f"sha256:{pointer.receipt}":  # a receipt by itself
        return {f"receipts/{pointer.receipt}.json": raw}
    if pointer.key is not None:
        verify.check(raw, [verify.Key(pointer.key)])
    return verify.unpack(raw)


def pointer_to(raw: bytes, place: str, receipt: str | None, key: str | None) -> Pointer:
    """A pointer to a bundle, or to a receipt by itself. Raises UsageError where it is none, or of several."""
    digest = verify.sha256(raw)
    try:
        held: Any = verify.unpack(raw)
    except verify.Refused:
        held = {f"receipts/{digest}.json": raw} if raw.lstrip()[:1] == b"{" else {}
    ids = [match[1] for name in held if (match := re.fullmatch(r"receipts/([0-9a-f]{64})\.json", name))]
    chosen = [item for item in ids if item.startswith(receipt or "")]
    if len(chosen) != 1:
        known = ", ".join(item[:12] for item in ids[:10])
        raise UsageError(f"name one receipt of the bundle with --receipt: {known}" if ids else "this is not a bundle")
    if '"' in place or "\\" in place or not place.isprintable():
        raise UsageError(f"--at {place}: write a path, https://…, or oci://HOST/NAME:TAG")
    if key is not None:
        try:
            verify.check(raw, [verify.Key(key)])
        except verify.REFUSALS as error:
            raise UsageError(f"--key: {error}") from None
    return Pointer(chosen[0], f"sha256:{digest}", place, key)
