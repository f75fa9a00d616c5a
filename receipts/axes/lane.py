"""Lanes: named, versioned contracts, one TOML file each (`receipts.axes.lane_files`).

A lane says which accelerator, framework and path a launch promises, what evidence shows that, which axes do not
exist for it, and the tolerances that rules apply. ``docs/lanes.md`` explains every key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Literal, get_args

from receipts.axes.bookkeeping import Bookkeeping

Convention = Literal["expert_in_data", "expert_in_world", "none"]
Grade = Literal["typed", "recorded", "evidenced", "kept"]
EvidenceLevel = Literal["none", "intent", "backend", "kernels"]
UNLISTED = "unlisted"
EVERY_METRIC = "*"
MOST_DELTA = 0.05  # of rates and step time: who asks for more calls a tenth of a fleet no difference
RATES = ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "tflops_per_second_per_chip", "mfu")
# The names of metrics/registry.py, which is above this room; a test compares them.
METRICS = (
    *(*RATES, "peak_bytes", "peak_reserved_bytes", "compile_seconds", "training_seconds", "goodput"),
    *("loss_last", "validation_loss", "bits_per_byte", "gradient_norm"),
)


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
        """δ, the smallest effect that matters on a metric, as a share; None where the lane leaves it at 1 %."""
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
    from dataclasses import replace

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
        bookkeeping=_names_of_both(a, b),
        compile_expensive=a.compile_expensive or b.compile_expensive,
        hosts_differ=a.hosts_differ or b.hosts_differ,
        minimum_steps=max(a.minimum_steps, b.minimum_steps),
        sigma=None if a.sigma is None or b.sigma is None else max(a.sigma, b.sigma),
        delta=_looser(a, b),
        loss_parity=min(a.loss_parity, b.loss_parity),
    )


def _names_of_both(a: Lane, b: Lane) -> dict[str, tuple[str, ...]]:
    """The bookkeeping that two lanes both add."""
    return {
        role: tuple(name for name in names if name in b.bookkeeping.get(role, ()))
        for role, names in a.bookkeeping.items()
    }


def _looser(a: Lane, b: Lane) -> dict[str, float]:
    """The larger δ of two lanes, of the metrics for which both set one."""
    both = {name: (a.smallest_effect(name), b.smallest_effect(name)) for name in {**a.delta, **b.delta}}
    return {name: max(one, other) for name, (one, other) in both.items() if one is not None and other is not None}
