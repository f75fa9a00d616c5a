"""The rule set in force: rules, lanes and studies, the built-in ones and those that ``receipts.toml`` names.

Nothing is loaded from the current directory unasked: a ``receipts.toml`` is read where ``--config`` or
``RECEIPTS_CONFIG`` names it.
"""

from __future__ import annotations

import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from receipts import rule as rules_module
from receipts.errors import UsageError
from receipts.lane import Lanes
from receipts.resources import folder
from receipts.rule import RuleSet
from receipts.value import dataclass

if TYPE_CHECKING:
    from receipts.study import Studies


@dataclass(frozen=True)
class Rulebook:
    """Everything that verdicts depend on beside the receipts. Read on first use."""

    extra: tuple[Path, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The built-in validators folder, then the user's."""
        return (folder("validators"), *self.extra)

    @cached_property
    def lanes(self) -> Lanes:
        """Lanes."""
        return Lanes(self.folders)

    @cached_property
    def rules(self) -> RuleSet:
        """Rules, with the digest over rules, lanes and studies."""
        return rules_module.load(self.folders, [*self.lanes.files(), *self._study_files()])

    @cached_property
    def studies(self) -> Studies:
        """Studies."""
        from receipts.study import load

        return load(self._study_files())

    def _study_files(self) -> list[Path]:
        return [path for place in self.folders if (path := place / "studies.toml").is_file()]


@dataclass(frozen=True)
class Config:
    """What ``receipts.toml`` says. Paths are relative to the file."""

    validators: tuple[Path, ...] = ()
    reports: tuple[Path, ...] = ()
    store: str | None = None


_KEYS = {"validators", "reports", "store"}


def read_config(path: Path | None) -> Config:
    """Read a ``receipts.toml``; None is the empty configuration. Raises UsageError naming the key."""
    if path is None:
        return Config()
    try:
        with path.open("rb") as stream:
            table = tomllib.load(stream)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; leave --config out, or write it") from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise UsageError(f"{path}: no such key: {', '.join(unknown)}; known: {', '.join(sorted(_KEYS))}")
    store = table.get("store")
    if store is not None and not isinstance(store, str):
        raise UsageError(f"{path}: store must be a text")
    return Config(_folders(table, "validators", path), _folders(table, "reports", path), store)


def _folders(table: dict[str, object], key: str, path: Path) -> tuple[Path, ...]:
    named = table.get(key, [])
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise UsageError(f"{path}: {key} must be a folder or a list of folders")
    places = tuple(path.parent / item for item in named)
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{path}: {key}: there is no folder {place}")
    return places


def builtin() -> Rulebook:
    """The rulebook as shipped."""
    return Rulebook()
