"""Reading ``claims.toml``: every problem is reported, each with its path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from receipts.base.errors import InputError, Problem
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml
from receipts.judging.claims.bound import difference
from receipts.judging.claims.claim import VERSION, Claim, ClaimsDocument
from receipts.receipt.problems import problems as described_problems

MAX_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """A file of claims. `folder` is where the files that it names lie; None where it names none, as in a store."""

    source: str
    folder: Path | None
    claims: tuple[Claim, ...]


def read(path: str | Path) -> ClaimFile:
    """Read a ``claims.toml``. Raises InputError with every problem, each with its path."""
    place = Path(path)
    try:
        raw = read_small(place, MAX_BYTES)
    except OSError as error:
        raise InputError(str(path), [Problem("", f"it cannot be read: {error.strerror}", "check the path")]) from None
    return ClaimFile(str(path), place.parent, parse(raw, str(path)))


def parse(raw: bytes, source: str) -> tuple[Claim, ...]:
    """The claims of a TOML document. Raises InputError."""
    if len(raw) > MAX_BYTES:
        raise InputError(source, [Problem("", f"it has more than {MAX_BYTES // 2**20} MiB", "divide it")])
    try:
        tree = parse_toml(raw)
    except ValueError as error:
        raise InputError(source, [Problem("", f"this is not TOML: {error}")]) from None
    version = tree.get("schema_version")
    if isinstance(version, str) and version != VERSION:
        do = f"this program reads {VERSION}; upgrade frontier-receipts" if version > VERSION else f"write {VERSION}"
        raise InputError(source, [Problem("schema_version", f"there is no version {version}", do)])
    try:
        document = ClaimsDocument.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        raise InputError(source, _problems(error, tree)) from None
    wrong = [*_twice(document.claim), *_differences(document.claim)]
    if wrong:
        raise InputError(source, wrong)
    return document.claim


def _differences(claims: Sequence[Claim]) -> Iterator[Problem]:
    for index, claim in enumerate(claims):
        if claim.effect is not None and (why := difference(claim.effect)) is not None:
            yield Problem(f"claim[{index}].effect", *why.split("; ", 1))


def from_json(text: str, source: str) -> Claim:
    """One claim, as a store keeps it. Raises InputError."""
    try:
        return Claim.model_validate_json(text)
    except ValidationError as error:
        raise InputError(source, _problems(error, json.loads(text))) from None


def to_json(claim: Claim) -> str:
    """A claim as a store keeps it: what it states and nothing else."""
    return json.dumps(claim.model_dump(mode="json", exclude_none=True, exclude_defaults=True), ensure_ascii=False)


def _problems(error: ValidationError, tree: Any) -> list[Problem]:
    return list(_split(described_problems(error, tree)))


def _split(problems: list[Problem]) -> Iterator[Problem]:
    """Problems of a claim as a whole name the key first: one problem a key, without the advice for receipts."""
    for problem in problems:
        if problem.what.startswith("value error, "):
            for part in problem.what.removeprefix("value error, ").split("\n"):
                key, separator, reason = part.partition(": ")
                known = separator and key in Claim.model_fields
                yield Problem(f"{problem.at}.{key}" if known else problem.at, reason if known else part)
        elif problem.what == "there is no such key":
            yield Problem(problem.at, problem.what, f"the keys of a claim are {', '.join(Claim.model_fields)}")
        else:
            yield problem


def _twice(claims: tuple[Claim, ...]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, claim in enumerate(claims):
        if claim.id in seen:
            yield Problem(f"claim[{index}].id", f"{claim.id} is claim[{seen[claim.id]}] too", "give it another id")
        seen.setdefault(claim.id, index)
