"""Reading older receipts: one step a version, applied to the parsed object; bytes and id never change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from receipts.base.errors import InputError, Problem
from receipts.receipt.document import VERSION
from receipts.receipt.problems import shown

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# From a version to the next: {"1.0": one_zero_to_one_one}. Empty while 1.0 is the only version.
UPCASTERS: Mapping[str, tuple[str, Upcaster]] = {}


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
    """Bring a parsed document to ``target``. Raises InputError for a version that this program cannot read."""
    version = tree.get("schema_version")
    if version is None:
        problem = Problem("schema_version", "it is missing", f'state "schema_version": "{target}"')
        raise InputError(source, [problem])
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        what = f"{shown(repr(version))} is no version"
        raise InputError(source, [Problem("schema_version", what, f'state "{target}"')])
    while version != target:
        if _numbers(version) > _numbers(target):
            do = "upgrade with: pip install --upgrade frontier-receipts"
            what = f"it is version {version}, and this program reads up to {target}"
            raise InputError(source, [Problem("schema_version", what, do)])
        if version not in steps:
            raise InputError(source, [Problem("schema_version", f"there is no version {version}", f"state {target}")])
        version, step = steps[version]
        tree = {**step(tree), "schema_version": version}
    return tree
