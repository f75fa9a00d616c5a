"""Reading older receipts: one step a version, applied to the parsed object; bytes and id never change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from receipts.base.errors import InputError, Problem
from receipts.receipt.document import VERSION
from receipts.receipt.problems import shown

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
        what = f"{shown(repr(version))} is no version"
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
