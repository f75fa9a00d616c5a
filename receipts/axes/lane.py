"""Lanes: named, versioned contracts, one TOML file each, checked key by key, and the folders that hold them.

A lane declares which accelerator, framework and path a launch promises, what evidence shows that, which axes do not
exist for it, and the tolerances that rules apply. ``docs/lanes.md`` explains every key. Until a lane has a spread of
its own it may name a prior, a spread between launches that others published; a verdict states whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from receipts.axes.catalogue import Bookkeeping, checked_bookkeeping
from receipts.base.environment import bundled_folder
from receipts.base.errors import NotFound, RuleError, near
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml


class Prior(NamedTuple):
    """σ of a launch's log step time, pooled over submissions; ``df`` its degrees of freedom."""

    name: str
    sigma: float
    df: float
    launches: int
    submissions: int


@cache
def priors() -> dict[str, Prior]:
    """The priors that ship, by name in lower case. `benchmarks/published_noise.py` writes them."""
    table = parse_toml((bundled_folder("validators") / "priors.toml").read_bytes())
    listed = [Prior(**item) for item in table.get("prior", ())]
    return {item.name.lower(): item for item in listed}


def prior(name: str) -> Prior:
    """The prior of that name. Raises NotFound with the nearest names."""
    known = priors()
    item = known.get(" ".join(name.lower().split()))
    if item is None:
        names = [one.name for one in known.values()]
        raise NotFound(f"there is no published spread {name!r}; docs/published-noise.md lists them{near(name, names)}")
    return item


Convention = Literal["expert_in_data", "expert_in_world", "none"]
Grade = Literal["typed", "recorded", "evidenced", "kept"]
EvidenceLevel = Literal["none", "intent", "backend", "kernels"]
UNLISTED = "unlisted"
EVERY_METRIC = "*"
MAX_DELTA = 0.05  # of rates and step time: who asks for more calls a tenth of a fleet no difference
RATES = ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "tflops_per_second_per_chip", "mfu")
# The names of metrics/registry.py, which is above this room; a test compares them.
METRICS = (
    *(*RATES, "peak_bytes", "peak_reserved_bytes", "compile_seconds", "training_seconds", "goodput"),
    *("loss_last", "validation_loss", "bits_per_byte", "gradient_norm", "joules_per_token", "cost_per_token"),
)
KILOWATT_HOUR = "kilowatt_hour"  # among the prices, beside those of a chip-hour by accelerator


@dataclass(frozen=True, slots=True)
class Lineage:
    """A set of versions that is documented, validated, or cannot work together.

    ``wheels`` maps a distribution, or a leaf such as ``platform.cudnn``, to what its version must be (see `fits`).
    """

    name: str
    wheels: Mapping[str, str]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Coupling:
    """A change that brings others: ``when`` an axis changes, those of ``then`` follow, for ``because``.

    What merely turns on or off with another axis follows it on every lane, and needs no coupling.
    """

    when: str
    then: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Target:
    """A shape at which the lane's claims must hold, or a substrate of ablations. Absent bounds are None."""

    name: str
    pattern: str | None = None
    chips: int | None = None
    sequence_length: int | None = None
    global_batch: int | None = None
    depth: int | None = None

    @property
    def bounds(self) -> Mapping[str, int | str]:
        """Leaf paths with the value that each must have."""
        stated = ((path, getattr(self, path.rpartition(".")[2])) for path in _BOUNDS)
        return {path: value for path, value in stated if value is not None}


_BOUNDS = ("model.pattern", "hardware.chips", "batch.sequence_length", "batch.global_batch", "model.depth")


@dataclass(frozen=True)
class Lane:
    """One lane. Shares are fractions; times are seconds; empty means *nothing said*."""

    name: str
    version: int
    title: str
    accelerators: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    convention: Convention = "none"
    path: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    postures: tuple[str, ...] = ()
    forbidden_postures: Mapping[str, str] = field(default_factory=dict)
    compile_exceptions: tuple[str, ...] = ()
    compile_expensive: bool = False
    witness: tuple[str, ...] = ()
    evidence: EvidenceLevel = "backend"
    grade: Grade = "typed"
    grade_since: date | None = None
    never_witnessed: bool = False
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    unprinted: Mapping[str, str] = field(default_factory=dict)
    waivable: Mapping[str, str] = field(default_factory=dict)
    required_features: tuple[str, ...] = ()
    nonessential_features: tuple[str, ...] = ()
    early_flags: tuple[str, ...] = ()
    widens: tuple[str, ...] = ()
    wrap_order: tuple[str, ...] = ()
    ladder: tuple[str, ...] = ("device_batch", "sequence_length", "features", "topology", "stop")
    documented: tuple[Lineage, ...] = ()
    validated: tuple[Lineage, ...] = ()
    impossible: tuple[Lineage, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    bookkeeping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    substrates: tuple[Target, ...] = ()
    headroom: float = 0.10
    sigma: float | None = None
    sigma_df: float | None = None
    sigma_from: str = ""
    delta: Mapping[str, float] = field(default_factory=dict)
    minimum_steps: int = 10
    hosts_differ: bool = False
    signed: bool = False
    rank_skew: float = 0.05
    chip_skew: float = 0.10
    estimate_tolerance: float = 0.10
    loss_parity: float = 0.02
    clock_spread: float = 0.05
    source: str = ""
    prices: Mapping[str, float] = field(default_factory=dict)  # of receipts.toml

    @property
    def required_leaves(self) -> tuple[str, ...]:
        """Paths of the features that it requires."""
        return tuple(name if "." in name else f"features.{name}" for name in self.required_features)

    def applies(self, path: str) -> bool:
        """Whether a leaf or axis exists for this lane; a name covers everything below it."""
        missing = self.not_applicable
        return not missing or (path not in missing and not path.startswith(self._below))

    def prints(self, path: str) -> bool:
        """Whether some source of this lane can show a fact; a name covers everything below it."""
        return not any(path == name or path.startswith(f"{name}.") for name in self.unprinted)

    def smallest_effect(self, metric: str) -> float | None:
        """δ, the smallest effect that matters on a metric, as a share; None if the lane leaves it at 1 %."""
        return self.delta.get(metric, self.delta.get(EVERY_METRIC))

    @cached_property
    def books(self) -> Bookkeeping:
        """Which inputs of a launch are bookkeeping, by the table that ships and by the lane's own names."""
        return Bookkeeping(self.bookkeeping)

    @cached_property
    def _below(self) -> tuple[str, ...]:
        return tuple(f"{name}." for name in self.not_applicable)


_ORDER = re.compile(r"^(<=|>=|!=|<|>)\s*(.+)$")


def fits(version: str, wanted: str) -> bool:
    """Whether a version is the wanted one: the same, or a longer form of it ("2.9" holds "2.9.1" and "2.9+cpu").

    ``wanted`` may begin with ``<``, ``<=``, ``>``, ``>=`` (by its numbers, in their order) or ``!=`` (no form of it).
    """
    match = _ORDER.match(wanted)
    if match is None:
        return version == wanted or (version.startswith(wanted) and not version[len(wanted)].isalnum())
    operator, bound = match.groups()
    if operator == "!=":
        return not fits(version, bound)
    a, b = _numbers(version), _numbers(bound)
    # Compared at the length of the bound: 9.20.0.48 is ">=9.20" and "<=9.20".
    a = (*a, *([0] * len(b)))[: len(b)]
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(?:\.\d+)*", version.strip().lstrip("v"))
    return tuple(int(part) for part in release.group().split(".")) if release else ()


def combined(a: Lane, b: Lane) -> Lane:
    """The lane under which two lanes are compared: what both waive, all that either requires."""
    if a.name == b.name:
        return a
    # The larger δ of two lanes, of the metrics for which both set one.
    both = {name: (a.smallest_effect(name), b.smallest_effect(name)) for name in {**a.delta, **b.delta}}
    # The bookkeeping that two lanes both add.
    return replace(
        a,
        name=f"{a.name}+{b.name}",
        title=f"{a.title} beside {b.title}",
        path={},
        postures=(),
        forbidden_postures={**a.forbidden_postures, **b.forbidden_postures},
        witness=tuple(dict.fromkeys((*a.witness, *b.witness))),
        grade=max(a.grade, b.grade, key=get_args(Grade).index),
        never_witnessed=a.never_witnessed or b.never_witnessed,
        not_applicable={key: why for key, why in a.not_applicable.items() if key in b.not_applicable},
        unprinted={key: why for key, why in a.unprinted.items() if key in b.unprinted},
        waivable={key: why for key, why in a.waivable.items() if key in b.waivable},
        required_features=tuple(dict.fromkeys((*a.required_features, *b.required_features))),
        couplings=tuple(item for item in a.couplings if item in b.couplings),
        bookkeeping={
            role: tuple(name for name in names if name in b.bookkeeping.get(role, ()))
            for role, names in a.bookkeeping.items()
        },
        widens=tuple(name for name in a.widens if name in b.widens),
        compile_expensive=a.compile_expensive or b.compile_expensive,
        hosts_differ=a.hosts_differ or b.hosts_differ,
        minimum_steps=max(a.minimum_steps, b.minimum_steps),
        sigma=None if a.sigma is None or b.sigma is None else max(a.sigma, b.sigma),
        delta={name: max(one, other) for name, (one, other) in both.items() if one is not None and other is not None},
        loss_parity=min(a.loss_parity, b.loss_parity),
    )


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
    prices: Mapping[str, float] = field(default_factory=dict)

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
        return _load_cached(path, path.stat().st_mtime_ns, tuple(self.bookkeeping.items()), tuple(self.prices.items()))

    def of(self, name: str) -> Lane:
        """The lane that a receipt names, or ``unlisted``, which waives nothing and never witnesses a path."""
        return self.get(name if name in self._files else UNLISTED)

    def files(self) -> Iterable[Path]:
        """Files in the order of their names, for the rule set's digest."""
        return [path for _, path in sorted(self._files.items())]


@lru_cache(maxsize=64)
def _load_cached(
    path: Path, _changed: int, names: tuple[tuple[str, tuple[str, ...]], ...], prices: tuple[tuple[str, float], ...]
) -> Lane:
    lane = load_lanes(path)
    own = lane.bookkeeping
    more_names = {role: (*own.get(role, ()), *more) for role, more in names}
    return replace(lane, bookkeeping={**own, **more_names}, prices=dict(prices))


def load_lanes(path: Path) -> Lane:
    """Read one lane, and check it key by key. Raises RuleError that names the file and the key."""
    from receipts.receipt.configuration import Intended, Witnessed

    try:
        table = parse_toml(read_small(path))
    except (OSError, ValueError) as error:
        raise RuleError(f"lane {path.name}: {error}; mend the file or remove it") from None
    known = {item.name: item for item in fields(Lane) if item.name != "prices"}
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
    lane = Lane(**values)
    if lane.sigma_from:
        if lane.sigma is not None:
            raise RuleError(f"lane {path.name}: it states sigma and sigma_from; state one of them")
        try:
            published = prior(lane.sigma_from)
        except NotFound as error:
            raise RuleError(f"lane {path.name}: sigma_from: {error}") from None
        lane = replace(lane, sigma=published.sigma, sigma_df=published.df, sigma_from=published.name)
    # A misspelled leaf would leave every path of the lane unwitnessed, for no reason that anybody could see.
    for key, names, model in (("witness", lane.witness, Witnessed), ("path", tuple(lane.path), Intended)):
        strange = [name for name in names if name not in model.model_fields]
        if strange:
            leaves = ", ".join(model.model_fields)
            raise RuleError(f"lane {path.name}: {key}: no such leaf: {', '.join(strange)}; known: {leaves}")
    both = sorted(set(lane.postures) & set(lane.forbidden_postures))
    if both:
        raise RuleError(f"lane {path.name}: forbidden_postures: {', '.join(both)} is permitted too")
    return lane


def _value(key: str, value: Any, wanted: str, path: Path) -> Any:
    def refuse(expected: str) -> RuleError:
        return RuleError(f"lane {path.name}: {key} must be {expected}, and is {value!r}")

    if key == "delta":
        return _deltas(value, path)
    if key == "bookkeeping":
        return checked_bookkeeping(value, f"lane {path.name}")
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
        if name in (*RATES, EVERY_METRIC) and share > MAX_DELTA:
            raise RuleError(
                f"lane {path.name}: {at} is {share:.1%}: the smallest effect that matters on rates and step time is at "
                f"most {MAX_DELTA:.0%}; noise widens intervals, and no δ has to allow for it"
            )
    return {name: float(share) for name, share in table.items()}


def _tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
