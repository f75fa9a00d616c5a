"""Lane files: the TOML of each lane, checked key by key, and the folders that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, get_args

from receipts.axes.bookkeeping import checked
from receipts.axes.lane import (
    EVERY_METRIC,
    METRICS,
    MOST_DELTA,
    RATES,
    UNLISTED,
    Convention,
    Coupling,
    EvidenceLevel,
    Grade,
    Lane,
    Lineage,
    Target,
)
from receipts.base.errors import NotFound, RuleError, near
from receipts.base.files import read_small
from receipts.base.toml import parse_toml

_NESTED = {
    "documented": Lineage,
    "validated": Lineage,
    "impossible": Lineage,
    "couplings": Coupling,
    "targets": Target,
    "substrates": Target,
}
_CHOICES = {"convention": get_args(Convention), "evidence": get_args(EvidenceLevel), "grade": get_args(Grade)}


@dataclass(frozen=True)
class Lanes:
    """The lanes of this installation: the built-in folder, then the user's own, which may not shadow it.

    Folders are listed once: a rule set's digest is that of the lanes it was loaded with.
    """

    folders: tuple[Path, ...]
    bookkeeping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # beside each lane's own

    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(sorted(self._files))

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        known: dict[str, Path] = {}
        for place in self.folders:
            for path in sorted((place / "lanes").glob("*.toml")):
                if path.stem in known:
                    raise RuleError(f"lane {path.stem} is in both {known[path.stem].parent} and {path.parent}")
                known[path.stem] = path
        return known

    def get(self, name: str) -> Lane:
        """The lane of that name. Raises NotFound with the nearest names."""
        path = self._files.get(name)
        if path is None:
            raise NotFound(f"there is no lane {name!r}; known: {', '.join(self.names())}{near(name, self.names())}")
        return _load_cached(path, path.stat().st_mtime_ns, tuple(self.bookkeeping.items()))

    def of(self, name: str) -> Lane:
        """The lane that a receipt names, or ``unlisted``, which waives nothing and never witnesses a path."""
        return self.get(name if name in self._files else UNLISTED)

    def files(self) -> Iterable[Path]:
        """Files in the order of their names, for the rule set's digest."""
        return [path for _, path in sorted(self._files.items())]


@lru_cache(maxsize=64)
def _load_cached(path: Path, _changed: int, names: tuple[tuple[str, tuple[str, ...]], ...]) -> Lane:
    lane = load(path)
    own = lane.bookkeeping
    return replace(lane, bookkeeping={**own, **{role: (*own.get(role, ()), *more) for role, more in names}})


def load(path: Path) -> Lane:
    """Read one lane. Raises RuleError that names the file and the key."""
    try:
        table = parse_toml(read_small(path))
    except (OSError, ValueError) as error:
        raise RuleError(f"lane {path.name}: {error}; mend the file or remove it") from None
    return from_table(table, path)


def from_table(table: Mapping[str, Any], path: Path) -> Lane:
    """Check a parsed lane table key by key."""
    known = {item.name: item for item in fields(Lane)}
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise RuleError(f"lane {path.name}: no such key: {', '.join(unknown)}; see docs/lanes.md")
    missing = [name for name in ("name", "version", "title") if name not in table]
    if missing:
        raise RuleError(f"lane {path.name}: state {', '.join(missing)}")
    if table["name"] != path.stem:
        raise RuleError(f"lane {path.name}: its name is {table['name']!r}; name the file {table['name']}.toml")
    values: dict[str, Any] = {}
    for key, value in table.items():
        values[key] = _value(key, value, str(known[key].type), path)
    lane = _with_prior(Lane(**values), path)
    _check_names(lane, path)
    return lane


def _with_prior(lane: Lane, path: Path) -> Lane:
    """The lane with the published spread that it names as its σ."""
    if not lane.sigma_from:
        return lane
    if lane.sigma is not None:
        raise RuleError(f"lane {path.name}: it states sigma and sigma_from; state one of them")
    from receipts.axes.priors import prior

    try:
        published = prior(lane.sigma_from)
    except NotFound as error:
        raise RuleError(f"lane {path.name}: sigma_from: {error}") from None
    return replace(lane, sigma=published.sigma, sigma_df=published.df, sigma_from=published.name)


def _check_names(lane: Lane, path: Path) -> None:
    """A misspelled leaf would leave every path of the lane unwitnessed, for no reason that anybody could see."""
    from receipts.receipt.path import Intended, Witnessed

    for key, names, known in (
        ("witness", lane.witness, Witnessed.model_fields),
        ("path", tuple(lane.path), Intended.model_fields),
    ):
        strange = [name for name in names if name not in known]
        if strange:
            raise RuleError(f"lane {path.name}: {key}: no such leaf: {', '.join(strange)}; known: {', '.join(known)}")
    both = sorted(set(lane.postures) & set(lane.forbidden_postures))
    if both:
        raise RuleError(f"lane {path.name}: forbidden_postures: {', '.join(both)} is permitted too")


def _value(key: str, value: Any, wanted: str, path: Path) -> Any:
    def refuse(expected: str) -> RuleError:
        return RuleError(f"lane {path.name}: {key} must be {expected}, and is {value!r}")

    if key == "delta":
        return _deltas(value, path)
    if key == "bookkeeping":
        return checked(value, f"lane {path.name}")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise refuse(f"one of {', '.join(_CHOICES[key])}")
    if key in _NESTED:
        if not isinstance(value, list):
            raise refuse("a list of tables")
        try:
            return tuple(_NESTED[key](**_tuples(item)) for item in value)
        except TypeError as error:
            raise RuleError(f"lane {path.name}: {key}: {error}") from None
    if wanted.startswith("tuple"):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise refuse("a list of texts")
        return tuple(value)
    if wanted.startswith("Mapping"):
        if not isinstance(value, dict):
            raise refuse("a table")
        inner: type = list if key == "path" else str
        for name, item in value.items():
            if not isinstance(item, inner):
                raise refuse(f"a table of {'lists' if inner is list else 'texts'} ({name} is not)")
        return _tuples(value)
    if wanted == "bool" and not isinstance(value, bool):
        raise refuse("true or false")
    if wanted.startswith(("int", "float")) and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise refuse("a number")
    if wanted == "str" and not isinstance(value, str):
        raise refuse("a text")
    if wanted.startswith("date") and type(value) is not date:
        raise refuse("a day, as 2026-11-23")
    return value


def _deltas(value: Any, path: Path) -> dict[str, float]:
    """δ by metric; one number is that of every metric."""
    table = value if isinstance(value, dict) else {EVERY_METRIC: value}
    for name, share in table.items():
        at = "delta" if name == EVERY_METRIC else f"delta.{name}"
        if name not in (*METRICS, EVERY_METRIC):
            raise RuleError(f"lane {path.name}: {at}: no such metric; known: {', '.join(METRICS)}")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
            raise RuleError(f"lane {path.name}: {at} must be a share between 0 and 1, such as 0.01, and is {share!r}")
        if name in (*RATES, EVERY_METRIC) and share > MOST_DELTA:
            raise RuleError(
                f"lane {path.name}: {at} is {share:.1%}: the smallest effect that matters on rates and step time is at "
                f"most {MOST_DELTA:.0%}; noise widens intervals, and no δ has to allow for it"
            )
    return {name: float(share) for name, share in table.items()}


def _tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
