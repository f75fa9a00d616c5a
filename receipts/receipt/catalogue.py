"""Every leaf of the receipt with its role and axis, read from the fields' own declarations."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from receipts.receipt.document import Receipt
from receipts.receipt.leaf import Role, Section


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
        if not declared:
            inner, listed = section_in(field.annotation)
            if inner is None:
                raise TypeError(f"{path} declares no role: use axis(), observed(), … of receipts.receipt.leaf")
            yield from _walk(inner, f"{path}[]." if listed else f"{path}.")
            continue
        inner, listed = section_in(field.annotation)
        if inner is not None and listed and not declared.get("open"):
            yield from _walk(inner, f"{path}[].")
            continue
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
        )


@lru_cache(maxsize=1)
def leaves() -> tuple[Leaf, ...]:
    """All leaves in the order of the document."""
    return tuple(_walk(Receipt, ""))


@lru_cache(maxsize=1)
def by_path() -> Mapping[str, Leaf]:
    """Leaves by path; the keys of an open map stand under ``map.*``."""
    return {leaf.path: leaf for leaf in leaves()}


def find(path: str) -> Leaf | None:
    """The leaf at a concrete path such as ``flags.NCCL_ALGO`` or ``model.hidden``; None where there is none."""
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
