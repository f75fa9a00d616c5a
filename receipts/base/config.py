"""Configuration: what a ``receipts.toml`` adds to the built-in lanes, rules and report templates.

It is read only where ``--config`` or ``RECEIPTS_CONFIG`` names it: nothing is loaded from the current directory
unasked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from receipts.base.errors import UsageError
from receipts.base.files import read_small
from receipts.base.toml import parse_toml


@dataclass(frozen=True)
class Config:
    """What ``receipts.toml`` says. Paths are relative to the file.

    A server sends notices to the URLs in ``webhooks``, and to those in ``notify`` with the library apprise.
    ``bookkeeping`` are options that say nothing of what is computed, by role (`receipts.axes.bookkeeping`).
    """

    validators: tuple[Path, ...] = ()
    reports: tuple[Path, ...] = ()
    store: str | None = None
    webhooks: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    bookkeeping: Mapping[str, object] = field(default_factory=dict)


_KEYS = {"validators", "reports", "store", "webhooks", "notify", "bookkeeping"}


def read_config(path: Path | None) -> Config:
    """Read a ``receipts.toml``; None is the empty configuration. Raises UsageError naming the key."""
    if path is None:
        return Config()
    try:
        table = parse_toml(read_small(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; leave --config out, or write it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise UsageError(f"{path}: no such key: {', '.join(unknown)}; known: {', '.join(sorted(_KEYS))}")
    store = table.get("store")
    if store is not None and not isinstance(store, str):
        raise UsageError(f"{path}: store must be a text")
    validators, reports = (_folders(table, name, path) for name in ("validators", "reports"))
    webhooks, notify = (_texts(table, name, path, "URL") for name in ("webhooks", "notify"))
    bookkeeping = table.get("bookkeeping", {})
    if not isinstance(bookkeeping, dict):
        raise UsageError(f"{path}: bookkeeping must be a table of lists of names, as output = ['artifact_dir']")
    return Config(validators, reports, store, webhooks, notify, bookkeeping)


def _texts(table: dict[str, object], key: str, path: Path, kind: str) -> tuple[str, ...]:
    named = table.get(key, [])
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise UsageError(f"{path}: {key} must be a {kind} or a list of {kind}s")
    return tuple(named)


def _folders(table: dict[str, object], key: str, path: Path) -> tuple[Path, ...]:
    places = tuple(path.parent / item for item in _texts(table, key, path, "folder"))
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{path}: {key}: there is no folder {place}")
    return places
